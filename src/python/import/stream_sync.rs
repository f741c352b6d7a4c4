//! Orders streams for imported CUDA memory: the producer's work comes first, then the consumer's, then the release.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::c_void;
use std::ptr::null_mut;

use dlpark::ffi::DLPackExchangeAPI;
use pyo3::prelude::*;

use crate::cuda;
use crate::cuda::{Stream, current_stream};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{DeviceErrorKind, Error};
use crate::memory::cuda::{StreamUses, UsedStream};
use crate::python::convert::stream::StreamArgument;
use crate::python::convert::{errors, stream};
use crate::python::import::owners;
use crate::python::import::request::{Imported, Ownership, Request};
use crate::python::{sync, tensor_api};
use crate::tensor::{Owner, Tensor};

/// Returns the number of the stream to pass to a producer: the caller's, else this thread's current stream on the device of
/// the memory. `None` for a device without CUDA streams, or an unknown device.
pub fn stream_for_producer(request: &Request<'_>, found: Option<Device>) -> PyResult<Option<i64>> {
    if let Some(stream) = request.stream.filter(|stream| !stream.is_none()) {
        return stream::number(stream);
    }
    let found = found.filter(|found| found.is_cuda() || *found == Device::CUDA_MANAGED);
    Ok(found.map(|found| i64::try_from(current_stream(found).stream().handle()).unwrap_or(1)))
}

/// Makes the consumer's stream, the caller's or else the current one, wait for the producer's work, and makes the owner wait
/// for both before it releases the memory. `out.producer_stream` is the stream on which the producer's work may still
/// run. If it is `None`, the producer got the consumer's stream, unless its protocol takes no stream.
///
/// Without CUDA no work is pending. Memory is still described then, and owned if the host can read it.
#[cold]
pub fn order(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<()> {
    let device = out.descriptor.device();
    if !cuda::is_available() && (request.ownership == Ownership::Borrow || device.is_host_readable()) {
        return Ok(());
    }
    let py = object.py();
    let user = request.stream_device(device);
    let argument = stream::parse(request.stream, user)?;
    let current = current_stream(user).used().clone();
    if user != device {
        // No other code here checks that this device exists.
        cuda::is_capturing(user, current.stream())?;
    }
    let owner = request.stream.map_or(Ok(None), stream::owner)?;
    let of_tensor = if out.owner.is_none() { owners::owner(object) } else { None };
    // The streams of memory that has come back are known, unless another library has it in between and names its own stream.
    if out.producer_stream.is_none()
        && let Some(known) = out.owner.as_ref().or(of_tensor.as_ref()).and_then(Owner::stream_uses)
    {
        match argument {
            StreamArgument::NoSync => {}
            StreamArgument::None => py.detach(|| known.record(&current))?,
            StreamArgument::Stream(stream) => {
                py.detach(|| known.make_stream_wait(user, stream, owner))?;
            }
        }
        return Ok(());
    }
    let producer = out.producer_stream.take().and_then(|number| u64::try_from(number).ok());
    let producer = producer.map(|number| stream::borrowed(object, device, number)).transpose()?;
    // A producer that does not name its stream frees and reuses the memory in one that does not wait for our uses, unless they
    // are in the legacy default stream, which waits for blocking streams, and they for it.
    let is_ordered = |consumer: &UsedStream| {
        producer.is_some() || argument == StreamArgument::NoSync || consumer.is(user, Stream::LEGACY)
    };
    // The stream that the producer's work is ordered before is its own one, or the one that it got.
    let uses_of = |first: &UsedStream, consumer: &UsedStream| {
        let uses = StreamUses::of_import(device, first, is_ordered(consumer))?;
        if argument != StreamArgument::NoSync {
            uses.record(consumer)?;
        }
        Ok(uses)
    };
    let order = |consumer: &UsedStream| match (producer, argument) {
        (Some(stream), _) if consumer.is(device, stream) => uses_of(consumer, consumer),
        (Some(stream), _) => UsedStream::lent(device, stream, None, |first| uses_of(first, consumer)),
        (None, StreamArgument::None) => uses_of(current_stream(device).used(), consumer),
        (None, _) => uses_of(consumer, consumer),
    };
    let uses = py.detach(|| match argument {
        StreamArgument::Stream(stream) => UsedStream::lent(user, stream, owner, order),
        _ => order(&current),
    });
    let uses = uses.map_err(|error| match error {
        Error::Device(error) if error.kind() == DeviceErrorKind::Capturing => Error::from(error.with_fix(
            &"use that stream here too, as in `with dlfield.cuda.stream(torch.cuda.current_stream())`, or pass stream=-1 and \
              synchronize yourself",
        )),
        error => error,
    })?;
    out.owner = out.owner.take().map(|owner| owner.freed_after(uses));
    Ok(())
}

/// Waits for device work on described memory that the host is about to use. `owner` is the description's, else the object's. In
/// an extension the streams that work on a `dlfield.Tensor` are known to the module only.
#[cold]
pub fn synchronize_described(object: &Bound<'_, PyAny>, owner: Option<&Owner>, field: &Descriptor) -> PyResult<()> {
    if let Some(api) = tensor_api::of(object) {
        return api.synchronize(object);
    }
    let owner = owner.cloned().or_else(|| owners::owner(object)).unwrap_or(Owner::NONE);
    // SAFETY: no element is accessed.
    let tensor = unsafe { Tensor::from_parts(field.clone(), owner) };
    Ok(sync::wait_for_device(object.py(), &tensor)?)
}

/// Returns the number of the current stream of a table's library, if the table returns it.
#[cold]
pub fn of_table(object: &Bound<'_, PyAny>, table: &DLPackExchangeAPI, device: Device) -> PyResult<Option<i64>> {
    let Some(ask) = table.current_work_stream.filter(|_| cuda::is_available()) else { return Ok(None) };
    let (mut stream, device) = (null_mut::<c_void>(), device.to_dlpack());
    // SAFETY: a function of the table, with a valid pointer for its result.
    if unsafe { ask(device.device_type, device.device_id, &raw mut stream) } != 0 {
        let function = "__dlpack_c_exchange_api__.current_work_stream";
        return Err(errors::exception_set_by(function, object));
    }
    // The driver's NULL is the legacy default stream.
    let handle = if stream.is_null() { Stream::LEGACY.handle() } else { stream.addr() as u64 };
    Ok(i64::try_from(handle).ok())
}
