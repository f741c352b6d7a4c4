//! Attaches a thread to the interpreter to release what an owner holds: on any thread, called from any library.

#![allow(unsafe_code, reason = "thread states are compared and acquired")]

use pyo3::ffi;
use pyo3::prelude::*;

use super::attached::is_attached;

/// Runs `body` attached; `None` if the interpreter has ended.
///
/// If the thread is attached already, PyO3 does not learn of it: `body` has to drop references as [`Bound`], because PyO3
/// would defer the drop of a [`Py`].
#[inline]
pub fn attach<R>(body: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    // SAFETY: the first call may be made by any thread at any time; the thread is attached to an interpreter that runs.
    unsafe {
        if is_attached() && ffi::Py_IsInitialized() != 0 {
            return Some(body(Python::assume_attached()));
        }
    }
    reattach(body)
}

/// As [`attach`], in PyO3's view too, so that `body` may drop any references.
///
/// PyO3 counts what it has attached itself. In a callback of a call that it has attached it takes the thread for attached,
/// although a library has released the GIL since: PyTorch does, before it frees the memory of a tensor.
pub fn reattach<R>(body: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    let _ensured = Ensured::new()?;
    Python::try_attach(body)
}

/// The thread is attached while this lives.
struct Ensured(ffi::PyGILState_STATE);

impl Ensured {
    /// `None` if the interpreter has ended or is ending.
    fn new() -> Option<Ensured> {
        // SAFETY: these may be called by any thread at any time, the last one while the interpreter runs.
        unsafe {
            if ffi::Py_IsInitialized() == 0 {
                return None;
            }
            #[cfg(Py_3_13)]
            if ffi::Py_IsFinalizing() != 0 {
                return None;
            }
            Some(Ensured(ffi::PyGILState_Ensure()))
        }
    }
}

impl Drop for Ensured {
    fn drop(&mut self) {
        // SAFETY: the state is that of this thread's call above, and calls nest.
        unsafe { ffi::PyGILState_Release(self.0) };
    }
}
