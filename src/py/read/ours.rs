//! Our own types.

use pyo3::prelude::*;

use super::{Purpose, Reading, Request, check_exported};
use crate::descriptor::Descriptor;
use crate::py::descriptor::PyDescriptor;
use crate::py::keep;
use crate::py::tensor::PyTensor;
use crate::tensor::Owner;

pub(super) fn read(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    purpose: Purpose,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    if let Ok(tensor) = object.cast_exact::<PyTensor>() {
        let tensor = &tensor.get().0;
        *descriptor = tensor.descriptor().clone();
        if purpose == Purpose::Own {
            return Ok(Some(Reading::Owned(tensor.owner().clone())));
        }
        // A description says what the tensor knows by default too.
        descriptor.set_dims(tensor.dims())?;
        descriptor.set_halo(tensor.halo().as_slice().into())?;
        descriptor.set_origin(tensor.origin().as_slice().into())?;
        return Ok(Some(Reading::Borrowed));
    }
    let Ok(described) = object.cast_exact::<PyDescriptor>() else { return Ok(None) };
    let described = described.get();
    *descriptor = described.descriptor().clone();
    check_exported(request, descriptor.device())?;
    Ok(Some(described.keeper().map_or(Reading::Borrowed, |owner| Reading::Owned(owner.clone()))))
}

/// The object to keep: not a description, but what it describes and keeps. Descriptions of descriptions would be a chain.
#[inline]
pub(super) fn kept<'py>(object: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    match object.cast_exact::<PyDescriptor>() {
        Ok(described) => described.get().object(object.py()),
        Err(_) => object.clone(),
    }
}

/// An owner that keeps the object: what a tensor of ours shares with its views, or else the object itself.
pub(super) fn keeper(object: &Bound<'_, PyAny>) -> Owner {
    let kept = kept(object);
    match kept.cast_exact::<PyTensor>() {
        Ok(tensor) => tensor.get().0.owner().clone(),
        Err(_) => keep::owner(&kept),
    }
}
