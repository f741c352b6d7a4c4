//! The threads of the interpreter, of which some have arguments.

#![allow(unsafe_code, reason = "the interpreter's list of threads")]

#[cfg(not(Py_GIL_DISABLED))]
use std::sync::atomic::{Ordering, fence};

use pyo3::ffi;
use pyo3::prelude::*;

/// A thread state of the interpreter, by a number that no later one gets.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ThreadId(i64);

impl ThreadId {
    pub(super) const NONE: ThreadId = ThreadId(0);

    /// # Safety
    /// - A state that is not deleted meanwhile.
    unsafe fn of(state: *mut ffi::PyThreadState) -> ThreadId {
        // SAFETY: passed on from the caller.
        ThreadId(unsafe { ffi::PyThreadState_GetID(state) })
    }
}

/// The thread that opens an entry.
#[inline]
pub(super) fn this_thread(_: Python<'_>) -> ThreadId {
    // SAFETY: the thread is attached, so its state lives.
    unsafe { ThreadId::of(ffi::PyThreadState_Get()) }
}

/// The threads that have not ended; `None` if that cannot be told. It runs no code of others.
#[cfg(not(Py_GIL_DISABLED))]
#[cold]
pub(super) fn alive(py: Python<'_>) -> Option<Vec<ThreadId>> {
    // The interpreter deletes the states of daemon threads at its end, when these may still be working detached from it.
    if is_finalizing(py) {
        return None;
    }
    // Threads that are not attached may add their states meanwhile; no thread removes one.
    let (mut alive, mut before) = (states(py), Vec::new());
    while alive != before {
        fence(Ordering::SeqCst);
        before = std::mem::replace(&mut alive, states(py));
    }
    Some(alive)
}

/// Without the GIL another thread may delete its state while the list of states is read.
#[cfg(Py_GIL_DISABLED)]
pub(super) fn alive(_: Python<'_>) -> Option<Vec<ThreadId>> {
    None
}

#[cfg(not(Py_GIL_DISABLED))]
fn states(_: Python<'_>) -> Vec<ThreadId> {
    let mut states = Vec::new();
    // SAFETY: states of threads are deleted by attached threads only, and this one stays attached.
    unsafe {
        let mut next = ffi::PyInterpreterState_ThreadHead(ffi::PyInterpreterState_Get());
        while !next.is_null() {
            states.push(ThreadId::of(next));
            next = ffi::PyThreadState_Next(next);
        }
    }
    states
}

/// Whether the interpreter ends.
#[cfg(all(Py_3_13, not(Py_GIL_DISABLED)))]
fn is_finalizing(_: Python<'_>) -> bool {
    // SAFETY: it may always be called.
    unsafe { ffi::Py_IsFinalizing() != 0 }
}

/// Whether the interpreter ends, which only `sys.is_finalizing` tells before Python 3.13; `true` if code of others replaced that.
#[cfg(not(any(Py_3_13, Py_GIL_DISABLED)))]
fn is_finalizing(py: Python<'_>) -> bool {
    // SAFETY: the thread is attached; a borrowed reference or NULL, without an exception.
    let function = unsafe {
        let function = ffi::PySys_GetObject(c"is_finalizing".as_ptr());
        if function.is_null() || ffi::PyCFunction_CheckExact(function) == 0 {
            return true;
        }
        Bound::from_borrowed_ptr(py, function)
    };
    !function.call0().is_ok_and(|told| told.is(pyo3::types::PyBool::new(py, false)))
}
