//! The `repr` of an argument, for an error message.

use std::cell::Cell;

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString, PyType};

use crate::python::interrupt;

thread_local! {
    /// Whether a `__repr__` runs for a message.
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// The end of a `__repr__`, also if it unwinds.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        RUNS.set(false);
    }
}

/// The `repr` of an object, if it has one. While another object's `__repr__` runs, only that of builtin classes: a `__repr__` that
/// calls dlfield, and fails there, would otherwise be called again by each of these calls, and take twice the time with each
/// level.
pub fn of(value: &Bound<'_, PyAny>) -> Option<String> {
    let is_builtin = value.is_exact_instance_of::<PyType>()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>();
    if !is_builtin && RUNS.get() {
        return None;
    }
    let running = (!is_builtin).then(|| {
        RUNS.set(true);
        Running
    });
    let text = value.repr();
    drop(running);
    match text {
        Ok(text) => Some(text.to_string()),
        Err(error) => {
            interrupt::report(&error, value);
            None
        }
    }
}
