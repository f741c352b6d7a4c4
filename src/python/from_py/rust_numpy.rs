//! The list of borrowed NumPy arrays that extensions share through NumPy's module: rust-numpy's `PyReadonlyArray` and
//! `PyReadwriteArray` are entered there.
//!
//! The first extension that borrows an array publishes a table of functions, which all others call. If it is this one, their arrays are
//! entered in the [ledger](crate::python::from_py::ledger). If not, each NumPy array in the ledger is entered in that list too, as a view
//! that is made here: rust-numpy ends the process when an array is released whose shape was set meanwhile.
//!
//! Source: `borrow/shared.rs` of rust-numpy 0.30, whose table has version 1.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{self, NonNull, null_mut};
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, Ordering};

use numpy::get_array_module;
use numpy::npyffi::{NPY_ARRAY_WRITEABLE, PyArrayObject, PyDataType_ELSIZE};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::layout::Extents;
use crate::python::ffi::numpy_api::{self, numbers};
use crate::python::from_py::ledger::{Entry, VIEWED, with_ledger};
use crate::python::from_py::other_list::{BORROWS, Held, Table, view_of};
use crate::python::interrupt;

const NAME: &CStr = c"_RUST_NUMPY_BORROW_CHECKING_API";

static OURS: Table = Table {
    version: 1,
    flags: null_mut(),
    acquire: acquire::<false>,
    acquire_mut: acquire::<true>,
    release: release_array,
    release_mut: release_array,
};

/// The table of this process; NULL until NumPy is imported and an argument is borrowed.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(null_mut());

/// Publishes the table of this extension unless there is one, and returns the one that counts.
#[cold]
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

/// Enters a borrowed array in the list of another extension, if there is one. Returns who borrows the memory there already, if that
/// conflicts. Objects that are not NumPy arrays, or not those of the borrowed memory, are not entered.
#[inline]
pub(super) fn hold(py: Python<'_>, entry: NonNull<Entry>) -> Option<&'static str> {
    if ptr::eq(TABLE.load(Ordering::Relaxed), &raw const OURS) {
        return None;
    }
    hold_there(py, entry).is_none().then_some(BORROWS)
}

/// As [`hold`]; `None` for a conflict.
#[cold]
fn hold_there(py: Python<'_>, entry: NonNull<Entry>) -> Option<()> {
    if TABLE.load(Ordering::Relaxed).is_null() && numpy_api::is_imported() {
        // Without memory for the capsule: looked for again by the next argument.
        let found = publish(py).inspect_err(|error| interrupt::put_off(py, error));
        TABLE.store(found.unwrap_or(null_mut()), Ordering::Relaxed);
    }
    let table = TABLE.load(Ordering::Relaxed);
    // SAFETY: the entry is borrowed; a table that was published stays.
    let (entry, table) = unsafe { (entry.as_ref(), table.as_ref().filter(|_| !ptr::eq(table, &raw const OURS))) };
    let object = entry.array().or(entry.object.as_ref()).map(|object| object.bind(py));
    let (Some(table), Some(object)) = (table, object.filter(|object| numpy_api::is_array(object))) else {
        return Some(());
    };
    let array = object.as_ptr().cast::<PyArrayObject>();
    // SAFETY: an array, which has a dtype; its numbers live as long as no code runs.
    let view = unsafe {
        let fields = &(*array).fields;
        if fields.data.addr() != entry.descriptor.ptr().addr() {
            return Some(());
        }
        let dtype = Bound::from_borrowed_ptr(py, fields.descr.cast());
        view_of(py, array, dtype, fields.nd, fields.dimensions, fields.strides, fields.data.cast())?
    };
    let new = Held::new(table, view, entry.writes)?;
    let held = if new.enter(py) { Rc::new(new) } else { hold_with_own(py, &new, entry)? };
    with_ledger(py, |_| entry.held.set(Some(held)));
    Some(())
}

/// Enters an array that the list rejects only because of this extension's own arguments: rust-numpy takes some arrays for
/// overlapping that share no element, and the ledger has compared them exactly. All arguments in this memory are then entered as
/// one, which spans their bytes.
#[cold]
fn hold_with_own(py: Python<'_>, new: &Held, entry: &Entry) -> Option<Rc<Held>> {
    // Without the GIL another thread could borrow the arrays while they are entered anew.
    if cfg!(Py_GIL_DISABLED) {
        return None;
    }
    // SAFETY: no code runs below that could end a borrow, by the GIL.
    let borrows: Vec<&Entry> =
        with_ledger(py, |ledger| ledger.borrows.iter().map(|entry| unsafe { entry.as_ref() }).collect());
    let (mut own, (mut low, mut high)) = (Vec::new(), entry.range);
    for other in borrows {
        let held = other.held.take();
        other.held.set(held.clone());
        if let Some(held) = held.filter(|held| ptr::eq(held.base, new.base)) {
            (low, high) = (low.min(other.range.0), high.max(other.range.1));
            own.push((other, held));
        }
    }
    if own.is_empty() || !own.iter().all(|(_, held)| held.has_same_base(py)) {
        return None;
    }
    let (mut length, mut stride) = (isize::try_from(high - low).ok()?, 1);
    let bytes = numpy::dtype::<u8>(py).into_any();
    // SAFETY: the numbers live during the call.
    let view = unsafe {
        let low = ptr::without_provenance_mut(low);
        view_of(py, new.view.as_ptr(), bytes, 1, &raw mut length, &raw mut stride, low)?
    };
    let all = Rc::new(Held::new(new.table, view, true)?);
    own.iter().for_each(|(_, held)| held.leave(py));
    let is_free = all.enter(py);
    for (other, held) in own {
        if is_free {
            other.held.set(Some(Rc::clone(&all)));
        } else {
            // Several arguments may have one.
            let _ = held.is_entered.get() || held.enter(py);
        }
    }
    is_free.then_some(all)
}

/// Borrows an array from the ledger for rust-numpy.
///
/// # Safety
/// - The thread is attached, and `array` is an array.
unsafe extern "C" fn acquire<const WRITES: bool>(_: *mut c_void, array: *mut PyArrayObject) -> c_int {
    // SAFETY: passed on from the caller.
    let (py, flags) = unsafe { (Python::assume_attached(), (*array).fields.flags) };
    if WRITES && flags & NPY_ARRAY_WRITEABLE == 0 {
        return -2;
    }
    let is_borrowed = with_ledger(py, |ledger| {
        let entry = ledger.unused();
        // SAFETY: passed on from the caller; no other code accesses an unused entry.
        let (is_described, memory) = unsafe {
            let memory = &mut (*entry.as_ptr()).descriptor;
            (describe_bytes(py, array, memory), &*memory)
        };
        if let Some((known, count)) = ledger.arrays.get_mut(&array.addr()) {
            // SAFETY: a borrowed entry only changes in fields that are not read here.
            let (known, may_share) = unsafe { (&known.as_ref().descriptor, !WRITES && !known.as_ref().writes) };
            let is_same =
                (known.ptr(), known.shape(), known.strides()) == (memory.ptr(), memory.shape(), memory.strides());
            let is_borrowed = is_described && may_share && is_same;
            *count += usize::from(is_borrowed);
            // SAFETY: it was not entered.
            unsafe { ledger.put_back(entry) };
            return is_borrowed;
        }
        // SAFETY: the entry is new and not in the ledger; it stays as it is until `release_array`. Only rust-numpy
        // makes views of this memory.
        let is_borrowed = is_described
            && unsafe {
                (*entry.as_ptr()).writes = WRITES;
                *(*entry.as_ptr()).state.get_mut() = VIEWED;
                ledger.enter(entry).is_none()
            };
        if is_borrowed {
            ledger.arrays.insert(array.addr(), (entry, 1));
        } else {
            // SAFETY: the ledger rejected the entry, so it was not entered.
            unsafe { ledger.put_back(entry) };
        }
        is_borrowed
    });
    if is_borrowed { 0 } else { -1 }
}

/// # Safety
/// - As for [`acquire`].
unsafe extern "C" fn release_array(_: *mut c_void, array: *mut PyArrayObject) {
    // SAFETY: passed on from the caller.
    let py = unsafe { Python::assume_attached() };
    with_ledger(py, |ledger| {
        let Some((entry, count)) = ledger.arrays.get_mut(&array.addr()) else { return };
        let entry = *entry;
        *count -= 1;
        if *count == 0 {
            ledger.arrays.remove(&array.addr());
            // SAFETY: `acquire` has entered it.
            unsafe {
                ledger.leave(entry);
                ledger.put_back(entry);
            }
        }
    });
}

/// Describes the bytes of an array's elements, regardless of their type. Returns whether that is possible.
///
/// # Safety
/// - As for [`acquire`].
unsafe fn describe_bytes(py: Python<'_>, array: *mut PyArrayObject, memory: &mut Descriptor) -> bool {
    // SAFETY: an array; its numbers are valid until code runs that changes them.
    unsafe {
        let fields = &(*array).fields;
        let ndim = usize::try_from(fields.nd).unwrap_or(0);
        let (shape, strides) = (numbers(fields.dimensions, ndim), numbers(fields.strides, ndim));
        let axes = || shape.unwrap_or_default().iter().zip(strides.unwrap_or_default());
        // The bytes of an element are one dimension more, of which there may not be too many. Those of extent 1 say nothing.
        let is_empty = axes().any(|(extent, _)| *extent == 0);
        let kept = axes().filter(|(extent, _)| !is_empty && **extent != 1);
        let (mut shape, mut strides): (Extents, Extents) = kept.map(|(extent, stride)| (*extent, *stride)).unzip();
        let itemsize = i64::try_from(PyDataType_ELSIZE(py, fields.descr)).unwrap_or(i64::MAX);
        shape.push(if is_empty { 0 } else { itemsize });
        strides.push(1);
        let start = fields.data.cast::<u8>();
        memory.set_with_byte_strides(start, Device::CPU, DType::U8, false, &shape, &strides).is_ok()
    }
}
