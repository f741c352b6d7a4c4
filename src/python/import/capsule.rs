//! Imports raw DLPack capsules of both names, `dltensor` and `dltensor_versioned`.

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::python::import::dlpack::consume;
use crate::python::import::imported::Imported;
use crate::python::import::request::{Request, check_exported};

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    if !object.is_instance_of::<PyCapsule>() {
        return Ok(false);
    }
    let found = consume(object, request, imported)?;
    if found {
        check_exported(request, imported.descriptor.device())?;
    }
    Ok(found)
}
