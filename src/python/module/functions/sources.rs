//! Functions for the Python part of the package: arrays to read from, keys, descriptions without access to elements, and which
//! devices can access memory.

use crate::python::convert::errors::ErrorKind;
use crate::python::import::{self, Found, Imported, Request, RequestAccess};
use crate::python::module::classes::descriptor::PyDescriptor;
use crate::python::module::classes::device::parse_device;
use crate::python::module::classes::freelist;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::functions::exchange::owned;
use crate::python::module::methods::key;
use crate::python::module::values;
use crate::python::own_classes;
use crate::python::trace;
use pyo3::prelude::*;

/// Return an array as a tensor to read from; None for objects that NumPy has to convert to elements.
#[pyfunction]
#[pyo3(name = "_source")]
fn source<'py>(obj: &Bound<'py, PyAny>, near: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTensor>>> {
    let py = obj.py();
    if let Ok(tensor) = obj.cast_exact::<PyTensor>() {
        return Ok(Some(tensor.clone()));
    }
    let found = values::assigned_value(obj, parse_device(near)?)?;
    found.map(|found| PyTensor::create(py, found.into_tensor())).transpose()
}

/// Return an index expression whose arrays a tensor's library can use, and its kind: "basic", "newaxis" or "arrays".
#[pyfunction]
#[pyo3(name = "_key")]
fn key_for<'py>(field: &Bound<'py, PyTensor>, key: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, &'static str)> {
    key::for_library(&field.get().0, key)
}

/// Whether code on a device can use memory of another one.
#[pyfunction]
#[pyo3(name = "_can_access")]
fn can_access(device: &Bound<'_, PyAny>, memory: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(parse_device(device)?.can_access(parse_device(memory)?))
}

/// Describe an array as `describe` does, without access to its elements: they may be out of date.
#[pyfunction]
#[pyo3(name = "_inspect")]
fn inspect<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDescriptor>> {
    freelist::create(obj.py(), |description: &mut PyDescriptor| {
        let mut imported = Imported::new(description.descriptor_mut());
        import::describe(obj, &Request::new(RequestAccess::Inspect), &mut imported)?;
        let Found { owner, owner_needs_object, protocol, .. } = imported.found();
        description.set_owned(own_classes::object_to_keep(obj), owner, owner_needs_object, protocol);
        Ok(())
    })
}

/// Imports an object as `from_dlpack` does; errors call it by the name of the caller's argument.
#[pyfunction]
#[pyo3(name = "_tensor", signature = (obj, argument, *, copy=None, origin=None))]
fn tensor<'py>(
    obj: &Bound<'py, PyAny>,
    argument: &str,
    copy: Option<&Bound<'py, PyAny>>,
    origin: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let [copy, origin] = [copy, origin].map(|given| given.map(Bound::as_borrowed));
    let is_plain = copy.is_none() && origin.is_none();
    if is_plain && obj.cast_exact::<PyTensor>().is_ok() {
        return Ok(obj.clone());
    }
    let arguments = [None, None, copy, None, origin, None];
    owned(obj, (!is_plain).then_some(&arguments)).map_err(|error| ErrorKind::of_argument(obj.py(), argument, error))
}

/// Says whether the package's `record_copy` is called for each copy from now on.
#[pyfunction]
#[pyo3(name = "_trace_copies")]
fn trace_copies(on: bool) {
    trace::trace_copies(on);
}

/// Says whether the package's `record_allocation` is called for each new field from now on.
#[pyfunction]
#[pyo3(name = "_trace_allocations")]
fn trace_allocations(on: bool) {
    trace::trace_allocations(on);
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(trace_copies, module)?)?;
    module.add_function(wrap_pyfunction!(trace_allocations, module)?)?;
    module.add_function(wrap_pyfunction!(source, module)?)?;
    module.add_function(wrap_pyfunction!(key_for, module)?)?;
    module.add_function(wrap_pyfunction!(can_access, module)?)?;
    module.add_function(wrap_pyfunction!(tensor, module)?)?;
    module.add_function(wrap_pyfunction!(inspect, module)?)
}
