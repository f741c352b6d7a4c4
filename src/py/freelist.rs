//! Making and freeing the objects that calls make and free all the time, from a short list of those freed before, as
//! the interpreter does with its own tuples and floats (DESIGN.md has the times).

#![allow(unsafe_code, reason = "objects are made and freed by hand")]

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::{PyClass, PyClassInitializer};

use super::saved_error::SavedError;

/// How many freed objects of a class are kept.
const CAPACITY: usize = 32;

/// Freed objects of one class, to be used again.
pub(super) struct Freelist {
    /// Where in an object its Rust value lies.
    offset: AtomicUsize,
    /// The class, which lives as long as the module.
    class: AtomicPtr<ffi::PyTypeObject>,
    freed: UnsafeCell<Freed>,
}

struct Freed {
    count: usize,
    objects: [*mut ffi::PyObject; CAPACITY],
}

// SAFETY: the list is touched only by threads that are attached to the interpreter, which are attached one at a time: the
// module declares that it needs the global lock, and PyO3 keeps it out of all interpreters but one.
unsafe impl Sync for Freelist {}

impl Freelist {
    pub(super) const fn new() -> Freelist {
        let freed = Freed { count: 0, objects: [null_mut(); CAPACITY] };
        Freelist { offset: AtomicUsize::new(0), class: AtomicPtr::new(null_mut()), freed: UnsafeCell::new(freed) }
    }
}

/// A class whose objects are recycled. Final and without a `__dict__`, so that an object is its Rust value and, where
/// there are any, a list of weak references.
pub(super) trait HasFreelist: PyClass + Sync + Into<PyClassInitializer<Self>> {
    /// The class's list.
    fn freelist() -> &'static Freelist;

    /// A value that holds nothing.
    fn blank() -> Self;

    /// Lets go of everything the value holds, which leaves it as good as blank. The thread is attached.
    fn release(&mut self, py: Python<'_>);
}

/// Frees the objects of a class to its freelist from now on.
pub(super) fn install<T: HasFreelist>(py: Python<'_>) -> PyResult<()> {
    let template = Bound::new(py, T::blank())?;
    let (list, class) = (T::freelist(), template.as_any().get_type_ptr());
    let value: *const T = &raw const *template.borrow();
    list.offset.store(value.addr() - template.as_ptr().addr(), Ordering::Relaxed);
    list.class.store(class, Ordering::Relaxed);
    // SAFETY: the class is final, so every object that is freed by its slot is one of `T`'s.
    unsafe {
        // PyO3 leaves no class out.
        if (*class).tp_flags & ffi::Py_TPFLAGS_HAVE_GC == 0 {
            return Err(PyRuntimeError::new_err("dlfield: a class that the collector does not look after"));
        }
        (*class).tp_dealloc = Some(free::<T>);
    }
    Ok(())
}

/// A new object, blank and then filled in place: a value made elsewhere would have to be moved, which takes longer than
/// everything else.
///
/// Nobody has the object while `fill` runs, not even the collector.
#[inline(always)]
pub(super) fn create<'py, T: HasFreelist>(
    py: Python<'py>,
    fill: impl FnOnce(&mut T) -> PyResult<()>,
) -> PyResult<Bound<'py, T>> {
    let list = T::freelist();
    // SAFETY: this thread is attached, and nothing lets another one in before the list is left alone.
    let freed = unsafe { &mut *list.freed.get() };
    let object = if freed.count == 0 {
        let object = Bound::new(py, T::blank())?;
        // SAFETY: a new object of a class that the collector looks after.
        unsafe { ffi::PyObject_GC_UnTrack(object.as_ptr().cast()) };
        object
    } else {
        freed.count -= 1;
        // SAFETY: below the count are freed objects of this class: untracked, with no weak references, and a value as good
        // as blank.
        unsafe {
            let object = ffi::PyObject_Init(freed.objects[freed.count], list.class.load(Ordering::Relaxed));
            Bound::from_owned_ptr(py, object).cast_into_unchecked()
        }
    };
    // SAFETY: a new object, which only this function knows.
    fill(unsafe { value(object.as_ptr()).as_mut() })?;
    // SAFETY: as above, and untracked so far.
    unsafe { ffi::PyObject_GC_Track(object.as_ptr().cast()) };
    Ok(object)
}

/// Where an object's value lies.
#[inline]
fn value<T: HasFreelist>(object: *mut ffi::PyObject) -> NonNull<T> {
    let offset = T::freelist().offset.load(Ordering::Relaxed);
    // SAFETY: an object is longer than the offset of its value, and nowhere near address 0.
    unsafe { NonNull::new_unchecked(object.byte_add(offset).cast()) }
}

/// The class's `tp_dealloc`.
unsafe extern "C" fn free<T: HasFreelist>(object: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter, attached, with an object of this class that nobody refers to any more.
    unsafe {
        let py = Python::assume_attached();
        let class = ffi::Py_TYPE(object);
        ffi::PyObject_GC_UnTrack(object.cast());
        let offset = (*class).tp_weaklistoffset;
        if offset > 0 && !(*object.byte_offset(offset).cast::<*mut ffi::PyObject>()).is_null() {
            ffi::PyObject_ClearWeakRefs(object);
        }
        let value = value::<T>(object).as_ptr();
        // An object may go while an exception is on its way, which is not that of the code that letting go runs.
        let saved = (!ffi::PyErr_Occurred().is_null()).then(|| SavedError::take(py));
        // What the value holds may be of any kind, and nothing unwinds into C.
        let _ = catch_unwind(AssertUnwindSafe(|| (*value).release(py)));
        drop(saved);
        // Only now: letting go may have run any code, which may have made and freed objects of this class.
        let freed = &mut *T::freelist().freed.get();
        if freed.count < CAPACITY {
            freed.objects[freed.count] = object;
            freed.count += 1;
        } else {
            value.drop_in_place();
            ffi::PyObject_GC_Del(object.cast());
        }
        ffi::Py_DECREF(class.cast());
    }
}
