//! The error of an allocation.

use crate::device::Device;

/// Memory that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "shape: {bytes} bytes at a multiple of {alignment} on {device} cannot be allocated, the system has not got them"
)]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub bytes: usize,
    /// Bytes whose multiple the start has to be.
    pub alignment: usize,
    /// Where.
    pub device: Device,
}
