//! Imports objects through DLPack's C exchange API, a table of C functions on the object's type.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::c_void;
use std::ptr::null_mut;

use dlpark::ffi::DLPackExchangeAPI;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::cuda;
use crate::device::Device;
use crate::protocol::dlpack::null_pointer;
use crate::python::convert::{errors, stream};
use crate::python::import::frameworks::Kind;
use crate::python::import::request::{Imported, Ownership, Request};
use crate::python::import::type_info::{Name, TypeInfo};
use crate::python::import::{dlpack, stream_sync, torch, type_info};
use crate::python::py_owner;
use crate::python::tensor_api::{self, FOR_STREAM};
use crate::tensor::consume_managed;

/// The name of the function in error messages.
const EXPORT: &str = "__dlpack_c_exchange_api__.managed_tensor_from_py_object_no_sync";

/// Imports an object whose type, with this info, has the table. `false` if another protocol has to be tried.
#[inline(always)]
pub fn import(
    object: &Bound<'_, PyAny>,
    info: &TypeInfo,
    table: &'static DLPackExchangeAPI,
    request: &Request<'_>,
    out: &mut Imported<'_>,
) -> PyResult<bool> {
    if request.stream.is_some() && !is_ordered_by_table(object, table, request)? {
        return Ok(false);
    }
    let found = match info.torch {
        Some(torch) => torch::import(object, torch, request, out)?,
        None if info.kind == Kind::Dlfield && import_shared(object, request, out)? => true,
        None => import_managed(object, info, table, request, out)?,
    };
    if !found {
        return Ok(false);
    }
    // Most calls end here; the rest is kept out of this function.
    if out.descriptor.device() == Device::CPU
        && request.stream.is_none()
        && request.device.is_none_or(|wanted| wanted == Device::CPU)
    {
        return Ok(true);
    }
    let is_met = is_as_requested(object, table, request, out)?;
    if !is_met {
        // The next protocol describes what it exports, which may be a copy.
        (out.owner, out.promise, out.is_tensor) = (None, None, false);
    }
    Ok(is_met)
}

/// Whether the table may be used with the caller's stream: if it returns the producer's stream, for which the caller's then waits, or if
/// the object has no `__dlpack__`, which takes a stream. That is wrong for a library that returns its stream: it would not record the
/// caller's, and reuse the memory while the caller's work still runs.
#[cold]
fn is_ordered_by_table(object: &Bound<'_, PyAny>, table: &DLPackExchangeAPI, request: &Request<'_>) -> PyResult<bool> {
    let Some(stream) = request.stream.filter(|stream| !stream.is_none()) else { return Ok(true) };
    // -1: the caller synchronizes the streams.
    let is_known = || Ok::<_, PyErr>(cuda::is_available() && stream::number(stream)? != Some(-1));
    Ok(table.current_work_stream.is_some() && is_known()? || type_info::attribute(object, Name::Dlpack)?.is_none())
}

/// Imports a `dlfield.Tensor` by the module's own table, which tells what the allocation promises, and takes its owner back
/// later; `false` if the module has none of this version. A tensor keeps its memory for life, so what is used during a call needs no
/// owner.
fn import_shared(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    let Some(api) = tensor_api::of(object) else { return Ok(false) };
    if request.ownership == Ownership::Borrow {
        out.is_tensor = true;
        api.describe(object, FOR_STREAM, out.descriptor)?;
        return Ok(true);
    }
    let (owner, promise) = api.share(object, out.descriptor)?;
    out.promise = promise.is_stated().then(|| Box::new(promise));
    Ok(out.owned(owner))
}

/// Imports the managed tensor that the table exports for the object; `false` if another protocol has to be tried.
#[inline(always)]
fn import_managed(
    object: &Bound<'_, PyAny>,
    info: &TypeInfo,
    table: &DLPackExchangeAPI,
    request: &Request<'_>,
    out: &mut Imported<'_>,
) -> PyResult<bool> {
    let Some(export) = table.managed_tensor_from_py_object_no_sync else {
        return Err(null_pointer(EXPORT).into());
    };
    let of_torch = info.kind == Kind::Torch;
    if of_torch {
        torch::refuse_more(object, request, true)?;
    }
    let mut managed = null_mut();
    // SAFETY: the table is that of the object's type; on success we own the struct.
    let code = unsafe { export(object.as_ptr().cast::<c_void>(), &raw mut managed) };
    if code != 0 {
        return refused(object, of_torch).map(|()| false);
    }
    // SAFETY: the export succeeded, so the struct is ours.
    let managed = unsafe { dlpack::take(managed) }?;
    dlpack::check_copied(managed.flags(), request)?;
    // SAFETY: the struct is ours; its contents are the producer's promise.
    let owner = unsafe { consume_managed(managed, out.descriptor, py_owner::managed) }
        .map_err(|error| if of_torch { torch::explained(object, error.into()) } else { error.into() })?;
    let of_torch = of_torch && request.ownership == Ownership::Share;
    Ok(out.owned(if of_torch { torch::with_storage(object, owner, out.descriptor)? } else { owner }))
}

/// Returns the error of a failed export by the table. Drops a `BufferError` if the object has `__dlpack__`, which can say
/// more: the table of `dlfield.Tensor` exports no read-only memory, as some consumers of tables drop the flag.
#[cold]
fn refused(object: &Bound<'_, PyAny>, of_torch: bool) -> PyResult<()> {
    let error = PyErr::take(object.py());
    let is_buffer_error = error.as_ref().is_some_and(|error| error.is_instance_of::<PyBufferError>(object.py()));
    if is_buffer_error && !of_torch && type_info::attribute(object, Name::Dlpack)?.is_some() {
        return Ok(());
    }
    let error = error.unwrap_or_else(|| errors::no_exception_set(EXPORT, object.get_type()));
    Err(if of_torch { torch::explained(object, error) } else { error })
}

/// Checks the import against the requested device and stream. `false` if `__dlpack__` has to be called instead, because the
/// object has it and the table did not meet the request. Sets the producer's stream for CUDA memory.
#[cold]
fn is_as_requested(
    object: &Bound<'_, PyAny>,
    table: &DLPackExchangeAPI,
    request: &Request<'_>,
    out: &mut Imported<'_>,
) -> PyResult<bool> {
    let elsewhere = request.is_elsewhere(out.descriptor.device());
    let has_stream = request.stream.is_some_and(|stream| !stream.is_none());
    let unmet = elsewhere || (has_stream && !out.descriptor.device().is_of_cuda());
    if unmet && type_info::attribute(object, Name::Dlpack)?.is_some() {
        return Ok(false);
    }
    if out.descriptor.device().is_of_cuda() {
        out.producer_stream = stream_sync::of_table(object, table, out.descriptor.device())?;
    }
    if out.producer_stream.is_none() {
        request.check_exported(out.descriptor.device())?;
    }
    Ok(true)
}
