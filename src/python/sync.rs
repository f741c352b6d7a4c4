//! Waiting for devices with the GIL released.

use pyo3::prelude::*;

use crate::device::Device;
use crate::error::Result;
use crate::error::{ExchangeError, ExchangeErrorKind};
use crate::memory::Executor;
use crate::memory::cuda::current_stream;
use crate::python::consumers;
use crate::python::ffi::attach::release_deferred;
use crate::python::py_owner;
use crate::tensor::in_order;
use crate::tensor::{Owner, Tensor};

/// Whether [`wait_for_device`] has something to do before the memory is used: it is on a device, or it is pinned or managed memory
/// that counts as the host's, or PyTorch may have exchanged it.
#[inline]
pub fn may_have_device_work(tensor: &Tensor) -> bool {
    !tensor.is_of_host_alone()
}

/// Waits for device work on memory that the host is about to read or write; ordinary host memory needs no wait.
#[inline]
pub fn synchronize_host(py: Python<'_>, tensor: &Tensor) -> Result<()> {
    if may_have_device_work(tensor) { wait_for_device(py, tensor) } else { Ok(()) }
}

/// Waits for device work on memory that the host is about to read or write, and rejects memory that PyTorch has exchanged.
///
/// Callers check [`may_have_device_work`] first: for ordinary host memory there is nothing to do.
#[cold]
pub fn wait_for_device(py: Python<'_>, tensor: &Tensor) -> Result<()> {
    check_in_place(py, tensor)?;
    py.detach(|| tensor.before_use_by(Executor::Host))
}

/// Rejects memory that PyTorch has exchanged inside its storage since the import, as `share_memory_` does: it is freed then.
#[inline]
pub fn check_in_place(py: Python<'_>, tensor: &Tensor) -> Result<()> {
    match py_owner::storage(py, tensor.owner()) {
        Some(storage) if !py_owner::has_elements(&storage, tensor.descriptor()).unwrap_or(false) => {
            let got = "a storage to which PyTorch has given other memory since the field was imported, as share_memory_() does";
            Err(ExchangeError::new("field", &"memory that is still that of the import", &got)
                .with_fix(&"import the tensor after that: dl.from_dlpack(tensor.share_memory_())")
                .with_kind(ExchangeErrorKind::Moved)
                .into())
        }
        _ => Ok(()),
    }
}

/// Makes the next work of the current stream wait for the earlier work of all streams that use CUDA memory, for a consumer that
/// works on this stream, or makes its own wait for it.
///
/// # Errors
/// [`crate::DeviceError`] if graph capture forbids the order, or the driver fails.
pub fn order_current_stream(py: Python<'_>, tensor: &Tensor) -> Result<()> {
    let device = tensor.descriptor().device();
    let Some(uses) = tensor.owner().stream_uses().filter(|_| device.is_of_cuda()) else { return Ok(()) };
    py.detach(|| uses.make_stream_wait(device, current_stream(device).stream(), None))?;
    consumers::record(py, uses, device, None);
    Ok(())
}

/// As [`in_order`], which may wait for another thread.
pub(crate) fn in_order_detached(py: Python<'_>, owner: Owner, device: Device) -> Owner {
    if owner.stream_uses().is_some() { py.detach(|| in_order(owner, device)) } else { in_order(owner, device) }
}

/// Marks memory as exported: safe functions reject it from now on. Waits for those that read it.
#[inline]
pub fn export(py: Python<'_>, owner: &Owner) -> Result<()> {
    // A reader may wait for a device, and the device's work for the GIL.
    if owner.mark_exported() { Ok(()) } else { py.detach(|| Ok(owner.export()?)) }
}

/// Drops an owner, which may wait for the device's work.
pub(crate) fn drop_detached(py: Python<'_>, owner: Owner) {
    if owner.stream_uses().is_some() {
        py.detach(|| drop(owner));
        release_deferred(py);
    }
}
