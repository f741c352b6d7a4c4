//! Imports values: arrays that are read once, right after the import.

use std::ops::Deref;

use pyo3::prelude::*;

use crate::device::Device;
use crate::layout::Metadata;
use crate::python::import::imported::Imported;
use crate::python::import::request::{Request, RequestAccess};
use crate::python::import::table::{metadata, share};
use crate::tensor::Tensor;

/// A tensor to read from.
pub struct Value<'py> {
    tensor: Tensor,
    imported: Imported<'py>,
}

impl Deref for Value<'_> {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.tensor
    }
}

impl From<Tensor> for Value<'_> {
    fn from(tensor: Tensor) -> Self {
        Value { tensor, imported: Imported::default() }
    }
}

impl Value<'_> {
    /// Returns the tensor, whose owner calls the `release` hook.
    pub fn into_tensor(self) -> Tensor {
        self.tensor
    }

    /// Returns the outcome of the work on the value. If that succeeded, calls the `release` hook, whose error is returned.
    pub fn done<R>(self, py: Python<'_>, outcome: PyResult<R>) -> PyResult<R> {
        let outcome = outcome?;
        self.imported.release(py, self.tensor.descriptor().device())?;
        Ok(outcome)
    }
}

/// Imports an object for reading, up to date, with metadata; of several buffers, takes the one nearest to `near`. `None` for
/// an object without any protocol.
pub fn value<'py>(object: &Bound<'py, PyAny>, near: Device) -> PyResult<Option<Value<'py>>> {
    let mut request = Request::new(RequestAccess::Read);
    request.near = Some(near);
    let (mut tensor, mut imported) = (Tensor::BLANK, Imported::default());
    if !share(object, &request, &mut imported, &mut tensor)? {
        return Ok(None);
    }
    tensor.relabel(metadata(object, None, &mut imported, Metadata::default())?)?;
    Ok(Some(Value { tensor, imported }))
}
