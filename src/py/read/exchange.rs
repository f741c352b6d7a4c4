//! DLPack's C exchange API, found on the object's type.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use dlpark::DlpackFlags;
use dlpark::ffi::{DLPackExchangeAPI, DLPackExchangeAPIHeader, DLTensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::{Purpose, Reading, Request};
use crate::protocol::{ExchangeError, dlpack};
use crate::tensor::Tensor;

const CAPSULE_NAME: &std::ffi::CStr = c"dlpack_exchange_api";

pub(super) fn read(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    purpose: Purpose,
) -> PyResult<Option<Reading>> {
    let Some(table) = table(object)? else { return Ok(None) };
    let torch = is_torch(object);
    if torch && is_lazy(object)? {
        return Err(ExchangeError::Lazy { fix: "resolve it with .resolve_conj().resolve_neg()" }.into());
    }
    // The table hands memory over as it is: where another device or a copy is wanted, `__dlpack__` is asked for it.
    if request.copy.is_some() || request.stream.is_some_and(|stream| !stream.is_none()) || request.device.is_some() {
        return Ok(None);
    }
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
            Ok(Some(Reading::Borrowed(descriptor)))
        }
        _ => {
            let export = table.managed_tensor_from_py_object_no_sync.ok_or(ExchangeError::NullPointer {
                field: "__dlpack_c_exchange_api__.managed_tensor_from_py_object_no_sync",
            })?;
            let mut managed = null_mut();
            // SAFETY: the object's type offers the table; on success ownership of the struct is ours.
            let code = unsafe { export(object.as_ptr().cast::<c_void>(), &raw mut managed) };
            check(object.py(), code)?;
            // SAFETY: as above; what the struct says is the producer's word.
            let tensor = unsafe { Tensor::from_managed(super::dlpack::take(managed)?) }?;
            Ok(Some(Reading::Owned(tensor)))
        }
    }
}

fn is_torch(object: &Bound<'_, PyAny>) -> bool {
    let module = object.get_type().module();
    module.is_ok_and(|module| module.to_cow().is_ok_and(|module| module == "torch" || module.starts_with("torch.")))
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
