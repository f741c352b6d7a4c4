//! Streams as Python gives them: numbers by the rules of the array API standard, and objects that have one.
//!
//! Source: the array API standard on `__dlpack__`, and the CUDA stream protocol of cuda.core.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::py_owner::PyOwner;
use super::{args, getattr};
use crate::cuda::Stream;
use crate::device::Device;
use crate::memory::cuda::{StreamOwner, with_kept_stream};
use crate::protocol::ExchangeError;

const ALLOWED: &str = "None, 1 (legacy default), 2 (per-thread default), the handle of a stream, or an object with \
                       __cuda_stream__";
const ALLOWED_WITHOUT_ORDER: &str = "None, -1 for no order, 1 (legacy default), 2 (per-thread default), the handle of a \
                                     stream, or an object with __cuda_stream__";
const OF_OBJECTS: &str = "a pair (0, handle), as a method or an attribute";

/// What a consumer says of the stream it is going to work on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nothing.
    Nothing,
    /// That it sees to the order itself.
    NoOrder,
    /// Which it is.
    Stream(Stream),
}

/// The number of a stream, if that is what this is: an integer, or what an object with `__cuda_stream__` says.
pub(super) fn number(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    let Some(found) = getattr::getattr_opt(value, intern!(value.py(), "__cuda_stream__"))? else {
        return Ok(value.extract().ok());
    };
    let pair = if found.is_callable() { found.call0()? } else { found };
    match pair.extract::<(i64, i64)>() {
        // CUDA's own 0 is the legacy default stream, in the driver's functions; what it is in the array API standard, where
        // it stands for nothing, an object does not say.
        Ok((0, 0)) => Ok(Some(1)),
        Ok((0, handle)) => Ok(Some(handle)),
        _ => {
            let got = args::shown(&pair);
            Err(ExchangeError::Argument { argument: "__cuda_stream__", got, allowed: OF_OBJECTS }.into())
        }
    }
}

/// What keeps a stream alive: the object it was given as. A number keeps nothing.
pub(super) fn kept(value: &Bound<'_, PyAny>) -> Option<StreamOwner> {
    (!value.is_instance_of::<PyInt>()).then(|| Arc::new(PyOwner::new(value)) as StreamOwner)
}

/// A stream of a CUDA device.
pub(super) fn of(value: &Bound<'_, PyAny>, device: Device) -> PyResult<Stream> {
    handle(value, number(value)?, device, ALLOWED)
}

fn handle(value: &Bound<'_, PyAny>, number: Option<i64>, device: Device, allowed: &'static str) -> PyResult<Stream> {
    let number = number.and_then(|number| u64::try_from(number).ok()).filter(|number| *number != 0);
    let number =
        number.ok_or_else(|| ExchangeError::Argument { argument: "stream", got: args::shown(value), allowed })?;
    Ok(Stream::new(device, number)?)
}

/// What a consumer says, for memory of a CUDA device.
pub(super) fn asked(value: Option<&Bound<'_, PyAny>>, device: Device) -> PyResult<Asked> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(Asked::Nothing) };
    match number(value)? {
        Some(-1) => Ok(Asked::NoOrder),
        number => handle(value, number, device, ALLOWED_WITHOUT_ORDER).map(Asked::Stream),
    }
}

/// Does work for a device in the stream that is given; in the current one if none is. The host has no streams.
pub(super) fn within<R>(
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
    with_kept_stream(device, stream, kept(value), work)
}
