//! DLPack's C exchange API, found on the object's type.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::c_void;
use std::ptr::null_mut;

use dlpark::ffi::{DLPackExchangeAPI, DLPackExchangeAPIHeader, DLTensor};
use pyo3::exceptions::PyBufferError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use super::names::Name;
use super::type_info::{self, Framework, TypeInfo};
use super::{Ownership, Reading, Request, check_exported, stream_sync, torch, torch_errors};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::protocol::{ExchangeError, dlpack};
use crate::py::{errors, fastcall, getattr};
use crate::tensor::consume_managed;

/// What lends a tensor's struct.
pub(super) type Borrow = unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> i32;

/// The functions, as error messages call them.
const EXPORT: &str = "__dlpack_c_exchange_api__.managed_tensor_from_py_object_no_sync";
pub(super) const BORROW: &str = "__dlpack_c_exchange_api__.dltensor_from_py_object_no_sync";

const CAPSULE_NAME: &std::ffi::CStr = c"dlpack_exchange_api";

#[inline(never)]
pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    let info = TypeInfo::of(object)?;
    let Some(table) = info.table else { return Ok(None) };
    if request.stream.is_some() && !may_have_hooks(object, table, request)? {
        return Ok(None);
    }
    let reading = match info.torch_lends() {
        Some(borrow) => torch::import(object, table, borrow, ownership, request.access, descriptor)?,
        None => match handed_over(object, table, request, ownership, descriptor)? {
            Some(reading) => reading,
            None => return Ok(None),
        },
    };
    // What an object has to call is among what says labels.
    request.has_no_metadata.set(!info.may_be_labelled(object));
    // Most calls are over here: what follows is out of their way.
    if descriptor.device() == Device::CPU
        && request.stream.is_none()
        && request.device.is_none_or(|wanted| wanted == Device::CPU)
    {
        return Ok(Some(reading));
    }
    where_asked(object, table, request, descriptor, reading)
}

/// Whether the table may be used for the stream that is stated. It hands memory over as it is: for work on a stream
/// `__dlpack__` is asked by objects that have it. Of CUDA's memory a library that names its own stream is not told of
/// others: what it was told of it would forget, and use the memory again in its own stream while others work on it.
#[cold]
fn may_have_hooks(object: &Bound<'_, PyAny>, table: &DLPackExchangeAPI, request: &Request<'_, '_>) -> PyResult<bool> {
    let Some(stated) = request.stream.filter(|stream| !stream.is_none()) else { return Ok(true) };
    Ok(stream_sync::is_said(table, stated)? || type_info::method(object, Name::Dlpack)?.is_none())
}

/// Takes the struct that the table makes of the object; `None` where the object has to be asked in another way.
#[inline(always)]
fn handed_over(
    object: &Bound<'_, PyAny>,
    table: &DLPackExchangeAPI,
    request: &Request<'_, '_>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    let Some(export) = table.managed_tensor_from_py_object_no_sync else {
        return Err(ExchangeError::NullPointer { field: EXPORT }.into());
    };
    let mut managed = null_mut();
    // SAFETY: the object's type offers the table; on success ownership of the struct is ours.
    let code = unsafe { export(object.as_ptr().cast::<c_void>(), &raw mut managed) };
    if code != 0 {
        return refused(object).map(|()| None);
    }
    // SAFETY: as above.
    let managed = unsafe { super::dlpack::take(managed) }?;
    super::dlpack::check_copied(managed.flags(), ownership, request.copy)?;
    // SAFETY: as above; what the struct says is the producer's word.
    let owner = unsafe { consume_managed(managed, descriptor) }?;
    let of_torch = ownership == Ownership::Share && TypeInfo::of(object)?.library == Framework::Torch;
    Ok(Some(Reading::Owned(if of_torch { torch::with_storage(object, owner, descriptor)? } else { owner })))
}

/// The error of a table that has exported nothing. A `BufferError` is dropped where the object has `__dlpack__`, which can
/// say more: a `dlfield.Tensor` on read-only memory refuses its table to all, as some who use it drop the flag.
#[cold]
fn refused(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let error = PyErr::take(object.py());
    let unsaid = error.as_ref().is_some_and(|error| error.is_instance_of::<PyBufferError>(object.py()));
    if unsaid && TypeInfo::of(object)?.library == Framework::Other && type_info::method(object, Name::Dlpack)?.is_some()
    {
        drop(error);
        fastcall::drop_deferred_references();
        return Ok(());
    }
    Err(failed(object, EXPORT, error))
}

/// What was read, if it is on the device that is wanted, or its producer has no other way to bring it there.
#[cold]
fn where_asked(
    object: &Bound<'_, PyAny>,
    table: &DLPackExchangeAPI,
    request: &Request<'_, '_>,
    descriptor: &Descriptor,
    reading: Reading,
) -> PyResult<Option<Reading>> {
    let elsewhere = request.device.is_some_and(|wanted| wanted != descriptor.device());
    let stated = request.stream.is_some_and(|stream| !stream.is_none());
    let asked = elsewhere || (stated && !descriptor.device().is_of_cuda());
    if asked && type_info::method(object, Name::Dlpack)?.is_some() {
        return Ok(None);
    }
    if descriptor.device().is_of_cuda() {
        request.producer.set(stream_sync::of_table(object, table, descriptor.device())?);
    }
    if request.producer.get().is_none() {
        check_exported(request, descriptor.device())?;
    }
    Ok(Some(reading))
}

/// The table of a type in a version that can be read; newer ones may keep an older one behind them.
pub(in crate::py) fn table(ty: &Bound<'_, PyType>) -> PyResult<Option<&'static DLPackExchangeAPI>> {
    let name = intern!(ty.py(), "__dlpack_c_exchange_api__");
    // Not what only the metaclass has: that may change without the type.
    if getattr::on_type(ty, name).is_none() {
        return Ok(None);
    }
    let Some(capsule) = getattr::getattr_opt(ty, name)? else { return Ok(None) };
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

/// The error of a function of the table that has failed, by the exception that it has set.
#[cold]
pub(super) fn failed(object: &Bound<'_, PyAny>, function: &'static str, error: Option<PyErr>) -> PyErr {
    let error = error.unwrap_or_else(|| errors::silent(function, object.get_type()));
    match TypeInfo::of(object) {
        Ok(info) if info.library == Framework::Torch => torch_errors::explained(object, error),
        _ => error,
    }
}
