//! `__dlpack__`: capsules of both ABIs.

#![allow(unsafe_code, reason = "capsules hold raw pointers")]

use std::ffi::{CStr, c_void};

use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use dlpark::{Managed, ManagedTensorBase};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::device::Device;
use crate::protocol::ExchangeError;
use crate::py::args;
use crate::tensor::Tensor;

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// What a consumer asks of `__dlpack__`, each argument obeyed or refused.
pub(crate) struct Request<'a, 'py> {
    pub(crate) stream: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_version: Option<(i64, i64)>,
    pub(crate) dl_device: Option<(i64, i64)>,
    pub(crate) copy: Option<bool>,
}

/// A fresh capsule.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    request: &Request<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(stream) = request.stream
        && !stream.is_none()
        && tensor.descriptor().device() == Device::CPU
    {
        let allowed = "None on the host, which has no streams";
        return Err(ExchangeError::Argument { argument: "stream", got: args::shown(stream), allowed }.into());
    }
    if let Some(pair) = request.dl_device
        && args::dlpack_device(pair).ok() != Some(tensor.descriptor().device())
    {
        let got = format!("{pair:?}");
        let allowed = "the device the memory is on, as __dlpack_device__ tells; this build cannot move it";
        return Err(ExchangeError::Argument { argument: "dl_device", got, allowed }.into());
    }
    let copied = request.copy == Some(true);
    let copy = if copied { Some(py.detach(|| tensor.copy())?) } else { None };
    let tensor = copy.as_ref().unwrap_or(tensor);
    match request.max_version {
        Some((major, _)) if major >= 1 => wrap::<DLManagedTensorVersioned>(py, tensor.to_versioned(copied)?, VERSIONED),
        _ => wrap::<DLManagedTensor>(py, tensor.to_legacy()?, LEGACY),
    }
}

fn wrap<'py, M: ManagedTensorBase + 'static>(
    py: Python<'py>,
    managed: Managed<M>,
    name: &'static CStr,
) -> PyResult<Bound<'py, PyAny>> {
    let raw = managed.into_raw();
    // SAFETY: the capsule owns the struct until a consumer renames it; the name lives for the rest of the process.
    unsafe {
        let capsule = ffi::PyCapsule_New(raw.cast(), name.as_ptr(), Some(release::<M>));
        if capsule.is_null() {
            M::drop_raw(raw);
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// The destructor of our capsules: releases the struct unless a consumer has taken it, and said so in the name.
unsafe extern "C" fn release<M: ManagedTensorBase>(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with a capsule made by `wrap`. A name other than ours means that the struct
    // has another owner.
    unsafe {
        let name = ffi::PyCapsule_GetName(capsule);
        if name.is_null() {
            ffi::PyErr_Clear();
        } else if [LEGACY, VERSIONED].contains(&CStr::from_ptr(name)) {
            let raw: *mut c_void = ffi::PyCapsule_GetPointer(capsule, name);
            M::drop_raw(raw.cast());
        }
    }
}
