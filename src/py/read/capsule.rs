//! Raw DLPack capsules, of both names.

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::{Purpose, Reading, Request};

pub(super) fn read(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    purpose: Purpose,
) -> PyResult<Option<Reading>> {
    if !object.is_instance_of::<PyCapsule>() {
        return Ok(None);
    }
    super::dlpack::consume(object, purpose, request.copy)
}
