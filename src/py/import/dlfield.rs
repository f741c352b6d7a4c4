//! Imports dlfield's own types: `Tensor`, and the memory behind a `Descriptor`.

use pyo3::prelude::*;

use super::imported::Imported;
use super::owners;
use super::request::{Ownership, Request, check_exported};
use super::type_info::is_torch;
use super::{host_device, pinned, torch};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::py::descriptor::PyDescriptor;
use crate::py::sync;
use crate::py::tensor::PyTensor;

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_>,
    descriptor: &mut Descriptor,
) -> PyResult<bool> {
    if let Ok(tensor) = object.cast_exact::<PyTensor>() {
        let tensor = &tensor.get().0;
        *descriptor = tensor.descriptor().clone();
        if request.ownership == Ownership::Share {
            return Ok(imported.owned(tensor.owner().clone()));
        }
        if descriptor.device() == Device::CPU {
            // Users of a description may read the host memory at its address.
            sync::synchronize_host(object.py(), tensor)?;
        }
        // A description also has the tensor's default metadata.
        descriptor.set_dims(tensor.dims())?;
        descriptor.set_halo(tensor.halo().as_slice().into())?;
        descriptor.set_origin(tensor.origin().as_slice().into())?;
        return Ok(imported.borrowed());
    }
    let Ok(described) = object.cast_exact::<PyDescriptor>() else { return Ok(false) };
    let described = described.get();
    *descriptor = described.descriptor().clone();
    check_exported(request, descriptor.device())?;
    host_device::used_again(&described.object(object.py()), descriptor.device(), request.access)?;
    if request.ownership == Ownership::Borrow
        && descriptor.device() == Device::CPU
        && let Ok(tensor) = described.object(object.py()).cast_exact::<PyTensor>()
    {
        sync::synchronize_host(object.py(), &tensor.get().0)?;
    }
    let object = described.object(object.py());
    let owner = match (described.shared_owner(), request.ownership) {
        (Some(owner), Ownership::Borrow) => owner.clone(),
        (Some(owner), Ownership::Share) => owners::with(owner.clone(), &object),
        (None, Ownership::Borrow) => {
            pinned::check_unmoved(&object, descriptor)?;
            return Ok(imported.borrowed());
        }
        (None, Ownership::Share) => {
            if request.writes_or_keeps() && is_torch(&object)? {
                torch::refuse_grad(&object)?;
            }
            pinned::pinned(&object, descriptor)?
        }
    };
    Ok(imported.owned(owner))
}
