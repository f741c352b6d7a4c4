//! New exceptions, also if Python has no memory for their messages, and those of panics, which must not unwind into C.
//!
//! PyO3 turns the message of a new exception into a Python string when it hands the exception to Python. No error can be
//! returned from there any more: without memory for the string the process ends. Here it is made at once, and its own error,
//! `MemoryError`, takes the place of the exception.

use std::any::Any;
use std::fmt::Display;

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::error::ErrorOf;
use crate::python::nearest::did_you_mean;

/// The message of an exception that has no layer in the core: "argument: expected X, got Y; fix".
pub type ArgumentError = ErrorOf<()>;

/// Makes an exception of a builtin class.
pub fn new_error<E: PyTypeInfo>(message: impl Display) -> PyErr {
    let message = message.to_string();
    let made = Python::try_attach(|py| new_error_of(&py.get_type::<E>(), &message));
    // While the interpreter ends, attaching fails.
    made.unwrap_or_else(|| PyErr::new::<E, _>(message))
}

/// Makes an exception of this class.
pub fn new_error_of(class: &Bound<'_, PyType>, message: impl AsRef<str>) -> PyErr {
    match PyString::from_bytes(class.py(), message.as_ref().as_bytes()) {
        Ok(text) => PyErr::from_type(class.clone(), text.unbind()),
        Err(error) => error,
    }
}

/// Returns the error for a keyword that `function` does not have, with what to write in its place: `hints` has the words of
/// other libraries; else the nearest of the known names, or all of them.
#[cold]
pub fn unexpected_keyword(py: Python<'_>, function: &str, got: &str, hints: &[(&str, &str)], known: &[&str]) -> PyErr {
    let hint = match hints.iter().find(|(word, _)| *word == got) {
        Some((_, hint)) => format!("; {hint}"),
        None => match did_you_mean(py, got, known) {
            nearest if nearest.is_empty() => format!("; it takes {}", known.join(", ")),
            nearest => nearest,
        },
    };
    new_error::<PyTypeError>(format!("{function}() got an unexpected keyword argument '{got}'{hint}"))
}

/// What PyO3 panics with where Python could not make an object. Python's own error is gone by then.
const NO_OBJECT: &str = "PyObject pointer is null";

/// Makes the exception for a panic.
#[cold]
pub fn of_panic(payload: &(dyn Any + Send)) -> PyErr {
    match payload.downcast_ref::<&str>() {
        Some(&NO_OBJECT) => PyMemoryError::new_err(()),
        _ => new_error::<PyRuntimeError>("dlfield: internal error"),
    }
}

/// Whether PyO3 panicked with this message for want of memory.
pub fn is_without_memory(message: &str) -> bool {
    message == NO_OBJECT
}
