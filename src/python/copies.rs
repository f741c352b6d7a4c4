//! Copies of tensors with the GIL released.

#![allow(unsafe_code, reason = "memory shared with other libraries is copied")]

use pyo3::prelude::*;

use crate::device::Device;
use crate::error::Result;
use crate::layout::Spec;
use crate::python::interrupt::detach;
use crate::python::sync;
use crate::tensor::Tensor;

/// Copies of at least this many bytes release the GIL.
pub const GIL_RELEASE_BYTES: i64 = 1 << 15;

/// Returns the tensor on another device: the same memory if that device reaches it, else a copy; `copy` as in
/// [`Tensor::to_device`].
pub fn to(py: Python<'_>, tensor: &Tensor, wanted: Device, copy: Option<bool>) -> Result<Tensor> {
    sync::check_in_place(py, tensor)?;
    // SAFETY: as for `copy_into`.
    detach(py, || unsafe { tensor.to_device_shared(wanted, copy) })
}

/// Copies a tensor with the same layout and metadata.
pub fn copy_like(py: Python<'_>, tensor: &Tensor) -> Result<Tensor> {
    copy_into(py, &tensor.spec(), tensor)
}

/// Copies a tensor into the layout of `spec`. Small copies on the host keep the GIL.
pub fn copy_into(py: Python<'_>, spec: &Spec, tensor: &Tensor) -> Result<Tensor> {
    sync::check_in_place(py, tensor)?;
    // SAFETY: no reference to the elements is made. If other code writes to them meanwhile, which is the program's
    // responsibility as with every array library, the copy has old or new elements.
    let copy = || unsafe { Tensor::copy_of_shared(spec, tensor) };
    if tensor.is_of_host_alone() && spec.is_small_on_host(GIL_RELEASE_BYTES) { copy() } else { detach(py, copy) }
}
