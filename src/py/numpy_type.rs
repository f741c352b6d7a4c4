//! NumPy's array type, without importing NumPy.

#![allow(unsafe_code, reason = "types and array structs are read as the C structs they are")]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use numpy::get_array_module;
use numpy::npyffi::{NPY_ARRAY_OWNDATA, NpyTypes, PyArrayObject, get_type_object};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3::{ffi, intern};

use super::getattr::loaded;

/// NumPy's array type; NULL as long as NumPy is not known to be there.
static ARRAY: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

/// NumPy's array type, or NULL: nobody has an array before NumPy is imported, so it is not imported for this.
#[inline]
fn array_type(py: Python<'_>) -> *mut ffi::PyTypeObject {
    let known = ARRAY.load(Ordering::Relaxed);
    if known.is_null() { find(py).unwrap_or(null_mut()) } else { known }
}

#[cold]
fn find(py: Python<'_>) -> PyResult<*mut ffi::PyTypeObject> {
    if loaded(py, "numpy")?.is_none() {
        return Ok(null_mut());
    }
    require(py)?;
    Ok(ARRAY.load(Ordering::Relaxed))
}

/// Imports NumPy, where it is needed: its C API would panic without.
pub(super) fn require(py: Python<'_>) -> PyResult<()> {
    if ARRAY.load(Ordering::Relaxed).is_null() {
        get_array_module(py)?.getattr(intern!(py, "_ARRAY_API"))?.cast_into::<PyCapsule>()?;
        // SAFETY: the interpreter is attached, and NumPy's C API there; the call returns NumPy's type object.
        ARRAY.store(unsafe { get_type_object(py, NpyTypes::PyArray_Type) }, Ordering::Relaxed);
    }
    Ok(())
}

/// Whether the object is a `numpy.ndarray` and no subclass of it.
#[inline]
pub(super) fn is_exact(object: &Bound<'_, PyAny>) -> bool {
    object.get_type_ptr() == array_type(object.py())
}

/// Whether the object is a `numpy.ndarray`.
pub(super) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    let array = array_type(object.py());
    // SAFETY: two live types.
    !array.is_null() && unsafe { ffi::PyType_IsSubtype(object.get_type_ptr(), array) != 0 }
}

/// The object that an array has its memory from, if it is not the array's own.
#[inline]
pub(super) fn base<'py>(array: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the callers have checked the type; the base is NULL or an object that the array keeps.
    unsafe {
        let fields = &(*array.as_ptr().cast::<PyArrayObject>()).fields;
        // A copy that is to be written back has memory of its own and a base.
        let borrowed = fields.flags & NPY_ARRAY_OWNDATA == 0;
        if borrowed { Bound::from_borrowed_ptr_or_opt(array.py(), fields.base) } else { None }
    }
}
