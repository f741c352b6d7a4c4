//! The error of an allocation.

use crate::device::Device;

/// Memory that cannot be allocated.
///
/// # Example
/// ```
/// use dlfield::{DType, Error, Spec, Tensor};
/// if let Err(Error::Memory(error)) = Tensor::zeros(&Spec::new(&[1 << 55], DType::U8)) {
///     println!("{} bytes are too many", error.bytes);
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("shape: {bytes} bytes, aligned to {alignment} bytes, cannot be allocated on {device}: out of memory")]
#[non_exhaustive]
pub struct OutOfMemory {
    /// Bytes requested.
    pub bytes: usize,
    /// Alignment requested, in bytes.
    pub alignment: usize,
    /// The device.
    pub device: Device,
}
