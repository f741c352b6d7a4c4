//! An exception that is on its way while other code runs, of which it is not the exception.

#![allow(unsafe_code, reason = "the interpreter's own calls move an exception out and back in")]

use std::marker::PhantomData;

use pyo3::ffi;
use pyo3::prelude::*;

/// Taken out of the thread's state until this is dropped, which puts it back. PyO3's own way is not for this: it would
/// resume a panic that has become an exception.
pub(super) struct SavedError<'py> {
    #[cfg(Py_3_12)]
    raised: *mut ffi::PyObject,
    #[cfg(not(Py_3_12))]
    raised: [*mut ffi::PyObject; 3],
    attached: PhantomData<Python<'py>>,
}

impl<'py> SavedError<'py> {
    #[cfg(Py_3_12)]
    pub(super) fn take(_: Python<'py>) -> SavedError<'py> {
        // SAFETY: attached; the reference is given back when this is dropped.
        SavedError { raised: unsafe { ffi::PyErr_GetRaisedException() }, attached: PhantomData }
    }

    #[cfg(not(Py_3_12))]
    pub(super) fn take(_: Python<'py>) -> SavedError<'py> {
        let [mut kind, mut value, mut trace] = [std::ptr::null_mut(); 3];
        // SAFETY: attached; the references are given back when this is dropped.
        unsafe { ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut trace) };
        SavedError { raised: [kind, value, trace], attached: PhantomData }
    }
}

impl Drop for SavedError<'_> {
    fn drop(&mut self) {
        #[cfg(Py_3_12)]
        // SAFETY: attached for this lifetime, and what was taken is put back once.
        unsafe {
            ffi::PyErr_SetRaisedException(self.raised);
        }
        #[cfg(not(Py_3_12))]
        // SAFETY: as above.
        unsafe {
            let [kind, value, trace] = self.raised;
            ffi::PyErr_Restore(kind, value, trace);
        }
    }
}
