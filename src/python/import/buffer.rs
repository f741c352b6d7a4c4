//! Imports objects by Python's buffer protocol: `bytes`, `bytearray`, `memoryview`, `array.array`, `ctypes`, `mmap` and others.
//!
//! Source: PEP 3118 and the C API's page on the buffer protocol.

use pyo3::prelude::*;

use crate::protocol::pep3118;
use crate::python::import::held_buffer::{Held, is_exporter};
use crate::python::import::imported::Imported;
use crate::python::import::numpy_scalar::numpy_scalar;
use crate::python::import::owners;
use crate::python::import::request::{Ownership, Request};

/// Imports an object of Python's own types, which have no other protocol and no metadata.
pub(super) fn import_builtin(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    hold(object, imported)?;
    if request.ownership == Ownership::Share
        && let Some(owner) = owners::exporting_tensor(object)
    {
        imported.owned(owner);
    }
    Ok(true)
}

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    _: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    if !is_exporter(object) {
        return Ok(false);
    }
    // NumPy's scalars export themselves, but those of other packages' types do not. Dates would be bytes: they are rejected.
    if numpy_scalar(object)?.is_some_and(|dtype| pep3118::encode(dtype).is_none()) {
        return Ok(false);
    }
    hold(object, imported)
}

/// Describes the buffer of an object that has one, and holds it as the owner.
pub(super) fn hold(object: &Bound<'_, PyAny>, imported: &mut Imported<'_, '_>) -> PyResult<bool> {
    let held = Held::get(object)?;
    *imported.descriptor = held.describe()?;
    Ok(imported.owned(held.into_owner()))
}
