//! The error of an allocation.

use crate::device::Device;

/// Memory that cannot be allocated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("shape: {bytes} bytes, aligned to {alignment} bytes, cannot be allocated on {device}: out of memory")]
pub struct OutOfMemory {
    /// Bytes requested.
    pub bytes: usize,
    /// Alignment requested, in bytes.
    pub alignment: usize,
    /// The device.
    pub device: Device,
}
