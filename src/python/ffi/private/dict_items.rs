//! The items of a dictionary, read from its table: with Python 3.11 a sixth of the instructions of `PyDict_Next`.

#![allow(unsafe_code, reason = "dictionaries are read as the C structs they are")]

use std::ptr::null_mut;

use pyo3::ffi;

/// `PyDictKeysObject`, without the table of indices and the entries that follow.
#[repr(C)]
pub(super) struct Keys {
    refcnt: isize,
    log2_size: u8,
    log2_index_bytes: u8,
    kind: u8,
    version: u32,
    usable: isize,
    nentries: isize,
}

/// `PyDictUnicodeEntry`: an entry of a dictionary in which all keys are exact strings.
#[repr(C)]
pub(super) struct Entry {
    pub(super) key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
}

/// The kinds of dictionaries in which all keys are exact strings: with values beside the keys, and with values elsewhere, as
/// several dictionaries share the keys.
const UNICODE: u8 = 1;
pub(super) const SPLIT: u8 = 2;

impl Keys {
    /// Returns the entries in the order of insertion if the keys are of this kind. Deleted ones have no value, and shared ones
    /// have it elsewhere.
    ///
    /// # Safety
    /// - The keys of a live dictionary or type, which do not change while the entries are used.
    #[inline]
    pub(super) unsafe fn entries<'a>(keys: *const Keys, kind: u8) -> Option<&'a [Entry]> {
        // SAFETY: passed on from the caller; the entries follow the table of indices.
        unsafe {
            if (*keys).kind != kind {
                return None;
            }
            let count = usize::try_from((*keys).nentries).unwrap_or(0);
            if count == 0 {
                // No entries follow, and what follows may be out of their alignment.
                return Some(&[]);
            }
            let first = keys.add(1).byte_add(1 << (*keys).log2_index_bytes).cast::<Entry>();
            Some(std::slice::from_raw_parts(first, count))
        }
    }
}

/// Calls `seen` with the key and the value of each item, in the order of insertion, until it returns `false`; returns whether it
/// never did. Runs no foreign code.
///
/// # Safety
/// - A live dictionary, which does not change meanwhile.
#[inline(always)]
pub unsafe fn all_items(
    dictionary: *mut ffi::PyObject,
    mut seen: impl FnMut(*mut ffi::PyObject, *mut ffi::PyObject) -> bool,
) -> bool {
    // The layout of later versions is not known.
    if cfg!(not(Py_3_14)) {
        // SAFETY: passed on from the caller: the structs of 3.11 to 3.13.
        let entries = unsafe { Keys::entries((*dictionary.cast::<ffi::PyDictObject>()).ma_keys.cast(), UNICODE) };
        if let Some(entries) = entries {
            return entries.iter().all(|entry| entry.value.is_null() || seen(entry.key, entry.value));
        }
    }
    let (mut position, mut key, mut value) = (0, null_mut(), null_mut());
    // SAFETY: passed on from the caller.
    while unsafe { ffi::PyDict_Next(dictionary, &raw mut position, &raw mut key, &raw mut value) } != 0 {
        if !seen(key, value) {
            return false;
        }
    }
    true
}
