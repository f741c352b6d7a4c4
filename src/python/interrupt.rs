//! What becomes of Ctrl+C while an error message is made.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// Drops an error that was raised while a message was made: the message says what was wrong first. An interrupt, such as Ctrl+C,
/// must not vanish: `sys.unraisablehook` gets it.
/// `of` is the object of the message.
pub(crate) fn report(error: &PyErr, of: &Bound<'_, PyAny>) {
    let py = of.py();
    if !error.is_instance_of::<PyException>(py) {
        error.clone_ref(py).write_unraisable(py, Some(of.get_type().as_any()));
    }
}
