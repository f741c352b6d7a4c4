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

use super::descriptor::PyDescriptor;
use super::saved_error::SavedError;
use super::signature::PyBound;
use super::tensor::PyTensor;
use crate::tensor::Tensor;

/// How many freed objects of a class are kept.
const KEPT: usize = 32;

/// Freed objects of one class, to be used again.
pub(super) struct Pool {
    /// Where in an object its Rust value lies.
    offset: AtomicUsize,
    /// The class, which lives as long as the module.
    class: AtomicPtr<ffi::PyTypeObject>,
    freed: UnsafeCell<Freed>,
}

struct Freed {
    count: usize,
    objects: [*mut ffi::PyObject; KEPT],
}

// SAFETY: the list is touched only by threads that are attached to the interpreter, which are attached one at a time: the
// module declares that it needs the global lock, and PyO3 keeps it out of all interpreters but one.
unsafe impl Sync for Pool {}

impl Pool {
    pub(super) const fn new() -> Pool {
        let freed = Freed { count: 0, objects: [null_mut(); KEPT] };
        Pool { offset: AtomicUsize::new(0), class: AtomicPtr::new(null_mut()), freed: UnsafeCell::new(freed) }
    }
}

/// A class whose objects are recycled. Final and without a `__dict__`, so that an object is its Rust value and, where
/// there are any, a list of weak references.
pub(super) trait Recycled: PyClass + Sync + Into<PyClassInitializer<Self>> {
    /// The class's list.
    fn pool() -> &'static Pool;

    /// A value that holds nothing.
    fn blank() -> Self;

    /// Lets go of everything the value holds, which leaves it as good as blank. The thread is attached.
    fn release(&mut self, py: Python<'_>);
}

/// Makes the class's objects be freed here from now on. `template` is any instance.
fn take_over<T: Recycled>(template: &Bound<'_, T>) -> PyResult<()> {
    let (pool, class) = (T::pool(), template.as_any().get_type_ptr());
    let value: *const T = &raw const *template.borrow();
    pool.offset.store(value.addr() - template.as_ptr().addr(), Ordering::Relaxed);
    pool.class.store(class, Ordering::Relaxed);
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
pub(super) fn create<'py, T: Recycled>(
    py: Python<'py>,
    fill: impl FnOnce(&mut T) -> PyResult<()>,
) -> PyResult<Bound<'py, T>> {
    let pool = T::pool();
    // SAFETY: this thread is attached, and nothing lets another one in before the list is left alone.
    let freed = unsafe { &mut *pool.freed.get() };
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
            let object = ffi::PyObject_Init(freed.objects[freed.count], pool.class.load(Ordering::Relaxed));
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
fn value<T: Recycled>(object: *mut ffi::PyObject) -> NonNull<T> {
    let offset = T::pool().offset.load(Ordering::Relaxed);
    // SAFETY: an object is longer than the offset of its value, and nowhere near address 0.
    unsafe { NonNull::new_unchecked(object.byte_add(offset).cast()) }
}

/// The class's `tp_dealloc`.
unsafe extern "C" fn free<T: Recycled>(object: *mut ffi::PyObject) {
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
        let freed = &mut *T::pool().freed.get();
        if freed.count < KEPT {
            freed.objects[freed.count] = object;
            freed.count += 1;
        } else {
            value.drop_in_place();
            ffi::PyObject_GC_Del(object.cast());
        }
        ffi::Py_DECREF(class.cast());
    }
}

static DESCRIPTORS: Pool = Pool::new();

impl Recycled for PyDescriptor {
    fn pool() -> &'static Pool {
        &DESCRIPTORS
    }

    fn blank() -> PyDescriptor {
        PyDescriptor::blank()
    }

    fn release(&mut self, py: Python<'_>) {
        self.clear(py);
    }
}

static TENSORS: Pool = Pool::new();

impl Recycled for PyTensor {
    fn pool() -> &'static Pool {
        &TENSORS
    }

    fn blank() -> PyTensor {
        PyTensor(Tensor::BLANK)
    }

    fn release(&mut self, py: Python<'_>) {
        if self.0.owner().order().is_some() {
            // The host may have to wait for the device before memory goes back.
            py.detach(|| self.0.clear());
        } else {
            self.0.clear();
        }
    }
}

static BOUND: Pool = Pool::new();

impl Recycled for PyBound {
    fn pool() -> &'static Pool {
        &BOUND
    }

    fn blank() -> PyBound {
        PyBound::blank()
    }

    fn release(&mut self, py: Python<'_>) {
        self.clear(py);
    }
}

/// A new object for a tensor.
pub(super) fn tensor(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyTensor>> {
    create(py, |made: &mut PyTensor| {
        made.0 = tensor;
        Ok(())
    })
}

/// Recycles the objects of these classes from now on.
pub(super) fn install(py: Python<'_>) -> PyResult<()> {
    take_over(&Bound::new(py, PyDescriptor::blank())?)?;
    take_over(&Bound::new(py, PyTensor(Tensor::BLANK))?)?;
    take_over(&Bound::new(py, PyBound::blank())?)
}
