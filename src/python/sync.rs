//! Waiting for devices and copies between them, with the GIL released.

#![allow(unsafe_code, reason = "memory that others have is copied")]

use pyo3::prelude::*;

use crate::copy::Executor;
use crate::device::Device;
use crate::error::Result;
use crate::tensor::Tensor;

/// Returns the tensor on another device: the same memory if that device reaches it, else a copy; `copy` as in
/// [`Tensor::to_device`].
pub fn to(py: Python<'_>, tensor: &Tensor, wanted: Device, copy: Option<bool>) -> Result<Tensor> {
    // SAFETY: as for the copies in `copies`.
    py.detach(|| unsafe { tensor.to_device_shared(wanted, copy) })
}

/// Whether the memory is not ordinary host memory: it is on a device, or it is pinned or managed memory that counts as the
/// host's.
#[inline]
pub fn is_of_others(tensor: &Tensor) -> bool {
    !tensor.is_of_host_alone()
}

/// Waits for device work on memory that the host is about to read or write; ordinary host memory needs no wait.
#[inline]
pub fn synchronize_host(py: Python<'_>, tensor: &Tensor) -> Result<()> {
    if is_of_others(tensor) { await_work(py, tensor) } else { Ok(()) }
}

/// Waits for device work on memory that the host is about to read or write.
///
/// Callers check [`is_of_others`] first: for ordinary host memory there is nothing to do.
#[cold]
pub fn await_work(py: Python<'_>, tensor: &Tensor) -> Result<()> {
    py.detach(|| tensor.before_use_by(Executor::Host))
}
