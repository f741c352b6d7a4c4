//! A NumPy array in the list of borrows of another extension: the table of functions that rust-numpy publishes, and one entry.
//!
//! Source: `borrow/shared.rs` of rust-numpy 0.30, whose table has version 1.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull, null_mut};

use numpy::npyffi::{NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, PyArrayObject, get_type_object};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::python::ffi::numpy_api;

/// What an error says of a borrow that is not one of this extension's arguments.
pub(super) const BORROWS: &str =
    "borrows (as PyReadonlyArray or PyReadwriteArray of rust-numpy, or in another extension)";

/// The table. `acquire` returns 0, -1 for an array that is borrowed already, -2 for a read-only one. Later versions append
/// fields.
#[repr(C)]
pub(super) struct Table {
    pub(super) version: u64,
    pub(super) flags: *mut c_void,
    pub(super) acquire: unsafe extern "C" fn(*mut c_void, *mut PyArrayObject) -> c_int,
    pub(super) acquire_mut: unsafe extern "C" fn(*mut c_void, *mut PyArrayObject) -> c_int,
    pub(super) release: unsafe extern "C" fn(*mut c_void, *mut PyArrayObject),
    pub(super) release_mut: unsafe extern "C" fn(*mut c_void, *mut PyArrayObject),
}

// SAFETY: never written to.
unsafe impl Sync for Table {}

/// An array in the list of another extension, until this is dropped, which may run code of others. It is entered as a view that is
/// made here.
pub(super) struct Held {
    pub(super) table: &'static Table,
    /// The only reference to the view.
    pub(super) view: NonNull<PyArrayObject>,
    /// The last base of the view, by which rust-numpy finds it.
    pub(super) base: *mut ffi::PyObject,
    writes: bool,
    pub(super) is_entered: Cell<bool>,
}

impl Held {
    /// Makes a view, which is not entered yet.
    pub(super) fn new(table: &'static Table, view: Bound<'_, PyAny>, writes: bool) -> Option<Held> {
        let base = last_base(view.py(), view.as_ptr().cast());
        let view = NonNull::new(view.into_ptr().cast())?;
        Some(Held { table, view, base, writes, is_entered: Cell::new(false) })
    }

    /// Enters the view. Returns whether nothing conflicts.
    pub(super) fn enter(&self, _: Python<'_>) -> bool {
        let acquire = if self.writes { self.table.acquire_mut } else { self.table.acquire };
        // SAFETY: the thread is attached, and this struct keeps the view.
        self.is_entered.set(unsafe { acquire(self.table.flags, self.view.as_ptr()) } == 0);
        self.is_entered.get()
    }

    /// Removes the view. rust-numpy looks for it by its last base, and ends the process if it is not there: if the array that it
    /// was made of has another base by now (`array.__setstate__`), it stays in the list.
    pub(super) fn leave(&self, py: Python<'_>) {
        let release = if self.writes { self.table.release_mut } else { self.table.release };
        if self.is_entered.replace(false) && self.has_same_base(py) {
            // SAFETY: as for `enter`; entered once, and removed once.
            unsafe { release(self.table.flags, self.view.as_ptr()) }
        }
    }

    pub(super) fn has_same_base(&self, py: Python<'_>) -> bool {
        ptr::eq(last_base(py, self.view.as_ptr()), self.base)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: borrows are entered and removed by attached threads. PyO3 does not know of that if another extension calls,
        // so this is not a `Py`.
        unsafe {
            self.leave(Python::assume_attached());
            ffi::Py_DECREF(self.view.as_ptr().cast());
        }
    }
}

/// Makes an array on memory of another one, which keeps the same last base. It is not to be read or written: its memory may be
/// gone. `None` if there is no memory for it.
///
/// # Safety
/// - `array` is an array, and there are `ndim` extents and strides.
pub(super) unsafe fn view_of<'py>(
    py: Python<'py>,
    array: *mut PyArrayObject,
    dtype: Bound<'py, PyAny>,
    ndim: c_int,
    shape: *mut isize,
    strides: *mut isize,
    data: *mut c_void,
) -> Option<Bound<'py, PyAny>> {
    // SAFETY: NumPy's own functions; the first takes over a reference to the dtype, the second one to the base, which lives.
    unsafe {
        let ty = get_type_object(py, NpyTypes::PyArray_Type);
        let (dtype, flags) = (dtype.into_ptr().cast(), NPY_ARRAY_WRITEABLE);
        let made = PY_ARRAY_API.PyArray_NewFromDescr(py, ty, dtype, ndim, shape, strides, data, flags, null_mut());
        let view = Bound::from_owned_ptr_or_opt(py, made).filter(|_| {
            let base = Bound::from_borrowed_ptr(py, last_base(py, array)).into_ptr();
            PY_ARRAY_API.PyArray_SetBaseObject(py, made.cast(), base) == 0
        });
        if view.is_none() {
            drop(PyErr::take(py));
        }
        view
    }
}

/// The object at the end of an array's chain of bases.
fn last_base(py: Python<'_>, array: *mut PyArrayObject) -> *mut ffi::PyObject {
    // SAFETY: an array, whose base is NULL or an object that it keeps alive; the same holds for bases that are arrays.
    unsafe {
        let mut last = Bound::from_borrowed_ptr(py, array.cast());
        while numpy_api::is_array(&last) {
            let base = (*last.as_ptr().cast::<PyArrayObject>()).fields.base;
            let Some(base) = Bound::from_borrowed_ptr_or_opt(py, base) else { break };
            last = base;
        }
        last.as_ptr()
    }
}
