//! `__array__`, the last resort: the NumPy array that an object turns itself into.
//!
//! Source: NumPy's page on interoperability, with the `copy` keyword of NumPy 2.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::names::Name;
use super::refcount::is_fresh;
use super::request::is_shared;
use super::request::{Ownership, Reading, Request, refused_copy};
use super::{numpy, type_info};
use crate::descriptor::Descriptor;
use crate::protocol::ExchangeError;
use crate::py::args;
use crate::py::getattr::Keyword;
use crate::py::py_owner::PyOwner;
use crate::tensor::Owner;

static COPY: Keyword = Keyword::new("copy");

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    let py = object.py();
    let Some(method) = type_info::method(object, Name::Array)? else { return Ok(None) };
    let shared = is_shared(request, ownership);
    let array = if shared {
        match method.call(py, [PyBool::new(py, false).as_any()], Some(COPY.get(py)?)) {
            // Written before NumPy 2: knows no keyword.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call(py, [], None)?,
            other => other?,
        }
    } else {
        method.call(py, [], None)?
    };
    if shared && is_fresh(&array) {
        return Err(refused_copy(ownership, "__array__ returned an array made for this call").into());
    }
    let reading = match numpy::import(&array, request, Ownership::Share, descriptor)? {
        None => numpy::import_subclass(&array, request, Ownership::Share, descriptor)?,
        exact => exact,
    };
    let reading = reading.ok_or_else(|| ExchangeError::Argument {
        argument: "__array__",
        got: args::shown(&array),
        allowed: "a numpy.ndarray as the return value",
    })?;
    // The array need not keep what its memory belongs to; a description keeps the object by itself.
    let object = (ownership == Ownership::Share).then(|| PyOwner::new(object));
    Ok(Some(Reading::Owned(Owner::foreign((object, reading.into_owner(&array, descriptor)?)))))
}
