//! Attributes that may be absent. Before 3.13 an absent one makes an `AttributeError`.

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Returns an attribute of the object; `None` if it is absent. Errors other than `AttributeError` reach the caller.
pub fn getattr_opt<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    object.getattr_opt(name)
}
