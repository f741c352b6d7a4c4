//! Raw DLPack capsules, of both names.

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::request::{Ownership, Reading, Request, check_exported};
use crate::descriptor::Descriptor;

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    if !object.is_instance_of::<PyCapsule>() {
        return Ok(None);
    }
    let reading = super::dlpack::consume(object, ownership, request.copy, descriptor)?;
    if reading.is_some() {
        check_exported(request, descriptor.device())?;
    }
    Ok(reading)
}
