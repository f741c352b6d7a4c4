//! What objects want to have called before and after a stencil, and the errors of all of them together.

use pyo3::exceptions::PyBaseException;
use pyo3::intern;
use pyo3::prelude::*;

/// Errors of calls that all had to be made.
#[derive(Default)]
pub(super) struct Errors(Vec<PyErr>);

impl Errors {
    /// Calls a hook, if there is one.
    pub(super) fn call(&mut self, py: Python<'_>, hook: Option<&Py<PyAny>>) {
        if let Some(hook) = hook {
            self.hear(hook.call0(py).map(drop));
        }
    }

    /// Notes an error.
    pub(super) fn hear(&mut self, outcome: PyResult<()>) {
        self.0.extend(outcome.err());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The error there was; several as a group.
    pub(super) fn raise(mut self, py: Python<'_>) -> PyResult<()> {
        match self.0.len() {
            0 => Ok(()),
            1 => self.0.pop().map_or(Ok(()), Err),
            _ => {
                let errors: Vec<Bound<'_, PyBaseException>> =
                    self.0.into_iter().map(|error| error.into_value(py).into_bound(py)).collect();
                let group = py.import(intern!(py, "builtins"))?.getattr(intern!(py, "BaseExceptionGroup"))?;
                Err(PyErr::from_value(group.call1(("several hooks failed", errors))?))
            }
        }
    }
}
