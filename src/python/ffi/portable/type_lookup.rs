//! Attributes of types, by the dictionaries of their bases.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

/// Returns the attribute of a type or its bases, unbound: runs no foreign code, and ignores the metaclass.
pub fn on_type<'py>(ty: &Bound<'py, PyType>, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    // Fails only without memory, and then the attribute counts as absent.
    ty.mro().iter().find_map(|base| in_dictionary(&base, name).ok().flatten())
}

/// Returns an attribute of one type without its bases.
fn in_dictionary<'py>(base: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    // The `__dict__` that every type has, as a metaclass may define another.
    static GET_DICT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = base.py();
    let get_dict = GET_DICT.get_or_try_init(py, || {
        let types = py.get_type::<PyType>().getattr(intern!(py, "__dict__"))?;
        let descriptor = types.get_item(intern!(py, "__dict__"))?;
        Ok::<_, PyErr>(descriptor.getattr(intern!(py, "__get__"))?.unbind())
    })?;
    let dictionary = get_dict.bind(py).call1((base,))?;
    // Asked first, as `get_item` makes a KeyError for an absent name.
    if dictionary.contains(name)? { dictionary.get_item(name).map(Some) } else { Ok(None) }
}
