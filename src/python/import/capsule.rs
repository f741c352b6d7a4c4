//! Imports raw DLPack capsules of both names, `dltensor` and `dltensor_versioned`.

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::descriptor::Descriptor;
use crate::python::import::dlpack::consume;
use crate::python::import::imported::Imported;
use crate::python::import::request::{Request, check_exported};

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_>,
    descriptor: &mut Descriptor,
) -> PyResult<bool> {
    if !object.is_instance_of::<PyCapsule>() {
        return Ok(false);
    }
    let found = consume(object, request, imported, descriptor)?;
    if found {
        check_exported(request, descriptor.device())?;
    }
    Ok(found)
}
