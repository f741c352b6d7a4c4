//! Copies of tensors with the GIL released.

#![allow(unsafe_code, reason = "memory shared with other libraries is copied")]

use pyo3::prelude::*;

use crate::device::Device;
use crate::error::Result;
use crate::layout::Spec;
use crate::python::interrupt::detach;
use crate::python::{sync, trace};
use crate::tensor::Tensor;

/// Copies of at least this many bytes release the GIL.
pub const GIL_RELEASE_BYTES: i64 = 1 << 15;

/// Returns the tensor on another device: the same memory if that device reaches it, else a copy; `copy` as in
/// [`Tensor::to_device`].
pub fn to(py: Python<'_>, tensor: &Tensor, wanted: Device, copy: Option<bool>) -> Result<Tensor> {
    sync::check_in_place(py, tensor)?;
    // SAFETY: as for `copy_into`.
    let moved = detach(py, || unsafe { tensor.to_device_shared(wanted, copy) })?;
    let (from, to) = (tensor.descriptor(), moved.descriptor());
    if from.ptr() != to.ptr() {
        trace::copied(py, to.nbytes(), || format!("from {} to {}", from.device(), to.device()));
        trace::allocated(py, &moved);
    }
    Ok(moved)
}

/// Copies a tensor with the same layout and metadata, for the reason that `dlfield.trace_copies` lists.
pub fn copy_like(py: Python<'_>, tensor: &Tensor, reason: &str) -> Result<Tensor> {
    copy_into(py, &tensor.spec(), tensor, reason)
}

/// Copies a tensor into the layout of `spec`, for the reason that `dlfield.trace_copies` lists. Small copies on the host keep the GIL.
pub fn copy_into(py: Python<'_>, spec: &Spec, tensor: &Tensor, reason: &str) -> Result<Tensor> {
    sync::check_in_place(py, tensor)?;
    // SAFETY: no reference to the elements is made. If other code writes to them meanwhile, which is the program's
    // responsibility as with every array library, the copy has old or new elements.
    let copy = || unsafe { Tensor::copy_of_shared(spec, tensor) };
    let is_small = tensor.is_of_host_alone() && spec.is_small_on_host(GIL_RELEASE_BYTES);
    let copied = if is_small { copy() } else { detach(py, copy) }?;
    trace::copied(py, copied.descriptor().nbytes(), || reason.to_owned());
    trace::allocated(py, &copied);
    Ok(copied)
}
