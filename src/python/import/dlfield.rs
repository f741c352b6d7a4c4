//! Imports dlfield's own types: `Tensor`, and the memory behind a `Descriptor`.

use pyo3::prelude::*;

use crate::device::Device;
use crate::python::import::frameworks::Kind;
use crate::python::import::pinned::{check_unmoved, pinned};
use crate::python::import::request::{Imported, Ownership, Request};
use crate::python::import::type_info::kind_of;
use crate::python::import::{torch, unwrap};
use crate::python::own_classes::{self, Description};
use crate::python::py_owner::PyOwner;
use crate::python::sync;
use crate::tensor::Tensor;

#[inline(never)]
pub fn import_tensor(py: Python<'_>, tensor: &Tensor, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<()> {
    if request.ownership == Ownership::Share {
        out.descriptor.clone_from(tensor.descriptor());
        out.owner = Some(tensor.owner().clone());
        return Ok(());
    }
    out.is_tensor = true;
    tensor.describe_into(out.descriptor);
    if out.descriptor.device() == Device::CPU {
        // Users of a description may read the host memory at its address.
        sync::synchronize_host(py, tensor)?;
    }
    Ok(())
}

/// Imports the memory behind a `Descriptor`.
pub fn import_described(
    description: &Description<'_, '_>,
    request: &Request<'_>,
    out: &mut Imported<'_>,
) -> PyResult<()> {
    let Description { descriptor, object, owner, owner_needs_object } = description;
    *out.descriptor = (*descriptor).clone();
    let device = descriptor.device();
    request.check_exported(device)?;
    if request.access.accesses_elements() && kind_of(object)? == Kind::Pair {
        // Brings the buffer that was described up to date again.
        unwrap::buffer(object, Some(device), request.access)?;
    }
    if request.ownership == Ownership::Borrow
        && device == Device::CPU
        && let Some(tensor) = own_classes::tensor(object)
    {
        sync::synchronize_host(object.py(), tensor)?;
    }
    out.owner = match (owner.cloned(), request.ownership) {
        (Some(owner), Ownership::Borrow) => {
            out.owner_needs_object = *owner_needs_object;
            Some(owner)
        }
        (Some(owner), Ownership::Share) if *owner_needs_object => Some(owner.with(PyOwner::new(object))),
        // Owning the object too would make a chain of fields that are described and imported again and again.
        (Some(owner), Ownership::Share) => Some(owner),
        (None, Ownership::Borrow) => {
            check_unmoved(object, out.descriptor)?;
            None
        }
        (None, Ownership::Share) => {
            if request.writes_or_keeps() && kind_of(object)? == Kind::Torch {
                torch::refuse_grad(object)?;
            }
            Some(pinned(object, out.descriptor)?)
        }
    };
    Ok(())
}
