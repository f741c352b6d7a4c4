//! Our own types.

use pyo3::prelude::*;

use super::{Purpose, Reading, Request};
use crate::py::descriptor::PyDescriptor;
use crate::py::tensor::PyTensor;

pub(super) fn read(object: &Bound<'_, PyAny>, _: &Request<'_, '_>, _: Purpose) -> PyResult<Option<Reading>> {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return Ok(Some(Reading::Owned(tensor.get().0.clone())));
    }
    // A descriptor keeps what it describes, so it will do as the object that owns the memory.
    Ok(object.cast::<PyDescriptor>().ok().map(|descriptor| Reading::Borrowed(descriptor.get().descriptor().clone())))
}
