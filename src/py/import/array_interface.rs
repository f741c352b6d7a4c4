//! `__array_interface__`.
//!
//! Source: NumPy's page on the array interface, version 3.

use numpy::PyArrayDescr;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::names::Name;
use super::{Ownership, Reading, Request, dictionary, type_info};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::protocol::array_interface::HOST;
use crate::py::dtype;
use crate::py::py_owner::PyOwner;
use crate::tensor::Owner;

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    if numpy_scalar(object)?.is_some() {
        // Its interface points at a temporary.
        return Ok(None);
    }
    let Some(value) = type_info::attribute(object, Name::ArrayInterface)? else { return Ok(None) };
    let dict = dictionary::of(HOST.name, &value)?;
    drop(value);
    dictionary::check_copied(&dict, request, ownership)?;
    let (found, held) = dictionary::on_host(object, &dict, &HOST)?;
    *descriptor = found.read(&HOST, Device::CPU)?;
    // Producers tie the memory to the dictionary too; a description keeps the object by itself.
    let object = (ownership == Ownership::Share).then(|| PyOwner::new(object));
    Ok(Some(Reading::Owned(Owner::foreign((object, PyOwner::new(dict.as_any()), held)))))
}

/// The element type of a `numpy.generic`; `None` for other objects.
pub(super) fn numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    static GENERIC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    if GENERIC.get(py).is_none() && type_info::loaded(py, "numpy")?.is_none() {
        // Nobody has a scalar before NumPy is imported.
        return Ok(None);
    }
    let generic = GENERIC.get_or_try_init(py, || {
        PyResult::Ok(py.import(intern!(py, "numpy"))?.getattr(intern!(py, "generic"))?.unbind())
    })?;
    if !object.is_instance(generic.bind(py))? {
        return Ok(None);
    }
    dtype::of_descriptor(&object.getattr(intern!(py, "dtype"))?.cast_into::<PyArrayDescr>()?).map(Some)
}
