//! The list of borrowed NumPy arrays that extensions share through NumPy's module: rust-numpy's `PyReadonlyArray` and
//! `PyReadwriteArray` are entered there.
//!
//! The first extension that borrows an array publishes a table of functions, and all others call these. If it is this
//! extension, rust-numpy borrows from the ledger, which compares addresses: the ledger needs no second list. If another
//! extension was first, each NumPy array is entered in its list too, as rust-numpy does.

#![allow(
    clippy::arc_with_non_send_sync,
    reason = "attached threads count; the addresses in it are of objects that it keeps"
)]
#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{self, NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use numpy::get_array_module;
use numpy::npyffi::{NPY_ARRAY_WRITEABLE, PyArrayObject};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::protocol::ExchangeError;
use crate::python::ffi::numpy_api;
use crate::python::from_py::entry::BorrowAccess;
use crate::python::from_py::ledger::{self, with_ledger};
use crate::python::from_py::shared_list::{BORROWS, Geometry, Listed, Table};
use crate::python::from_py::threads;
use crate::python::interrupt;

const NAME: &CStr = c"_RUST_NUMPY_BORROW_CHECKING_API";

static OURS: Table = Table {
    version: 1,
    flags: null_mut(),
    acquire: acquire_to_read,
    acquire_mut: acquire_to_write,
    release: release_array,
    release_mut: release_array,
};

/// The table of this process; NULL until NumPy is imported and an argument is borrowed.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(null_mut());

/// Whether the ledger is not known to be the only list: arrays must be entered in another one too, or NumPy was not imported
/// at the last look.
#[inline]
pub(super) fn may_have_other_list() -> bool {
    !ptr::eq(TABLE.load(Ordering::Relaxed), &raw const OURS)
}

/// The table of another extension.
fn other_table(py: Python<'_>) -> Option<&'static Table> {
    if TABLE.load(Ordering::Relaxed).is_null() && numpy_api::is_imported() {
        // Without memory for the capsule: looked for again by the next argument.
        let found = publish(py).inspect_err(|error| interrupt::put_off(py, error));
        TABLE.store(found.unwrap_or(null_mut()), Ordering::Relaxed);
    }
    let table = TABLE.load(Ordering::Relaxed);
    // SAFETY: a table that was published stays, as `publish` keeps its capsule.
    if may_have_other_list() { unsafe { table.as_ref() } } else { None }
}

/// Publishes the table of this extension unless there is one, and returns the one that counts.
fn publish(py: Python<'_>) -> PyResult<*mut Table> {
    let ours = (&raw const OURS).cast_mut();
    // SAFETY: the table and its name are never dropped; the call returns a new reference, or NULL with an exception.
    let capsule = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(ours.cast(), NAME.as_ptr(), None))? };
    let name = PyString::from_bytes(py, NAME.to_bytes())?;
    let found = get_array_module(py)?.dict().call_method1("setdefault", (name, capsule))?;
    // SAFETY: the first call accepts any object and tells whether the second succeeds. All tables begin with the version.
    let table = unsafe {
        if ffi::PyCapsule_IsValid(found.as_ptr(), NAME.as_ptr()) == 0 {
            // rust-numpy cannot borrow any array either.
            return Ok(ours);
        }
        let table = ffi::PyCapsule_GetPointer(found.as_ptr(), NAME.as_ptr()).cast::<Table>();
        if *table.cast::<u64>() == 0 { ours } else { table }
    };
    // Kept for good, as the table belongs to the capsule.
    let _ = found.into_ptr();
    Ok(table)
}

/// Enters a NumPy array in the list of another extension, if there is one. Nothing is entered if `object` is no array, or not
/// that of the memory at `start`.
///
/// # Errors
/// [`ExchangeError::Borrowed`] if a borrow there conflicts.
pub(super) fn enter(object: &Bound<'_, PyAny>, start: *mut u8, access: BorrowAccess) -> Result<Option<Arc<Listed>>> {
    let py = object.py();
    let Some(table) = other_table(py).filter(|_| numpy_api::is_array(object)) else { return Ok(None) };
    let Some(array) = NonNull::new(object.as_ptr().cast::<PyArrayObject>()) else { return Ok(None) };
    let borrowed = Geometry::of(py, array);
    if borrowed.data != start.addr() {
        return Ok(None);
    }
    // SAFETY: an array, which keeps its dtype.
    let dtype = unsafe { Bound::from_borrowed_ptr(py, (*array.as_ptr()).fields.descr.cast()).unbind() };
    let writes = access == BorrowAccess::Write;
    let listed = Listed { table, array, writes, dtype, view: None, borrowed };
    match listed.acquire() {
        0 => return Ok(Some(Arc::new(listed))),
        -2 => return Err(ExchangeError::ReadOnly { field: "flags", fix: "pass a writable array" }.into()),
        _ => {}
    }
    let wanted = if writes { "written" } else { "read" };
    let entered = enter_with_own(py, &listed).ok_or(ExchangeError::Borrowed { held: BORROWS, wanted })?;
    Ok(Some(entered))
}

/// Enters an array that the list rejects only because of this extension's own arguments: rust-numpy takes some arrays for
/// overlapping that share no element, and the ledger has compared them exactly. All of them are then entered as one.
#[cfg(not(Py_GIL_DISABLED))]
#[cold]
fn enter_with_own(py: Python<'_>, new: &Listed) -> Option<Arc<Listed>> {
    let mut own: Vec<Arc<Listed>> = Vec::new();
    with_ledger(py, |ledger| {
        for listed in ledger.listed() {
            let is_near = listed.borrowed.base == new.borrowed.base;
            if is_near && !own.iter().any(|known| Arc::ptr_eq(known, listed)) {
                own.push(Arc::clone(listed));
            }
        }
    });
    if own.is_empty() || !own.iter().all(|listed| listed.is_unchanged(py)) {
        return None;
    }
    let parts: Vec<&Listed> = own.iter().map(|listed| &**listed).chain([new]).collect();
    let all = Arc::new(Listed::of_all(py, &parts)?);
    // No other thread borrows meanwhile: no code runs that releases the GIL.
    own.iter().for_each(|listed| listed.release(py));
    if all.acquire() != 0 {
        for listed in &own {
            listed.acquire();
        }
        return None;
    }
    with_ledger(py, |ledger| {
        for listed in ledger.listed().filter(|listed| own.iter().any(|known| Arc::ptr_eq(known, listed))) {
            *listed = Arc::clone(&all);
        }
    });
    Some(all)
}

/// Without the GIL another thread could borrow the arrays while they are entered anew.
#[cfg(Py_GIL_DISABLED)]
fn enter_with_own(_: Python<'_>, _: &Listed) -> Option<Arc<Listed>> {
    None
}

/// # Safety
/// - The thread is attached, and `array` is an array.
unsafe extern "C" fn acquire_to_read(_: *mut c_void, array: *mut PyArrayObject) -> c_int {
    // SAFETY: passed on from the caller.
    unsafe { acquire_array(array, BorrowAccess::Read) }
}

/// # Safety
/// - As for [`acquire_to_read`].
unsafe extern "C" fn acquire_to_write(_: *mut c_void, array: *mut PyArrayObject) -> c_int {
    // SAFETY: passed on from the caller.
    unsafe {
        if (*array).fields.flags & NPY_ARRAY_WRITEABLE == 0 {
            return -2;
        }
        acquire_array(array, BorrowAccess::Write)
    }
}

/// Borrows an array from the ledger for rust-numpy.
///
/// # Safety
/// - As for [`acquire_to_read`].
unsafe fn acquire_array(array: *mut PyArrayObject, access: BorrowAccess) -> c_int {
    let Some(array) = NonNull::new(array) else { return -1 };
    // SAFETY: passed on from the caller.
    let (py, start) = unsafe { (Python::assume_attached(), (*array.as_ptr()).fields.data.cast::<u8>()) };
    let thread = threads::this_thread(py);
    let acquire = || {
        let geometry = Geometry::of(py, array);
        with_ledger(py, |ledger| {
            ledger.borrow_array(array.addr().get(), access, thread, |descriptor| geometry.describe(start, descriptor))
        })
    };
    if acquire() {
        return 0;
    }
    ledger::reclaim(py);
    if acquire() { 0 } else { -1 }
}

/// # Safety
/// - As for [`acquire_to_read`].
unsafe extern "C" fn release_array(_: *mut c_void, array: *mut PyArrayObject) {
    let Some(array) = NonNull::new(array) else { return };
    // SAFETY: passed on from the caller.
    let (py, start) = unsafe { (Python::assume_attached(), (*array.as_ptr()).fields.data.cast::<u8>()) };
    let thread = threads::this_thread(py);
    with_ledger(py, |ledger| {
        let describe = |released: &mut Descriptor| Geometry::of(py, array).describe(start, released);
        ledger.release_array(array.addr().get(), thread, describe);
    });
}
