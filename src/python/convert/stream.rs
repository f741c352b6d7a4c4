//! Stream arguments: numbers by the rules of the array API standard, and objects with `__cuda_stream__`.
//!
//! Source: the array API standard on `__dlpack__`, and the CUDA stream protocol of cuda.core.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::cuda::Stream;
use crate::device::Device;
use crate::memory::cuda::stream::StreamOwner;
use crate::protocol::ExchangeError;
use crate::python::convert::args;
use crate::python::ffi::getattr;
use crate::python::py_owner::PyOwner;

const ALLOWED_OR_NO_SYNC: &str = "None, -1 for no synchronization, 1 (legacy default), 2 (per-thread default), the handle of a \
                                     stream, or an object with __cuda_stream__";
const OF_OBJECTS: &str = "a pair (0, handle), as a method or an attribute";

/// A consumer's `stream` argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum StreamArgument {
    /// None was passed.
    None,
    /// -1: the consumer orders the work itself.
    NoSync,
    /// The stream that the consumer will use.
    Stream(Stream),
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
            Err(ExchangeError::Argument { argument: "__cuda_stream__", got, allowed: OF_OBJECTS }.into())
        }
    }
}

/// The owner of a stream: the object that was passed for it; `None` for a number.
pub fn owner(value: &Bound<'_, PyAny>) -> Option<StreamOwner> {
    (!value.is_instance_of::<PyInt>()).then(|| Arc::new(PyOwner::new(value)) as StreamOwner)
}

pub(super) fn handle(
    value: &Bound<'_, PyAny>,
    number: Option<i64>,
    device: Device,
    allowed: &'static str,
) -> PyResult<Stream> {
    let number = number.and_then(|number| u64::try_from(number).ok()).filter(|number| *number != 0);
    let number =
        number.ok_or_else(|| ExchangeError::Argument { argument: "stream", got: args::shown(value), allowed })?;
    Ok(Stream::new(device, number)?)
}

/// Parses a consumer's `stream` argument for memory of a CUDA device.
pub fn parse(value: Option<&Bound<'_, PyAny>>, device: Device) -> PyResult<StreamArgument> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(StreamArgument::None) };
    match number(value)? {
        Some(-1) => Ok(StreamArgument::NoSync),
        number => handle(value, number, device, ALLOWED_OR_NO_SYNC).map(StreamArgument::Stream),
    }
}
