//! `__array__`, the last resort: the NumPy array that an object turns itself into.
//!
//! Source: NumPy's page on interoperability, with the `copy` keyword of NumPy 2.

#![allow(unsafe_code, reason = "reference counts have no safe call")]

use ::numpy::PyUntypedArray;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{Purpose, Reading, Request, kept, numpy, owned};
use crate::protocol::ExchangeError;
use crate::py::args;
use crate::py::keep::Keep;

pub(super) fn read(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    purpose: Purpose,
) -> PyResult<Option<Reading>> {
    let py = object.py();
    let Some(method) = object.getattr_opt(intern!(py, "__array__"))? else { return Ok(None) };
    let shared = is_shared(request, purpose);
    let array = if shared {
        let keywords = PyDict::new(py);
        keywords.set_item(intern!(py, "copy"), false)?;
        match method.call((), Some(&keywords)) {
            // Written before NumPy 2: knows no keyword.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0()?,
            other => other?,
        }
    } else {
        method.call0()?
    };
    if shared && is_fresh(&array)? {
        let reason = "__array__ returned an array made for this call".to_owned();
        return Err(ExchangeError::NeedsCopy { reason }.into());
    }
    let reading = match numpy::read(&array, request, purpose)? {
        None => numpy::read_subclass(&array, request, purpose)?,
        exact => exact,
    };
    let reading = reading.ok_or_else(|| ExchangeError::Argument {
        argument: "__array__",
        got: args::shown(&array),
        allowed: "a numpy.ndarray as the return value",
    })?;
    let descriptor = owned(&array, reading).descriptor().clone();
    // The array need not keep what its memory belongs to; a description keeps the object by itself.
    let object = (purpose == Purpose::Own).then(|| Keep::new(object));
    let keeper = (object, Keep::new(&array));
    Ok(Some(kept(descriptor, keeper)))
}

/// Whether the object's own memory is wanted, and not a copy of it.
pub(super) fn is_shared(request: &Request<'_, '_>, purpose: Purpose) -> bool {
    purpose == Purpose::Describe || request.copy == Some(false)
}

/// Whether nobody but the caller, who has one reference, knows of an array's memory: then it was made for this call.
/// Of memory that is not NumPy's nobody can tell.
pub(super) fn is_fresh(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = array.py();
    let mut known_by = 1;
    let mut array = array.clone();
    loop {
        // The clone here is one reference more, and so is what `base` returned.
        known_by += 1;
        if array.cast::<PyUntypedArray>().is_err() || references(&array) > known_by {
            return Ok(false);
        }
        if array.getattr(intern!(py, "flags"))?.getattr(intern!(py, "owndata"))?.is_truthy()? {
            return Ok(true);
        }
        array = array.getattr(intern!(py, "base"))?;
        known_by = 1;
    }
}

/// How many references to an object there are.
pub(super) fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: a bound object is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}
