//! `Signature.bind`: a stencil calls it for each of its calls.

#![allow(unsafe_code, reason = "the interpreter calls the method with raw pointers")]

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::python::convert::errors;
use crate::python::ffi::fastcall::{self, Definition};
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::freelist;
use crate::python::module::signature::{PyBound, PySignature};

static BIND: Definition = Definition::new(
    c"bind",
    c"bind($self, /, **fields)
--

Check the arguments of a call, and permute their dimensions into the order that the stencil was written for.

Each is described as by `describe`. Its labels are trusted; one without labels is taken to be in the order of its
`FieldSpec`. Without an origin, the compute points of a field start after its lower halo, or at index 0.

Parameters
----------
fields
    The arrays, by the signature's names: anything that `describe` takes. None for optional fields that are absent.

Returns
-------
BoundCall
    Keeps the arrays alive. Use it in a `with` statement if an object has hooks (`acquire`, `touch`, `release`), or if
    fields may be copied.

Raises
------
TypeError
    A field is missing or unknown.
NotAnArrayError, DTypeError, DimsError, DeviceError, LayoutError, ExchangeError
    A field does not fit, or two disagree on a named size; the message names them. Written fields must be writable, and
    share no memory with another field, unless the signature allows it, or within themselves; strides for which this is too
    hard to decide are taken to share memory. Errors about all fields (one is missing or unknown, sizes differ) have the
    signature's text as a note.
Exception
    Exceptions of a producer pass through, with a note that names the field.

Warns
-----
LayoutWarning
    A field has another layout than the fast one, or is copied.

Example
-------
>>> import dlfield as dl, numpy as np
>>> sig = dl.Signature(inp=dl.FieldSpec(\"float64\", \"IJK\"))
>>> sig.bind(inp=np.zeros((3, 4, 5), \"float32\"))
Traceback (most recent call last):
    ...
dlfield.DTypeError: field \"inp\": dtype: expected float64, got float32
",
    bind,
);

unsafe extern "C" fn bind(
    signature: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls methods attached.
    let py = unsafe { Python::assume_attached() };
    fastcall::run_short(py, || {
        // SAFETY: the method is on this class, and the interpreter calls it with an instance.
        let signature = unsafe { Bound::from_borrowed_ptr(py, signature).cast_into_unchecked::<PySignature>() };
        if positional > 0 {
            return Err(given_by_position(py, signature.get(), positional));
        }
        // SAFETY: null, or a tuple of strings with as many values.
        let keywords = unsafe {
            Bound::from_borrowed_ptr_or_opt(py, keywords).map(|names| names.cast_into_unchecked::<PyTuple>())
        };
        // SAFETY: `keywords` are strings, and `values` has a live object for each.
        let given =
            keywords.iter().flat_map(|names| names.iter_borrowed()).enumerate().map(|(position, name)| unsafe {
                let place = signature.get().place(&name.cast_unchecked::<PyString>(), position)?;
                Ok((place, Borrowed::from_ptr(py, *values.add(position))))
            });
        let made = freelist::create(py, |bound: &mut PyBound| bound.fill(&signature, given))?;
        Ok(made.into_any())
    })
}

#[cold]
fn given_by_position(py: Python<'_>, signature: &PySignature, given: ffi::Py_ssize_t) -> PyErr {
    let fields = signature.example();
    let message = format!(
        "bind() takes keyword arguments only, but {} given by position; write bind({fields})",
        if given == 1 { "1 was".to_owned() } else { format!("{given} were") }
    );
    errors::noted(py, &signature.expected(), new_error::<PyTypeError>(message))
}

pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    BIND.set_on(&py.get_type::<PySignature>())
}
