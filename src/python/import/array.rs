//! Imports the NumPy array that an object returns from `__array__`, the last protocol that is tried.
//!
//! Source: NumPy's page on interoperability, with the `copy` keyword of NumPy 2.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::error::ExchangeError;
use crate::python::convert::args;
use crate::python::ffi::getattr::Keyword;
use crate::python::ffi::refcount::is_fresh;
use crate::python::import::imported::Imported;
use crate::python::import::names::Name;
use crate::python::import::request::{Ownership, Request, refused_copy};
use crate::python::import::{numpy, type_info};
use crate::python::py_owner::PyOwner;
use crate::tensor::Owner;

static COPY: Keyword = Keyword::new("copy");

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    let py = object.py();
    let Some(method) = type_info::method(object, Name::Array)? else { return Ok(false) };
    let shared = request.rejects_copy();
    let array = if shared {
        match method.call(py, [PyBool::new(py, false).as_any()], Some(COPY.get(py)?)) {
            // An `__array__` from before NumPy 2 has no keyword `copy`.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call(py, [], None)?,
            other => other?,
        }
    } else {
        method.call(py, [], None)?
    };
    if shared && is_fresh(&array) {
        return Err(refused_copy(request.ownership, "__array__ returned an array made for this call").into());
    }
    let inner_request = Request { ownership: Ownership::Share, ..*request };
    if !numpy::import(&array, &inner_request, imported)? && !numpy::import_subclass(&array, &inner_request, imported)? {
        let (got, allowed) = (args::shown(&array), "a numpy.ndarray as the return value");
        return Err(ExchangeError::new("__array__", &allowed, &got).into());
    }
    // The array may not keep the object that has the memory; a description keeps that object itself.
    imported.owner_needs_object = request.ownership == Ownership::Borrow;
    let object = (request.ownership == Ownership::Share).then(|| PyOwner::new(object));
    let owner = Owner::foreign((object, imported.owner.take()));
    Ok(imported.owned(owner))
}
