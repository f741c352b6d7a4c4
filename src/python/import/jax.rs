//! Imports JAX arrays on the host by the buffer protocol: the same description as by their `__dlpack__`, in a quarter of the
//! time.

use pyo3::intern;
use pyo3::prelude::*;

use crate::device::Device;
use crate::error::ExchangeError;
use crate::python::import::buffer;
use crate::python::import::imported::Imported;
use crate::python::import::request::Request;
use crate::python::interrupt;

/// Imports an array of JAX; `false` if another protocol has to be tried.
pub(super) fn import<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    let elsewhere = request.device.is_some_and(|device| device != Device::CPU);
    let ordered = request.stream.is_some_and(|stream| !stream.is_none());
    if elsewhere || ordered {
        return Ok(false);
    }
    if interrupt::answer(object.py(), buffer::hold(object, request, imported))?.is_some() {
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
