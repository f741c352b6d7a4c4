//! Imports objects by Python's buffer protocol: `bytes`, `bytearray`, `memoryview`, `array.array`, `ctypes`, `mmap` and others.
//!
//! Source: PEP 3118 and the C API's page on the buffer protocol.

use pyo3::prelude::*;

use crate::protocol::pep3118;
use crate::python::import::held_buffer::{Held, is_exporter};
use crate::python::import::imported::Imported;
use crate::python::import::numpy_scalar::numpy_scalar;
use crate::python::import::request::Request;

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    if !is_exporter(object) {
        return Ok(false);
    }
    // NumPy's scalars export themselves, but those of other packages' types do not. Dates would be bytes: they are rejected.
    if numpy_scalar(object)?.is_some_and(|dtype| pep3118::encode(dtype).is_none()) {
        return Ok(false);
    }
    hold(object, request, imported)
}

/// Describes the buffer of an object that has one, and owns its memory. Of Python's own types, this is the whole import: they
/// have no other protocol and no metadata. It has the request, which it does not need, as all imports have it.
pub(super) fn hold(
    object: &Bound<'_, PyAny>,
    _request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    let held = Held::get(object)?;
    *imported.descriptor = held.describe()?;
    Ok(imported.owned(held.into_owner(object.py())?))
}
