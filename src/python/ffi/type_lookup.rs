//! Attributes of types, by the dictionaries of their bases. The private `_PyType_Lookup` would save nothing measurable.

#![allow(unsafe_code, reason = "PyO3 has no call for the dictionary of a type")]

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

/// Returns the attribute of a type or its bases, unbound: runs no foreign code, and ignores the metaclass.
pub fn on_type<'py>(ty: &Bound<'py, PyType>, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    // A look-up by a string fails only without memory, and then the attribute counts as absent.
    ty.mro().iter().find_map(|base| dictionary(base.cast().ok()?)?.get_item(name).ok().flatten())
}

/// Returns the dictionary of a type, without those of its bases.
#[cfg(Py_3_12)]
fn dictionary<'py>(ty: &Bound<'py, PyType>) -> Option<Bound<'py, PyDict>> {
    // SAFETY: a live type; the result is a new reference, or NULL without an error.
    let found = unsafe { Bound::from_owned_ptr_or_opt(ty.py(), pyo3::ffi::PyType_GetDict(ty.as_type_ptr())) };
    found?.cast_into().ok()
}

/// As above. Before `PyType_GetDict` the field was the documented way.
#[cfg(not(Py_3_12))]
fn dictionary<'py>(ty: &Bound<'py, PyType>) -> Option<Bound<'py, PyDict>> {
    // SAFETY: a live type, whose dictionary is NULL or a live object.
    let found = unsafe { Bound::from_borrowed_ptr_or_opt(ty.py(), (*ty.as_type_ptr()).tp_dict) };
    found?.cast_into().ok()
}
