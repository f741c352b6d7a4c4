//! Stream arguments: numbers by the rules of the array API standard, and objects with `__cuda_stream__`.
//!
//! Source: the array API standard on `__dlpack__`, and the CUDA stream protocol of cuda.core.

#![allow(unsafe_code, reason = "streams are borrowed by their handles")]

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;

use crate::cuda::Stream;
use crate::device::Device;
use crate::error::{ExchangeError, Result};
use crate::memory::cuda::current::{StreamOwner, with_owned_stream};
use crate::memory::cuda::device_of_stream;
use crate::python::convert::args;
use crate::python::ffi::getattr;
use crate::python::interrupt;
use crate::python::py_owner::PyOwner;

const ALLOWED: &str = "None, 1 (legacy default), 2 (per-thread default), the handle of a stream, or an object with \
                       __cuda_stream__";
const ALLOWED_OR_NO_SYNC: &str = "None, -1 for no synchronization, 1 (legacy default), 2 (per-thread default), the handle of a \
                                     stream, or an object with __cuda_stream__";
const OF_OBJECTS: &str = "a pair (0, handle), as a method or an attribute";

/// A consumer's `stream` argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum StreamArgument<'call> {
    /// None was passed.
    None,
    /// -1: the consumer orders the work itself.
    NoSync,
    /// The stream that the consumer will use.
    Stream(Stream<'call>),
}

/// The number of a stream: an integer, or the handle in an object's `__cuda_stream__`; `None` for any other value.
pub fn number(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    let Some(found) = getattr::getattr_opt(value, intern!(value.py(), "__cuda_stream__"))? else {
        return args::if_converted(value.py(), value.extract());
    };
    let pair = if found.is_callable() { found.call0()? } else { found };
    match args::if_converted(pair.py(), pair.extract::<(i64, i64)>())? {
        // In the driver's functions, handle 0 is the legacy default stream. The array API standard, in which 0 is no
        // stream, does not apply to the handles of objects.
        Some((0, 0)) => Ok(Some(1)),
        Some((0, handle)) => Ok(Some(handle)),
        _ => {
            let got = args::shown(&pair);
            Err(ExchangeError::new("__cuda_stream__", &OF_OBJECTS, &got).into())
        }
    }
}

/// The owner of a stream: the object that was passed for it, if it keeps the stream as long as it lives. That is so for those
/// of CuPy and PyTorch that have made their stream. Others may be closed, such as those of cuda.core.
pub fn owner(value: &Bound<'_, PyAny>) -> PyResult<Option<StreamOwner>> {
    let (py, ty) = (value.py(), value.get_type());
    let is_stream = ty.name().is_ok_and(|name| name == "Stream");
    let module = getattr::module_of(&ty).filter(|_| is_stream).unwrap_or_default();
    let attribute = |name: &str| interrupt::answer(py, value.getattr(name));
    let is_kept = if module.starts_with("cupy") {
        attribute("_foreign_stream_ref")?.is_none_or(|found| found.is_none())
    } else if module.starts_with("torch") {
        // An external stream of PyTorch has its handle as its id.
        match (attribute("stream_id")?, attribute("cuda_stream")?) {
            (Some(id), Some(handle)) => id.ne(handle)?,
            (id, handle) => id.is_some() != handle.is_some(),
        }
    } else {
        false
    };
    Ok(is_kept.then(|| Arc::new(PyOwner::new(value)) as StreamOwner))
}

/// Borrows a stream for a call, by the handle that `named_by` has stated: an argument, or the producer of some memory. Nothing
/// can check a handle: a program that states one of no stream crashes in the driver, as with every library for CUDA.
pub fn borrowed<'call>(named_by: &'call Bound<'_, PyAny>, device: Device, handle: u64) -> Result<Stream<'call>> {
    let _ = named_by;
    // SAFETY: by the array API standard and the protocols of CUDA, who names a stream keeps it until the call returns.
    unsafe { Stream::borrow_raw(device, handle) }
}

/// Returns the device of a stream that `named_by` has stated, as in [`borrowed`]; `default` for a default stream.
pub fn device_of(named_by: &Bound<'_, PyAny>, default: Device, handle: u64) -> Result<Device> {
    let _ = named_by;
    device_of_stream(default, handle)
}

fn handle<'call>(
    value: &'call Bound<'_, PyAny>,
    number: Option<i64>,
    device: Device,
    allowed: &'static str,
) -> PyResult<Stream<'call>> {
    let number = number.and_then(|number| u64::try_from(number).ok()).filter(|number| *number != 0);
    let number = number.ok_or_else(|| ExchangeError::new("stream", &allowed, &args::shown(value)))?;
    Ok(borrowed(value, device, number)?)
}

/// Parses a consumer's `stream` argument for memory of a CUDA device.
pub fn parse<'call>(value: Option<&'call Bound<'_, PyAny>>, device: Device) -> PyResult<StreamArgument<'call>> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(StreamArgument::None) };
    match number(value)? {
        Some(-1) => Ok(StreamArgument::NoSync),
        number => handle(value, number, device, ALLOWED_OR_NO_SYNC).map(StreamArgument::Stream),
    }
}

/// Converts an argument to a stream of a CUDA device.
pub fn of<'call>(value: &'call Bound<'_, PyAny>, device: Device) -> PyResult<Stream<'call>> {
    handle(value, number(value)?, device, ALLOWED)
}

/// Runs `work` for a device in the given stream, or in the current one without it. The host has no streams.
pub fn in_stream<R>(
    value: Option<&Bound<'_, PyAny>>,
    device: Device,
    work: impl FnOnce() -> PyResult<R>,
) -> PyResult<R> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return work() };
    args::check_stream(Some(value), device)?;
    if !device.is_of_cuda() {
        return work();
    }
    let stream = of(value, device)?;
    with_owned_stream(device, stream, owner(value)?, work)
}
