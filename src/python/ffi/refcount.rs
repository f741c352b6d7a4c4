//! Tells by reference counts whether an array, and thus its memory, was made for one call.

#![allow(unsafe_code, reason = "references are counted, and an array's struct is read")]

use ::numpy::npyffi::{NPY_ARRAY_OWNDATA, PyArrayObject};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::python::ffi::numpy_api::is_array;

/// Whether an array's memory was made for this call: the caller has the only reference to the array, and so on along its
/// bases. `false` for memory that NumPy does not own, as nothing tells.
pub fn is_fresh(array: &Bound<'_, PyAny>) -> bool {
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

/// Returns the number of references to an object.
pub fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: a bound object is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}
