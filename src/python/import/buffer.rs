//! Imports objects by Python's buffer protocol: `bytes`, `bytearray`, `memoryview`, `array.array`, `ctypes`, `mmap` and others, and
//! JAX arrays on the host: the same description as by their `__dlpack__`, in a quarter of the time.
//!
//! Source: PEP 3118 and the C API's page on the buffer protocol.

use pyo3::intern;
use pyo3::prelude::*;

use crate::device::Device;
use crate::error::ExchangeError;
use crate::protocol::pep3118;
use crate::python::import::held_buffer::{Held, is_exporter};
use crate::python::import::numpy::numpy_scalar;
use crate::python::import::request::{Imported, Request};
use crate::python::interrupt;

pub fn import(object: &Bound<'_, PyAny>, _: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    // NumPy's scalars export themselves, but those of other packages' types do not. Dates would be bytes: they are rejected.
    if !is_exporter(object) || numpy_scalar(object)?.is_some_and(|dtype| pep3118::encode(dtype).is_none()) {
        return Ok(false);
    }
    hold(object, out)
}

/// Describes the buffer of an object that has one, and owns its memory.
fn hold(object: &Bound<'_, PyAny>, out: &mut Imported<'_>) -> PyResult<bool> {
    let held = Held::get(object)?;
    *out.descriptor = held.describe()?;
    Ok(out.owned(held.into_owner(object.py())?))
}

/// Imports an array of JAX; `false` if another protocol has to be tried.
pub fn import_jax(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    let elsewhere = request.device.is_some_and(|device| device != Device::CPU);
    let ordered = request.stream.is_some_and(|stream| !stream.is_none());
    if elsewhere || ordered {
        return Ok(false);
    }
    if interrupt::answer(object.py(), hold(object, out))?.is_some() {
        return Ok(true);
    }
    // For a deleted array the error of `__dlpack_device__` would only say that None has no length.
    if object.call_method0(intern!(object.py(), "is_deleted"))?.is_truthy()? {
        let got = "a JAX array that was deleted, or donated to a computation".to_owned();
        let fix = "use the computation's result";
        return Err(ExchangeError::new("obj", &"one that still has memory", &got).with_fix(&fix).into());
    }
    // An array on a device, in several pieces, or of a type without a format letter has no buffer: `__dlpack__` imports it, or
    // its error says why not.
    Ok(false)
}
