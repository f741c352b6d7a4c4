//! Python objects as owners of memory.

#![allow(unsafe_code, reason = "a reference travels as an address")]

use std::ffi::c_void;

use pyo3::prelude::*;

use crate::tensor::Owner;

/// An owner that keeps one Python object, as [`Keep`] does.
pub(super) fn owner(object: &Bound<'_, PyAny>) -> Owner {
    // SAFETY: the reference that is taken here is the one that is given back.
    unsafe { Owner::object(object.clone().into_ptr().cast(), release) }
}

/// # Safety
/// - `address` is a reference that the caller owns and gives up.
unsafe fn release(address: *mut c_void) {
    // SAFETY: passed on from the caller. With the interpreter gone the object is gone too.
    Python::try_attach(|py| drop(unsafe { Bound::from_owned_ptr(py, address.cast()) }));
}

/// Keeps a Python object for as long as the memory it owns is in use; may be dropped on any thread, and after the
/// interpreter has ended (the object is gone with it then).
pub(super) struct Keep(Option<Py<PyAny>>);

impl Keep {
    pub(super) fn new(object: &Bound<'_, PyAny>) -> Keep {
        Keep(Some(object.clone().unbind()))
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        let mut object = self.0.take();
        // Attaching first makes the release immediate; without, it would wait for the next call into this module.
        Python::try_attach(|_| drop(object.take()));
        std::mem::forget(object);
    }
}
