//! The error of an allocation.

use crate::device::Device;

/// Memory that cannot be allocated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "shape: {bytes} bytes at a multiple of {alignment} on {device} cannot be allocated, the system has not got them"
)]
pub struct OutOfMemory {
    /// Bytes requested.
    pub bytes: usize,
    /// Alignment requested, in bytes.
    pub alignment: usize,
    /// The device.
    pub device: Device,
}
