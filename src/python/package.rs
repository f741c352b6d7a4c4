//! The package `dlfield` as Rust calls it: one object with its functions, which the package registers when it is imported.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::python::ffi::new_error::new_error;

static FUNCTIONS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Registers the object whose attributes are the package's functions. Later calls have no effect.
pub fn register(functions: &Bound<'_, PyAny>) {
    FUNCTIONS.get_or_init(functions.py(), || functions.clone().unbind());
}

/// Returns that object.
///
/// # Errors
/// `ImportError` while the package is still being imported.
pub fn functions(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let absent = || new_error::<PyImportError>("dlfield: the package is not imported yet");
    Ok(FUNCTIONS.get(py).ok_or_else(absent)?.bind(py))
}
