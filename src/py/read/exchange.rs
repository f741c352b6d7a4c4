//! DLPack's C exchange API, found on the object's type.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use dlpark::DlpackFlags;
use dlpark::ffi::{DLDataTypeCode, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLTensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use super::facts::{Facts, Library};
use super::{Purpose, Reading, Request};
use crate::descriptor::Descriptor;
use crate::protocol::{ExchangeError, dlpack};
use crate::py::lookup;
use crate::tensor::take_over;

const CAPSULE_NAME: &std::ffi::CStr = c"dlpack_exchange_api";

pub(super) fn read(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    purpose: Purpose,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    let Facts { table: Some(table), library, .. } = Facts::of(object)? else { return Ok(None) };
    // The table hands memory over as it is. For work on a stream `__dlpack__` is asked, and below for another device.
    if request.stream.is_some_and(|stream| !stream.is_none()) {
        return Ok(None);
    }
    let torch = library == Library::Torch;
    let reading = match (purpose, table.dltensor_from_py_object_no_sync) {
        // A borrowed struct has no flags. PyTorch has no read-only memory; of others only a managed tensor tells.
        (Purpose::Describe, Some(borrow)) if torch => {
            let mut tensor = MaybeUninit::<DLTensor>::uninit();
            // SAFETY: the object's type offers the table; on success the struct is filled.
            let code = unsafe { borrow(object.as_ptr().cast::<c_void>(), tensor.as_mut_ptr()) };
            check(object.py(), code)?;
            // SAFETY: as above; shape and strides live until control returns to the producer, and are copied here.
            unsafe {
                let version = Some(table.header.version);
                dlpack::read_into(descriptor, tensor.assume_init_ref(), version, DlpackFlags::empty())?;
            }
            Reading::Borrowed
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
            Reading::Owned(unsafe { take_over(managed, descriptor) }?)
        }
    };
    if torch && may_be_lazy(descriptor) && is_lazy(object)? {
        return Err(ExchangeError::Lazy { fix: "resolve it with .resolve_conj().resolve_neg()" }.into());
    }
    let elsewhere = request.device.is_some_and(|wanted| wanted != descriptor.device());
    Ok(if elsewhere { None } else { Some(reading) })
}

/// Whether PyTorch may have conjugated or negated a tensor like this in name only. What it negates so are the imaginary
/// parts of complex numbers, which lie two steps apart, wherever views of them go.
fn may_be_lazy(descriptor: &Descriptor) -> bool {
    match descriptor.dtype().code() {
        DLDataTypeCode::COMPLEX => true,
        DLDataTypeCode::FLOAT => {
            let mut steps = descriptor.shape().iter().zip(descriptor.strides());
            steps.all(|(extent, stride)| *extent == 1 || stride % 2 == 0)
        }
        _ => false,
    }
}

/// Whether PyTorch has conjugated or negated the tensor in name only, which neither the table nor, for negation,
/// `__dlpack__` looks at.
fn is_lazy(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = tensor.py();
    Ok(tensor.call_method0(intern!(py, "is_conj"))?.is_truthy()?
        || tensor.call_method0(intern!(py, "is_neg"))?.is_truthy()?)
}

/// The table of a type in a version that can be read; newer ones may keep an older one behind them.
pub(in crate::py) fn table(ty: &Bound<'_, PyType>) -> PyResult<Option<&'static DLPackExchangeAPI>> {
    let name = intern!(ty.py(), "__dlpack_c_exchange_api__");
    let Some(capsule) = lookup::optional(ty, name)? else { return Ok(None) };
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
