//! Python's buffer protocol: `bytes`, `bytearray`, `memoryview`, `array.array`, `ctypes`, `mmap` and whatever else has it.
//!
//! Source: PEP 3118 and the C API's page on the buffer protocol.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

use super::held_buffer::{Held, is_exporter};
use super::numpy_scalar::numpy_scalar;
use super::owners;
use super::request::{Ownership, Reading, Request};
use crate::descriptor::Descriptor;
use crate::protocol::pep3118;

/// Python's own types, which have no other protocol and no labels.
pub(super) fn import_builtin(
    object: &Bound<'_, PyAny>,
    _: &Request<'_, '_>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    let builtin = object.is_exact_instance_of::<PyMemoryView>()
        || object.is_exact_instance_of::<PyByteArray>()
        || object.is_exact_instance_of::<PyBytes>();
    if !builtin {
        return Ok(None);
    }
    let held = hold(object, descriptor)?;
    let ours = if ownership == Ownership::Share { owners::behind(object) } else { None };
    Ok(Some(ours.map_or(held, Reading::Owned)))
}

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    _: &Request<'_, '_>,
    _: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    if !is_exporter(object) {
        return Ok(None);
    }
    // NumPy's scalars share themselves, but not those of other packages' types; dates would be bytes, so they are refused.
    if numpy_scalar(object)?.is_some_and(|dtype| pep3118::encode(dtype).is_none()) {
        return Ok(None);
    }
    hold(object, descriptor).map(Some)
}

/// Reads the buffer of an object that has one, and holds it.
pub(super) fn hold(object: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<Reading> {
    let held = Held::get(object)?;
    *descriptor = held.describe()?;
    Ok(Reading::Owned(held.into_owner()))
}
