//! Python objects as owners of memory.

#![allow(unsafe_code, reason = "a reference travels as an address")]

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::{Mutex, PoisonError};

use dlpark::{Managed, ManagedTensorBase};
use pyo3::prelude::*;
use pyo3::{ffi, intern};

use crate::descriptor::Descriptor;
use crate::python::ffi::attach::{SavedError, when_attached, when_attached_by_pyo3};

use crate::tensor::Owner;

/// An owner that keeps one Python object alive, as [`PyOwner`] does.
pub fn owner(object: &Bound<'_, PyAny>) -> Owner {
    // SAFETY: `release` drops the reference that is taken here.
    unsafe { Owner::object(object.clone().into_ptr().cast(), release) }
}

/// As [`owner`], of a storage of PyTorch, which `share_memory_` gives other memory: [`storage`] returns it.
pub fn of_storage(storage: &Bound<'_, PyAny>) -> Owner {
    // SAFETY: as for `owner`.
    unsafe { Owner::movable_object(storage.clone().into_ptr().cast(), release) }
}

/// The storage that an owner of [`of_storage`] keeps.
#[inline]
pub fn storage<'py>(py: Python<'py>, owner: &Owner) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the owner keeps the object at this address.
    owner.movable().map(|address| unsafe { Bound::from_borrowed_ptr(py, address.cast()) })
}

/// Returns the first address of a storage's memory. Runs no code of others.
pub fn start_of(storage: &Bound<'_, PyAny>) -> PyResult<usize> {
    storage.call_method0(intern!(storage.py(), "data_ptr"))?.extract()
}

/// Returns the addresses of a storage's memory. Runs no code of others.
pub fn memory_of(storage: &Bound<'_, PyAny>) -> PyResult<Range<usize>> {
    let start = start_of(storage)?;
    let len: usize = storage.call_method0(intern!(storage.py(), "nbytes"))?.extract()?;
    Ok(start..start.saturating_add(len))
}

/// Whether all elements of a field are in a storage's memory. Does not call back into Python code.
pub fn has_elements(storage: &Bound<'_, PyAny>, field: &Descriptor) -> PyResult<bool> {
    let (low, high) = field.reach();
    let memory = memory_of(storage)?;
    Ok(field.size() == 0 || memory.start <= low && high <= memory.end)
}

/// As [`owner`], with a weak reference: while one exists, some objects reject operations that move their memory.
pub fn pinned(object: &Bound<'_, PyAny>) -> PyResult<Owner> {
    // SAFETY: a live object. Python makes one shared weak reference without a callback for each object. Its address is not
    // stored, as `release_pinned` gets the same one again.
    let weak = unsafe { ffi::PyWeakref_NewRef(object.as_ptr(), null_mut()) };
    if weak.is_null() {
        return Err(PyErr::fetch(object.py()));
    }
    // SAFETY: `release_pinned` drops both references that are taken here.
    Ok(unsafe { Owner::object(object.clone().into_ptr().cast(), release_pinned) })
}

/// # Safety
/// - `address` is a reference whose ownership the caller passes on, together with one to the object's weak reference.
unsafe extern "C" fn release_pinned(address: *mut c_void) {
    let address = address.expose_provenance();
    when_attached(move |py| {
        // SAFETY: passed on from the caller. The weak reference of this object is alive, so this call returns the same one.
        unsafe {
            let object = Bound::from_owned_ptr(py, with_exposed_provenance_mut(address));
            let weak = ffi::PyWeakref_NewRef(object.as_ptr(), null_mut());
            if weak.is_null() {
                // The call makes no new object, so it cannot fail.
                drop(PyErr::fetch(py));
                return;
            }
            ffi::Py_DECREF(weak);
            ffi::Py_DECREF(weak);
        }
    });
}

/// # Safety
/// - `address` is a reference whose ownership the caller passes on.
unsafe extern "C" fn release(address: *mut c_void) {
    let address = address.expose_provenance();
    // SAFETY: passed on from the caller.
    when_attached(move |py| drop(unsafe { Bound::from_owned_ptr(py, with_exposed_provenance_mut(address)) }));
}

/// An owner of a managed tensor that an object has exported, whose deleter may need the GIL.
pub fn managed<M: ManagedTensorBase + 'static>(managed: Managed<M>) -> Owner {
    // SAFETY: `release_managed` calls the deleter of the struct that is passed on here.
    unsafe { Owner::object(managed.into_raw().cast(), release_managed::<M>) }
}

/// # Safety
/// - `address` is a managed tensor that the caller passes on.
unsafe extern "C" fn release_managed<M: ManagedTensorBase + 'static>(address: *mut c_void) {
    let address = address.expose_provenance();
    // SAFETY: passed on from the caller.
    when_attached(move |_| unsafe { M::drop_raw(with_exposed_provenance_mut(address)) });
}

/// Keeps a Python object alive while the memory it owns is in use. May be dropped on any thread, and after the interpreter
/// has ended (the object is gone then).
pub struct PyOwner(Option<Py<PyAny>>);

impl PyOwner {
    pub fn new(object: &Bound<'_, PyAny>) -> PyOwner {
        PyOwner(Some(object.clone().unbind()))
    }
}

impl Drop for PyOwner {
    fn drop(&mut self) {
        // PyO3 alone would wait for the next call into this module.
        if let Some(object) = self.0.take() {
            when_attached(move |py| drop(object.into_bound(py)));
        }
    }
}

/// A function that is called once: by [`ReleaseHook::now`], or else when this is dropped, on any thread; not after the
/// interpreter has ended.
pub struct ReleaseHook(Mutex<Option<Py<PyAny>>>);

impl ReleaseHook {
    pub fn new(function: Py<PyAny>) -> ReleaseHook {
        ReleaseHook(Mutex::new(Some(function)))
    }

    /// Calls it, unless it was called before.
    pub fn now(&self, py: Python<'_>) -> PyResult<()> {
        let function = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        function.map_or(Ok(()), |function| function.into_bound(py).call0().map(drop))
    }
}

impl Drop for ReleaseHook {
    fn drop(&mut self) {
        let Some(function) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take() else { return };
        when_attached_by_pyo3(move |py| {
            let function = function.into_bound(py);
            let _not_of_the_call = SavedError::take(py);
            if let Err(error) = function.call0() {
                // There is no caller to raise in.
                error.write_unraisable(py, Some(&function));
            }
        });
    }
}
