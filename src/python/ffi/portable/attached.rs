//! No shorter way: PyO3 attaches the thread.

use pyo3::prelude::*;

/// Runs `body` attached; `None` if the interpreter has ended.
pub fn attach<R>(body: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    Python::try_attach(body)
}
