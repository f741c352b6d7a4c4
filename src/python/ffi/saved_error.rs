//! Saves the exception that is set while unrelated code runs.

#![allow(unsafe_code, reason = "the interpreter's own calls move an exception out and back in")]

use std::marker::PhantomData;

use pyo3::ffi;
use pyo3::prelude::*;

/// An exception taken out of the thread state; dropping this puts it back. PyO3's `PyErr::take` cannot be used: it would
/// resume a panic that has become an exception.
pub struct SavedError<'py> {
    #[cfg(Py_3_12)]
    raised: *mut ffi::PyObject,
    #[cfg(not(Py_3_12))]
    raised: [*mut ffi::PyObject; 3],
    attached: PhantomData<Python<'py>>,
}

impl<'py> SavedError<'py> {
    #[cfg(Py_3_12)]
    pub fn take(_: Python<'py>) -> SavedError<'py> {
        // SAFETY: attached; dropping this gives the reference back.
        SavedError { raised: unsafe { ffi::PyErr_GetRaisedException() }, attached: PhantomData }
    }

    #[cfg(not(Py_3_12))]
    pub fn take(_: Python<'py>) -> SavedError<'py> {
        let [mut kind, mut value, mut trace] = [std::ptr::null_mut(); 3];
        // SAFETY: attached; dropping this gives the references back.
        unsafe { ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut trace) };
        SavedError { raised: [kind, value, trace], attached: PhantomData }
    }
}

impl Drop for SavedError<'_> {
    fn drop(&mut self) {
        // SAFETY: attached for this lifetime; the exception is put back once.
        unsafe {
            #[cfg(Py_3_12)]
            ffi::PyErr_SetRaisedException(self.raised);
            #[cfg(not(Py_3_12))]
            {
                let [kind, value, trace] = self.raised;
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
        unsafe { ffi::PyErr_WriteUnraisable(std::ptr::null_mut()) };
    }
}
