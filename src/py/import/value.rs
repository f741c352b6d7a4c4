//! Imports values: arrays that are read once, right after the import.

use std::ops::Deref;

use pyo3::prelude::*;

use super::imported::Imported;
use super::owners;
use super::request::{Access, Request};
use super::table::{import_or_error, import_tensor, metadata};
use crate::device::Device;
use crate::py::descriptor::PyDescriptor;
use crate::py::device::parse_device;
use crate::py::errors::Kind;
use crate::py::freelist;
use crate::py::tensor::PyTensor;
use crate::tensor::Tensor;

/// A tensor to read from.
pub(in crate::py) struct Value<'py> {
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
    pub(super) fn into_tensor(self) -> Tensor {
        self.tensor
    }

    /// Returns the outcome of the work on the value. If that succeeded, calls the `release` hook, whose error is returned.
    pub(in crate::py) fn done<R>(self, py: Python<'_>, outcome: PyResult<R>) -> PyResult<R> {
        let outcome = outcome?;
        self.imported.release(py, self.tensor.descriptor().device())?;
        Ok(outcome)
    }
}

/// Imports an object for reading, up to date, with metadata; of several buffers, takes the one nearest to `near`. `None` for
/// an object without any protocol.
pub(in crate::py) fn value<'py>(object: &Bound<'py, PyAny>, near: Device) -> PyResult<Option<Value<'py>>> {
    let request = Request { access: Access::Read, near: Some(near), ..Request::default() };
    let (mut tensor, mut imported) = (Tensor::BLANK, Imported::default());
    if !import_tensor(object, &request, &mut imported, &mut tensor)? {
        return Ok(None);
    }
    metadata(object, None, &mut imported, None, None)?.attach(&mut tensor)?;
    Ok(Some(Value { tensor, imported }))
}

/// Return an array as a tensor to read from; None for objects that NumPy has to convert to elements.
#[pyfunction]
#[pyo3(name = "_source")]
fn source<'py>(obj: &Bound<'py, PyAny>, near: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTensor>>> {
    let py = obj.py();
    if let Ok(tensor) = obj.cast_exact::<PyTensor>() {
        return Ok(Some(tensor.clone()));
    }
    match value(obj, parse_device(near)?) {
        Ok(found) => found.map(|found| PyTensor::create(py, found.into_tensor())).transpose(),
        Err(error) if Kind::DType.is(py, &error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Describe an array as `describe` does, without access to its elements: they may be out of date.
#[pyfunction]
#[pyo3(name = "_look")]
fn look<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDescriptor>> {
    freelist::create(obj.py(), |description: &mut PyDescriptor| {
        let mut imported = Imported::default();
        import_or_error(obj, &Request::default(), &mut imported, description.descriptor_mut())?;
        description.set(owners::kept(obj), imported.owner, imported.protocol);
        Ok(())
    })
}

pub(in crate::py) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(source, module)?)?;
    module.add_function(wrap_pyfunction!(look, module)?)
}
