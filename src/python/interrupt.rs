//! Interrupts, which are errors that are no `Exception`: Ctrl+C and `sys.exit`. They reach the caller also where any other error
//! only means that there is no answer.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// Whether an error is no `Exception`, as `KeyboardInterrupt` and `SystemExit` are.
pub fn is_interrupt(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyException>(py)
}

/// Returns what was found, `None` if that failed.
///
/// # Errors
/// An interrupt.
pub fn answer<T>(py: Python<'_>, found: PyResult<T>) -> PyResult<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_interrupt(py, &error) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Drops an error that was raised while a message was made: the message says what was wrong first. `sys.unraisablehook` gets
/// an interrupt. `of` is the object of the message.
pub fn report(error: &PyErr, of: &Bound<'_, PyAny>) {
    let py = of.py();
    if is_interrupt(py, error) {
        error.clone_ref(py).write_unraisable(py, Some(of.get_type().as_any()));
    }
}
