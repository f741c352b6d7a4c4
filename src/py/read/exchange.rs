//! DLPack's C exchange API, found on the object's type.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use dlpark::DlpackFlags;
use dlpark::ffi::{DLPackExchangeAPI, DLPackExchangeAPIHeader, DLTensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCapsule;

use super::{Purpose, Reading, Request};
use crate::device::Device;
use crate::protocol::{ExchangeError, dlpack};
use crate::tensor::Tensor;

const CAPSULE_NAME: &std::ffi::CStr = c"dlpack_exchange_api";

pub(super) fn read(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    purpose: Purpose,
) -> PyResult<Option<Reading>> {
    let Some(table) = table(object)? else { return Ok(None) };
    let torch = is_torch(object)?;
    if torch && is_lazy(object)? {
        return Err(ExchangeError::Lazy { fix: "resolve it with .resolve_conj().resolve_neg()" }.into());
    }
    // The table hands memory over as it is. For work on a stream `__dlpack__` is asked, and below for another device.
    if request.stream.is_some_and(|stream| !stream.is_none()) {
        return Ok(None);
    }
    let elsewhere = |device: Device| request.device.is_some_and(|wanted| wanted != device);
    match (purpose, table.dltensor_from_py_object_no_sync) {
        // A borrowed struct has no flags. PyTorch has no read-only memory; of others only a managed tensor tells.
        (Purpose::Describe, Some(borrow)) if torch => {
            let mut tensor = MaybeUninit::<DLTensor>::uninit();
            // SAFETY: the object's type offers the table; on success the struct is filled.
            let code = unsafe { borrow(object.as_ptr().cast::<c_void>(), tensor.as_mut_ptr()) };
            check(object.py(), code)?;
            // SAFETY: as above; shape and strides live until control returns to the producer, and are copied here.
            let descriptor =
                unsafe { dlpack::read(tensor.assume_init_ref(), Some(table.header.version), DlpackFlags::empty()) }?;
            Ok(if elsewhere(descriptor.device()) { None } else { Some(Reading::Borrowed(descriptor)) })
        }
        _ => {
            let export = table.managed_tensor_from_py_object_no_sync.ok_or(ExchangeError::NullPointer {
                field: "__dlpack_c_exchange_api__.managed_tensor_from_py_object_no_sync",
            })?;
            let mut managed = null_mut();
            // SAFETY: the object's type offers the table; on success ownership of the struct is ours.
            let code = unsafe { export(object.as_ptr().cast::<c_void>(), &raw mut managed) };
            check(object.py(), code)?;
            // SAFETY: as above.
            let managed = unsafe { super::dlpack::take(managed) }?;
            super::dlpack::check_copied(managed.flags(), purpose, request.copy)?;
            // SAFETY: as above; what the struct says is the producer's word.
            let tensor = unsafe { Tensor::from_managed(managed) }?;
            Ok(if elsewhere(tensor.descriptor().device()) { None } else { Some(Reading::Owned(tensor)) })
        }
    }
}

/// Whether the object is a PyTorch tensor, of whatever subclass. Nobody has one before PyTorch is imported.
fn is_torch(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static TENSOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    if TENSOR.get(py).is_none() {
        let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
        let Ok(torch) = modules.get_item(intern!(py, "torch")) else { return Ok(false) };
        // While PyTorch is still being imported there is no type yet.
        let Some(tensor) = torch.getattr_opt(intern!(py, "Tensor"))? else { return Ok(false) };
        let _ = TENSOR.set(py, tensor.unbind());
    }
    TENSOR.get(py).map_or(Ok(false), |tensor| object.is_instance(tensor.bind(py)))
}

/// Whether PyTorch has conjugated or negated the tensor in name only, which neither the table nor, for negation,
/// `__dlpack__` looks at.
fn is_lazy(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = tensor.py();
    Ok(tensor.call_method0(intern!(py, "is_conj"))?.is_truthy()?
        || tensor.call_method0(intern!(py, "is_neg"))?.is_truthy()?)
}

/// The table of the object's type in a version that can be read; newer ones may keep an older one behind them.
fn table<'a>(object: &Bound<'_, PyAny>) -> PyResult<Option<&'a DLPackExchangeAPI>> {
    let name = intern!(object.py(), "__dlpack_c_exchange_api__");
    let Some(capsule) = object.get_type().getattr_opt(name)? else { return Ok(None) };
    let capsule = capsule.cast_into::<PyCapsule>().map_err(|error| {
        PyErr::from(ExchangeError::Argument {
            argument: "__dlpack_c_exchange_api__",
            got: error.to_string(),
            allowed: "a capsule named 'dlpack_exchange_api'",
        })
    })?;
    let mut header = capsule.pointer_checked(Some(CAPSULE_NAME))?.cast::<DLPackExchangeAPIHeader>().as_ptr();
    while !header.is_null() {
        // SAFETY: tables live for the rest of the process, and their header is the same in every version.
        let known = unsafe { &*header };
        if known.version.major == dlpack::VERSION.major {
            // SAFETY: the major version says that the table is laid out like this.
            return Ok(Some(unsafe { &*header.cast::<DLPackExchangeAPI>() }));
        }
        header = known.prev_api;
    }
    Ok(None)
}

/// The Python error that a function of the table has left behind.
fn check(py: Python<'_>, code: i32) -> PyResult<()> {
    if code == 0 { Ok(()) } else { Err(PyErr::fetch(py)) }
}
