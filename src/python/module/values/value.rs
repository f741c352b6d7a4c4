//! Imports values: arrays that are read once, right after the import.

use std::ops::Deref;

use pyo3::prelude::*;

use crate::device::Device;
use crate::layout::Metadata;
use crate::python::convert::errors::ErrorKind;
use crate::python::import::{Release, Request, RequestAccess, share};
use crate::tensor::Tensor;

/// A tensor to read from.
pub struct Value {
    tensor: Tensor,
    release: Release,
}

impl Deref for Value {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.tensor
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value { tensor, release: Release::default() }
    }
}

impl Value {
    /// Returns the tensor, whose owner calls the `release` hook.
    pub fn into_tensor(self) -> Tensor {
        self.tensor
    }

    /// Returns the outcome of the work on the value. If that succeeded, calls the `release` hook, whose error is returned.
    pub fn done<R>(self, py: Python<'_>, outcome: PyResult<R>) -> PyResult<R> {
        let outcome = outcome?;
        self.release.after_copy(py, self.tensor.descriptor().device())?;
        Ok(outcome)
    }
}

/// Imports an object for reading, up to date, with metadata if some is given, which counts first; of several buffers, takes
/// the one nearest to `near`. `None` for an object without any protocol.
pub fn value(object: &Bound<'_, PyAny>, near: Device, given: Option<&Metadata>) -> PyResult<Option<Value>> {
    let mut request = Request::new(RequestAccess::Read).sharing();
    (request.near, request.metadata) = (Some(near), given);
    let mut tensor = Tensor::BLANK;
    Ok(share(object, &request, &mut tensor)?.map(|release| Value { tensor, release }))
}

/// As [`value`], for a value that is assigned: `None` also for elements that only NumPy supports, which NumPy converts: not in
/// native byte order, as in old NetCDF files, objects, dates, text.
pub fn assigned_value(object: &Bound<'_, PyAny>, near: Device) -> PyResult<Option<Value>> {
    match value(object, near, Some(&Metadata::default())) {
        // Only the import finds out what elements a `DataArray`, or an object with `__array__`, has.
        Err(error) if ErrorKind::DType.is(object.py(), &error) => Ok(None),
        found => found,
    }
}
