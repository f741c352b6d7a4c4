//! JAX arrays on the host: their buffer protocol gives the same description as their `__dlpack__`, in a quarter of the
//! time.

use pyo3::prelude::*;

use super::facts::{Facts, Library};
use super::{Purpose, Reading, Request, buffer};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::py::fastcall;

pub(super) fn read<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    _: Purpose,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    let elsewhere = request.device.is_some_and(|device| device != Device::CPU);
    let ordered = request.stream.is_some_and(|stream| !stream.is_none());
    if elsewhere || ordered || Facts::of(object)?.library != Library::Jax {
        return Ok(None);
    }
    // There is no buffer of an array that is not on the host, or in pieces, or deleted, or of a type without a letter:
    // `__dlpack__` can do it, or says why not.
    let held = buffer::hold(object, descriptor).ok();
    if held.is_none() {
        fastcall::settle();
    }
    Ok(held)
}
