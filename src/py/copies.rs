//! Copies of tensors that Python has.

#![allow(unsafe_code, reason = "memory that others have is copied")]

use pyo3::prelude::*;

use crate::error::Result;
use crate::layout::Spec;
use crate::tensor::Tensor;

/// A copy like the tensor, while other threads of Python run.
pub(super) fn like(py: Python<'_>, tensor: &Tensor) -> Result<Tensor> {
    of(py, &tensor.spec(), tensor)
}

/// A copy as `spec` says, while other threads of Python run.
pub(super) fn of(py: Python<'_>, spec: &Spec, tensor: &Tensor) -> Result<Tensor> {
    // SAFETY: what writes meanwhile is the program's, as with the copies of every array library; its elements come out one
    // way or the other. No reference to them is made.
    py.detach(|| unsafe { Tensor::copy_of_shared(spec, tensor) })
}

/// A copy like the tensor with zeros for padding, while other threads of Python run.
pub(super) fn zero_padded(py: Python<'_>, tensor: &Tensor) -> Result<Tensor> {
    // SAFETY: as above.
    py.detach(|| unsafe { tensor.copy_zero_padded() })
}
