//! Calls of the objects' hooks before and after a stencil, and their errors.

use pyo3::exceptions::PyBaseException;
use pyo3::intern;
use pyo3::prelude::*;

use crate::python::convert::errors;

/// Errors of calls that are all made, even if one fails.
#[derive(Default)]
pub(crate) struct Errors(Vec<PyErr>);

impl Errors {
    /// Calls a field's hook, if there is one.
    pub(crate) fn call(&mut self, py: Python<'_>, field: &str, name: &str, hook: Option<&Py<PyAny>>) {
        if let Some(hook) = hook {
            let called = hook.call0(py).map(drop);
            self.add(called.map_err(|error| errors::noted(py, &format!("field {field:?}: {name}"), error)));
        }
    }

    /// Adds an error.
    pub(crate) fn add(&mut self, outcome: PyResult<()>) {
        self.0.extend(outcome.err());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the error; several as a group.
    pub(crate) fn raise(mut self, py: Python<'_>) -> PyResult<()> {
        match self.0.len() {
            0 => Ok(()),
            1 => self.0.pop().map_or(Ok(()), Err),
            _ => {
                let errors: Vec<Bound<'_, PyBaseException>> =
                    self.0.into_iter().map(|error| error.into_value(py).into_bound(py)).collect();
                let group = py.import(intern!(py, "builtins"))?.getattr(intern!(py, "BaseExceptionGroup"))?;
                let group = group.call1(("several hooks failed", errors))?;
                // As `raise` would do: keeps the exception of the body as the context.
                let handled = py.import(intern!(py, "sys"))?.call_method0(intern!(py, "exception"))?;
                group.setattr(intern!(py, "__context__"), handled)?;
                Err(PyErr::from_value(group))
            }
        }
    }
}
