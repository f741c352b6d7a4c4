//! Attributes of types: `_PyType_Lookup`.

#![allow(unsafe_code, reason = "the interpreter's own call is used, for its speed")]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

unsafe extern "C" {
    /// Exported by every version, but not part of the documented API. The reference that it returns is borrowed, which the
    /// GIL keeps alive.
    fn _PyType_Lookup(ty: *mut ffi::PyTypeObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject;
}

/// Returns the attribute of a type or its bases, unbound: runs no foreign code, and ignores the metaclass.
pub fn on_type<'py>(ty: &Bound<'py, PyType>, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: a live type and a string; the call returns a borrowed reference, or NULL without an error.
    unsafe { Bound::from_borrowed_ptr_or_opt(ty.py(), _PyType_Lookup(ty.as_type_ptr(), name.as_ptr())) }
}
