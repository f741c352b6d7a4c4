//! Attributes of types, by the dictionaries of their bases. The private `_PyType_Lookup` would save nothing measurable.

#![allow(unsafe_code, reason = "PyO3 has no call for the dictionary of a type")]

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

/// Returns the attribute of a type or its bases, unbound: runs no foreign code, and ignores the metaclass.
pub fn on_type<'py>(ty: &Bound<'py, PyType>, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    // A look-up by a string fails only without memory, and then the attribute counts as absent.
    ty.mro().iter().find_map(|base| dictionary(base.cast().ok()?)?.get_item(name).ok().flatten())
}

/// Returns the module that defines a type, without running foreign code; `None` if the type does not name one.
///
/// Types in C name their module in `tp_name` alone, without an entry in the dictionary: so do Cython's classes, such as
/// `cupy.cuda.Device`.
pub fn module_of(ty: &Bound<'_, PyType>) -> Option<String> {
    let name = intern!(ty.py(), "__module__");
    let module = match on_type(ty, name) {
        Some(module) => module,
        // Without a metaclass the interpreter itself splits the C name.
        None if ty.is_exact_instance_of::<PyType>() => ty.getattr(name).ok()?,
        None => return None,
    };
    Some(module.cast::<PyString>().ok()?.to_string_lossy().into_owned())
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
