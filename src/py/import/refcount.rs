//! Whether memory was made for one call, by the reference counts of the objects that have it.

#![allow(unsafe_code, reason = "references are counted, and an array's struct is read")]

use ::numpy::npyffi::{NPY_ARRAY_OWNDATA, PyArrayObject};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::py::numpy_type::is_array;

/// Whether nobody but the caller, who has one reference, knows of an array's memory: then it was made for this call.
/// Of memory that is not NumPy's nobody can tell.
pub(super) fn is_fresh(array: &Bound<'_, PyAny>) -> bool {
    let mut object = array.clone();
    // The clone is one reference more.
    let known_by = 2;
    while is_array(&object) && references(&object) <= known_by {
        // SAFETY: an array, whose base is NULL or alive.
        let (flags, base) = unsafe {
            let fields = &(*object.as_ptr().cast::<PyArrayObject>()).fields;
            (fields.flags, Bound::from_borrowed_ptr_or_opt(object.py(), fields.base))
        };
        if flags & NPY_ARRAY_OWNDATA != 0 {
            return true;
        }
        let Some(base) = base else { return false };
        object = base;
    }
    false
}

/// How many references to an object there are.
pub(super) fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: a bound object is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}
