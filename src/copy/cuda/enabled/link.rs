//! The two ends of a copy between devices, or between a device and the host.

use super::work::Side;
use crate::device::Device;

/// The two ends of a copy. The device is the device that copies the elements, in its current stream.
#[derive(Clone, Copy)]
pub(super) enum Link {
    /// From the host, carried by the destination.
    Up(Device),
    /// To the host, carried by the source.
    Down(Device),
    /// To another device, carried by the destination.
    Peer { to: Device, from: Device },
}

impl Link {
    pub(super) fn device(self) -> Device {
        match self {
            Link::Up(device) | Link::Down(device) | Link::Peer { to: device, .. } => device,
        }
    }

    /// Returns the device's side, and the other one.
    pub(super) fn sides(self) -> (Side, Side) {
        match self {
            Link::Up(_) | Link::Peer { .. } => (Side::To, Side::From),
            Link::Down(_) => (Side::From, Side::To),
        }
    }
}
