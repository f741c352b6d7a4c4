//! Panics, which must not unwind into C.

use std::any::Any;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;

use crate::python::ffi::new_error::new_error;

/// What PyO3 panics with where Python could not make an object. Python's own error is gone by then.
const NO_OBJECT: &str = "PyObject pointer is null";

/// Makes the exception for a panic.
#[cold]
pub fn to_error(payload: &(dyn Any + Send)) -> PyErr {
    match payload.downcast_ref::<&str>() {
        Some(&NO_OBJECT) => PyMemoryError::new_err(()),
        _ => new_error::<PyRuntimeError>("dlfield: internal error"),
    }
}

/// Whether PyO3 panicked with this message for want of memory.
pub fn is_without_memory(message: &str) -> bool {
    message == NO_OBJECT
}
