//! Memory wanted somewhere else, while other threads of Python run.

#![allow(unsafe_code, reason = "memory that others have is copied")]

use pyo3::prelude::*;

use crate::copy::Executor;
use crate::device::Device;
use crate::error::Result;
use crate::tensor::Tensor;

/// The tensor on another device: the same memory where that reaches it, else a copy; `copy` as in
/// [`Tensor::to_device`].
pub(super) fn to(py: Python<'_>, tensor: &Tensor, wanted: Device, copy: Option<bool>) -> Result<Tensor> {
    // SAFETY: as for the copies in `copies`.
    py.detach(|| unsafe { tensor.to_device_shared(wanted, copy) })
}

/// Whether there is more to memory than its address says: it is not the host's own, or pinned or managed memory that goes
/// under the host's name.
#[inline]
pub(super) fn is_of_others(tensor: &Tensor) -> bool {
    !tensor.is_of_host_alone()
}

/// Waits for the work of a device on memory that the host is about to read or write, unless it is the host's own.
#[inline]
pub(super) fn synchronize_host(py: Python<'_>, tensor: &Tensor) -> Result<()> {
    if is_of_others(tensor) { await_work(py, tensor) } else { Ok(()) }
}

/// Waits for the work of a device on memory that the host is about to read or write.
///
/// Who calls this has seen that it is not the host's own: for that there is nothing to do, in no time.
#[cold]
pub(super) fn await_work(py: Python<'_>, tensor: &Tensor) -> Result<()> {
    py.detach(|| tensor.before_use_by(Executor::Host))
}
