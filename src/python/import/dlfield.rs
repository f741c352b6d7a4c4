//! Imports dlfield's own types: `Tensor`, and the memory behind a `Descriptor`.

use pyo3::prelude::*;

use crate::device::Device;
use crate::python::import::imported::Imported;
use crate::python::import::request::{Ownership, Request, check_exported};
use crate::python::import::type_info::is_torch;
use crate::python::import::{host_device, owners, pinned, torch};
use crate::python::own_classes::{self, Description};
use crate::python::sync;
use crate::tensor::Tensor;

#[inline]
pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    if let Some(tensor) = own_classes::tensor(object) {
        import_tensor(object.py(), tensor, request, imported)
    } else if own_classes::is_description(object) {
        import_described(object, request, imported)
    } else {
        Ok(false)
    }
}

#[inline(never)]
fn import_tensor(
    py: Python<'_>,
    tensor: &Tensor,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    if request.ownership == Ownership::Share {
        imported.descriptor.clone_from(tensor.descriptor());
        return Ok(imported.owned(tensor.owner().clone()));
    }
    imported.is_tensor = true;
    tensor.describe_into(imported.descriptor);
    if imported.descriptor.device() == Device::CPU {
        // Users of a description may read the host memory at its address.
        sync::synchronize_host(py, tensor)?;
    }
    Ok(imported.borrowed())
}

fn import_described(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    let Some(Description { descriptor: described, object, owner, owner_needs_object }) =
        own_classes::description(object)
    else {
        return Ok(false);
    };
    *imported.descriptor = described.clone();
    check_exported(request, imported.descriptor.device())?;
    host_device::refresh_described(&object, imported.descriptor.device(), request.access)?;
    if request.ownership == Ownership::Borrow
        && imported.descriptor.device() == Device::CPU
        && let Some(tensor) = own_classes::tensor(&object)
    {
        sync::synchronize_host(object.py(), tensor)?;
    }
    let owner = match (owner, request.ownership) {
        (Some(owner), Ownership::Borrow) => {
            imported.owner_needs_object = owner_needs_object;
            owner.clone()
        }
        (Some(owner), Ownership::Share) if owner_needs_object => owners::owner_and_object(owner.clone(), &object),
        // Owning the object too would make a chain of fields that are described and imported again and again.
        (Some(owner), Ownership::Share) => owner.clone(),
        (None, Ownership::Borrow) => {
            pinned::check_unmoved(&object, imported.descriptor)?;
            return Ok(imported.borrowed());
        }
        (None, Ownership::Share) => {
            if request.writes_or_keeps() && is_torch(&object)? {
                torch::refuse_grad(&object)?;
            }
            pinned::pinned(&object, imported.descriptor)?
        }
    };
    Ok(imported.owned(owner))
}
