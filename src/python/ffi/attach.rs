//! Releases what an owner holds: at once in a thread that holds the GIL, else when a thread next does. A drop never waits for the
//! GIL: the thread that holds it may be the one that waits for the drop.

#![allow(unsafe_code, reason = "thread states are compared, a call is scheduled, exceptions are moved out and back in")]

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::mem::{forget, take};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::memory::fork::ForkLock;

type Release = Box<dyn FnOnce(Python<'_>) + Send>;

/// What was dropped without the GIL.
static DEFERRED: ForkLock<Vec<Release>> = ForkLock::new(Vec::new());
/// Whether there may be any.
static IS_ANY: AtomicBool = AtomicBool::new(false);
/// Whether the interpreter was asked to call [`run_scheduled`]. Its list is short, so it is asked once.
static IS_SCHEDULED: AtomicBool = AtomicBool::new(false);

/// This thread, if it is attached to an interpreter that runs. In 3.13 both functions are documented; PyO3 knows the older name.
#[inline]
fn attached<'py>() -> Option<Python<'py>> {
    // SAFETY: all may be called by any thread at any time. A thread whose own state is the current one is attached.
    unsafe {
        let own = ffi::PyGILState_GetThisThreadState();
        let is_attached = !own.is_null() && own == ffi::compat::PyThreadState_GetUnchecked();
        (is_attached && ffi::Py_IsInitialized() != 0).then(|| Python::assume_attached())
    }
}

/// Whether this thread's interpreter is the main one. In others no thread counts as attached here.
pub fn is_main_interpreter(_: Python<'_>) -> bool {
    // SAFETY: the thread is attached.
    unsafe { ffi::PyInterpreterState_Get() == ffi::PyInterpreterState_Main() }
}

/// Releases something: now if this thread is attached, else once a thread is. After the interpreter has ended `release` is not
/// called, as the objects are gone.
///
/// PyO3 does not learn that the thread is attached: `release` has to drop references as [`Bound`], because PyO3 would defer the
/// drop of a [`Py`].
#[inline]
pub fn when_attached(release: impl FnOnce(Python<'_>) + Send + 'static) {
    match attached() {
        Some(py) => release(py),
        None => defer(Box::new(release)),
    }
}

/// As [`when_attached`], in PyO3's view too, so that `release` may drop any references.
pub fn when_attached_by_pyo3(release: impl FnOnce(Python<'_>) + Send + 'static) {
    when_attached(|_| {
        Python::try_attach(release);
    });
}

#[cold]
fn defer(release: Release) {
    // SAFETY: may be called by any thread at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return forget(release);
    }
    let mut release = Some(release);
    DEFERRED.with(|deferred| deferred.extend(release.take()));
    // In a child of `fork` that has lost the list.
    forget(release);
    IS_ANY.store(true, Ordering::Release);
    if !IS_SCHEDULED.swap(true, Ordering::AcqRel) {
        // SAFETY: may be called by any thread, attached or not; the function stays where it is.
        let failed = unsafe { ffi::Py_AddPendingCall(Some(run_scheduled), null_mut()) } != 0;
        if failed {
            IS_SCHEDULED.store(false, Ordering::Release);
        }
    }
}

/// The interpreter calls this in its main thread.
extern "C" fn run_scheduled(_: *mut c_void) -> c_int {
    IS_SCHEDULED.store(false, Ordering::Release);
    attached().into_iter().for_each(release_deferred);
    0
}

/// Has the main thread raise an exception as soon as it runs Python code. Returns whether the interpreter will.
pub fn raise_in_main_thread(py: Python<'_>, error: &PyErr) -> bool {
    let value = error.clone_ref(py).into_value(py).into_ptr();
    // SAFETY: the function stays where it is, and is called once with the reference; the interpreter's list has room for few.
    unsafe {
        let failed = ffi::Py_AddPendingCall(Some(raise_scheduled), value.cast()) != 0;
        if failed {
            ffi::Py_DECREF(value);
        }
        !failed
    }
}

/// The interpreter calls this in its main thread.
extern "C" fn raise_scheduled(value: *mut c_void) -> c_int {
    // SAFETY: the reference of `raise_in_main_thread`.
    Python::attach(|py| PyErr::from_value(unsafe { Bound::from_owned_ptr(py, value.cast()) }).restore(py));
    -1
}

/// Releases what was dropped without the GIL. The main thread may wait for long before it runs Python code again, so what other
/// threads often call calls this.
#[inline]
pub fn release_deferred(py: Python<'_>) {
    if IS_ANY.load(Ordering::Relaxed) {
        release_all(py);
    }
}

#[cold]
fn release_all(py: Python<'_>) {
    let _not_of_the_caller = SavedError::take(py);
    // In PyO3's view too, for all of them.
    Python::try_attach(|py| {
        while IS_ANY.swap(false, Ordering::Acquire) {
            // Python code runs outside the lock.
            for release in DEFERRED.with(take).unwrap_or_default() {
                release(py);
                report_unraisable(py);
            }
        }
    });
}

/// An exception taken out of the thread state; dropping this puts it back. PyO3's `PyErr::take` cannot be used: it would
/// resume a panic that has become an exception.
pub struct SavedError<'py>(Raised, PhantomData<Python<'py>>);

#[cfg(Py_3_12)]
type Raised = *mut ffi::PyObject;
#[cfg(not(Py_3_12))]
type Raised = [*mut ffi::PyObject; 3];

impl<'py> SavedError<'py> {
    pub fn take(_: Python<'py>) -> SavedError<'py> {
        // SAFETY: attached; dropping this gives the references back.
        #[cfg(Py_3_12)]
        let raised = unsafe { ffi::PyErr_GetRaisedException() };
        #[cfg(not(Py_3_12))]
        let raised = {
            let [mut kind, mut value, mut trace] = [null_mut(); 3];
            // SAFETY: attached; dropping this gives the references back.
            unsafe { ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut trace) };
            [kind, value, trace]
        };
        SavedError(raised, PhantomData)
    }
}

impl Drop for SavedError<'_> {
    fn drop(&mut self) {
        // SAFETY: attached for this lifetime; the exception is put back once.
        unsafe {
            #[cfg(Py_3_12)]
            ffi::PyErr_SetRaisedException(self.0);
            #[cfg(not(Py_3_12))]
            {
                let [kind, value, trace] = self.0;
                ffi::PyErr_Restore(kind, value, trace);
            }
        }
    }
}

/// Hands the exception that is set, if any, to `sys.unraisablehook`, as the interpreter does with those of destructors.
#[inline]
pub fn report_unraisable(py: Python<'_>) {
    if PyErr::occurred(py) {
        // SAFETY: attached. The object, which names the place, may be null.
        unsafe { ffi::PyErr_WriteUnraisable(null_mut()) };
    }
}
