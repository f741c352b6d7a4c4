//! The items of a dictionary.

#![allow(unsafe_code, reason = "PyO3's iterator takes as long as a look-up for each entry")]

use std::ptr::null_mut;

use pyo3::ffi;

/// Calls `seen` with the key and the value of each item, in the order of insertion, until it returns `false`; returns whether it
/// never did. Runs no foreign code.
///
/// # Safety
/// - A live dictionary, which does not change meanwhile.
pub unsafe fn all_items(
    dictionary: *mut ffi::PyObject,
    mut seen: impl FnMut(*mut ffi::PyObject, *mut ffi::PyObject) -> bool,
) -> bool {
    let (mut position, mut key, mut value) = (0, null_mut(), null_mut());
    // SAFETY: passed on from the caller.
    while unsafe { ffi::PyDict_Next(dictionary, &raw mut position, &raw mut key, &raw mut value) } != 0 {
        if !seen(key, value) {
            return false;
        }
    }
    true
}
