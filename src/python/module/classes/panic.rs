//! Panics of PyO3 for want of memory become `MemoryError`.

use pyo3::exceptions::PyMemoryError;
use pyo3::panic::PanicException;
use pyo3::prelude::*;

use crate::python::ffi::new_error;

/// The `__init__` of `PanicException`. What it raises takes the place of the new exception.
#[pyfunction]
fn init(message: &str) -> PyResult<()> {
    if new_error::is_without_memory(message) { Err(PyMemoryError::new_err(())) } else { Ok(()) }
}

/// PyO3 panics where Python cannot make a tuple or a string, and makes a `PanicException` of each panic in a method. That is not
/// an `Exception`: few programs expect it.
pub(super) fn register(py: Python<'_>) -> PyResult<()> {
    py.get_type::<PanicException>().setattr("__init__", wrap_pyfunction!(init, py)?)
}
