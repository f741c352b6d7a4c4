//! Copies of tensors, with the GIL released.

#![allow(unsafe_code, reason = "memory that others have is copied")]

use pyo3::prelude::*;

use dlfield::error::Result;
use dlfield::layout::Spec;
use dlfield::tensor::Tensor;

/// Copies a tensor with the same layout and metadata, with the GIL released.
pub(crate) fn like(py: Python<'_>, tensor: &Tensor) -> Result<Tensor> {
    of(py, &tensor.spec(), tensor)
}

/// Copies a tensor into the layout of `spec`, with the GIL released.
pub(crate) fn of(py: Python<'_>, spec: &Spec, tensor: &Tensor) -> Result<Tensor> {
    // SAFETY: no reference to the elements is made. If other code writes to them meanwhile, which is the program's
    // responsibility as with every array library, the copy has old or new elements.
    py.detach(|| unsafe { Tensor::copy_of_shared(spec, tensor) })
}

/// Copies a tensor with the same layout and metadata and zeros for padding, with the GIL released.
pub(crate) fn zero_padded(py: Python<'_>, tensor: &Tensor) -> Result<Tensor> {
    // SAFETY: as above.
    py.detach(|| unsafe { tensor.copy_zero_padded() })
}
