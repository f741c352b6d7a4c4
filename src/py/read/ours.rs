//! Our own types.

use pyo3::prelude::*;

use super::{Purpose, Reading, Request};
use crate::py::descriptor::PyDescriptor;
use crate::py::tensor::PyTensor;

pub(super) fn read(object: &Bound<'_, PyAny>, _: &Request<'_, '_>, purpose: Purpose) -> PyResult<Option<Reading>> {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        let tensor = &tensor.get().0;
        if purpose == Purpose::Own {
            return Ok(Some(Reading::Owned(tensor.clone())));
        }
        // The object keeps its memory; a description says what the tensor knows by default too.
        let descriptor = tensor.descriptor().clone().with_dims(tensor.dims())?;
        let descriptor = descriptor.with_halo(tensor.halo().as_slice().into())?;
        return Ok(Some(Reading::Borrowed(descriptor.with_origin(tensor.origin().as_slice().into())?)));
    }
    // A descriptor keeps what it describes, so it will do as the object that owns the memory.
    Ok(object.cast::<PyDescriptor>().ok().map(|descriptor| Reading::Borrowed(descriptor.get().descriptor().clone())))
}
