//! The entries of a dictionary with few, known keys, in one pass.

#![allow(unsafe_code, reason = "a dictionary's items are borrowed")]

use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyDict, PyString};

/// Returns the values of a dictionary in the order of the interned `keys`; `None` in place of an absent key. Returns `None`
/// if the dictionary has another key, which only a look-up can compare with these. Does not call back into Python code.
pub fn entries_of<'py, const N: usize>(
    dict: &Bound<'py, PyDict>,
    keys: &[Py<PyString>; N],
) -> Option<[Option<Bound<'py, PyAny>>; N]> {
    // Without the GIL another thread may change the dictionary meanwhile; with it, this is nothing.
    with_critical_section(dict, || {
        let mut found = [const { None }; N];
        let (mut position, mut key, mut value) = (0, null_mut(), null_mut());
        // SAFETY: a live dictionary, which no other thread changes in the critical section, and nothing here does.
        while unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut position, &raw mut key, &raw mut value) } != 0 {
            let place = keys.iter().position(|known| known.as_ptr() == key)?;
            // SAFETY: the dictionary keeps the value.
            found[place] = Some(unsafe { Bound::from_borrowed_ptr(dict.py(), value) });
        }
        Some(found)
    })
}
