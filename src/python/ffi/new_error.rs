//! New exceptions, also where there is no memory for their messages.
//!
//! PyO3 turns the message of a new exception into a Python string when it hands the exception to Python. No error can be
//! returned from there any more: without memory for the string the process ends. Here it is made at once, and its own error,
//! `MemoryError`, takes the place of the exception.

use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// Makes an exception of a builtin class.
pub fn new_error<E: PyTypeInfo>(message: impl AsRef<str>) -> PyErr {
    let message = message.as_ref();
    let made = Python::try_attach(|py| new_error_of(&py.get_type::<E>(), message));
    // While the interpreter ends, attaching fails.
    made.unwrap_or_else(|| PyErr::new::<E, _>(message.to_owned()))
}

/// Makes an exception of this class.
pub fn new_error_of(class: &Bound<'_, PyType>, message: impl AsRef<str>) -> PyErr {
    match PyString::from_bytes(class.py(), message.as_ref().as_bytes()) {
        Ok(text) => PyErr::from_type(class.clone(), text.unbind()),
        Err(error) => error,
    }
}
