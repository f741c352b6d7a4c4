//! Interrupts, which are errors that are not an `Exception`: Ctrl+C and `sys.exit`; and `MemoryError`. They reach the caller also where
//! any other error only means that there is no answer.

use std::cell::{Cell, RefCell};

use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyMemoryError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::interrupt::interruptible;
use crate::python::ffi::attach::raise_in_main_thread;

thread_local! {
    /// Whether Python handles signals in this thread: the main one; `None` if that was not asked yet.
    static HANDLES_SIGNALS: Cell<Option<bool>> = const { Cell::new(None) };
    /// What a handler of a signal raised, which has stopped the work of this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs long work without the GIL, which a signal stops: [`crate::Error::Interrupted`] becomes what its handler raises.
pub fn detach<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    interruptible(is_interrupted, || py.detach(work))
}

/// Has Python handle the signals that have come. Returns whether a handler has raised an exception.
fn is_interrupted() -> bool {
    if HANDLES_SIGNALS.get() == Some(false) {
        return false;
    }
    Python::attach(|py| {
        let handled = match HANDLES_SIGNALS.get() {
            Some(_) => py.check_signals(),
            // This runs Python code, which handles signals.
            None => is_main_thread(py).and_then(|is_main| {
                HANDLES_SIGNALS.set(Some(is_main));
                py.check_signals()
            }),
        };
        handled.map_err(|error| RAISED.replace(Some(error))).is_err()
    })
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let main = threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?;
    main.eq(threading.call_method0(intern!(py, "get_ident"))?)
}

/// Returns the exception that has stopped the work of this thread.
pub fn raised() -> PyErr {
    RAISED.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}

/// Whether an error is not an `Exception`, as `KeyboardInterrupt` and `SystemExit` are, or a `MemoryError`.
pub fn is_interrupt(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyException>(py) || error.is_instance_of::<PyMemoryError>(py)
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

/// Drops an error where none can be returned, such as that of a message, which says what was wrong first. An error that is no
/// `Exception` is put off: the main thread, which handles signals, raises it as soon as it runs Python code. That of another
/// thread goes to `sys.unraisablehook`.
#[cold]
pub fn put_off(py: Python<'_>, error: &PyErr) {
    let is_exception = error.is_instance_of::<PyException>(py);
    if !(is_exception || is_main_thread(py).unwrap_or(false) && raise_in_main_thread(py, error)) {
        error.clone_ref(py).write_unraisable(py, None);
    }
}
