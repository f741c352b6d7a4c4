//! Our own types.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use super::{Ownership, Reading, Request, borrow, check_exported, host_device, is_torch, numpy, torch};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::py::descriptor::PyDescriptor;
use crate::py::fastcall;
use crate::py::py_owner::PyOwner;
use crate::py::sync;
use crate::py::tensor::PyTensor;
use crate::tensor::Owner;

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    if let Ok(tensor) = object.cast_exact::<PyTensor>() {
        let tensor = &tensor.get().0;
        *descriptor = tensor.descriptor().clone();
        if ownership == Ownership::Share {
            return Ok(Some(Reading::Owned(tensor.owner().clone())));
        }
        if descriptor.device() == Device::CPU {
            // A description is as good as the address.
            sync::synchronize_host(object.py(), tensor)?;
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
    host_device::used_again(&described.object(object.py()), descriptor.device(), request.access)?;
    if ownership == Ownership::Borrow
        && descriptor.device() == Device::CPU
        && let Ok(tensor) = described.object(object.py()).cast_exact::<PyTensor>()
    {
        sync::synchronize_host(object.py(), &tensor.get().0)?;
    }
    let Some(owner) = described.keeper() else {
        let object = described.object(object.py());
        return Ok(Some(match ownership {
            Ownership::Borrow => {
                borrow::check_unmoved(&object, descriptor)?;
                Reading::Borrowed
            }
            Ownership::Share => {
                if request.access.takes(ownership) && is_torch(&object)? {
                    torch::refuse_grad(&object)?;
                }
                Reading::Owned(borrow::pinned(&object, descriptor)?)
            }
        }));
    };
    Ok(Some(Reading::Owned(match ownership {
        Ownership::Borrow => owner.clone(),
        Ownership::Share => with(owner.clone(), &described.object(object.py())),
    })))
}

/// An owner that keeps the object too, for as long as what was handed over for a description: that is not all that keeps
/// the memory, as a description keeps its object by itself.
pub(super) fn with(owner: Owner, object: &Bound<'_, PyAny>) -> Owner {
    Owner::foreign((owner, PyOwner::new(object)))
}

/// The object to keep: not a description, but what it describes and keeps. Descriptions of descriptions would be a chain.
#[inline]
pub(super) fn kept<'py>(object: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    match object.cast_exact::<PyDescriptor>() {
        Ok(described) => described.get().object(object.py()),
        Err(_) => object.clone(),
    }
}

/// The owner of our own tensor, described or not.
pub(super) fn owner(object: &Bound<'_, PyAny>) -> Option<Owner> {
    Some(kept(object).cast_exact::<PyTensor>().ok()?.get().0.owner().clone())
}

/// The owner of the tensor of ours that an array's base, or a memoryview, has its memory from.
///
/// To own the array instead would make a chain that grows with every way there and back: `numpy.asarray` makes an array
/// on a memoryview of the tensor, and a view of that array is one step more.
pub(super) fn behind(object: &Bound<'_, PyAny>) -> Option<Owner> {
    let mut object = object.clone();
    // NumPy leaves out what is in between, so there are few steps to where the memory comes from.
    for _ in 0..4 {
        if let Ok(tensor) = object.cast_exact::<PyTensor>() {
            return Some(tensor.get().0.owner().clone());
        }
        object = if numpy::is_exact(&object) {
            numpy::base(&object)?
        } else if object.is_exact_instance_of::<PyMemoryView>() {
            // One that was released has none to tell.
            match object.getattr(intern!(object.py(), "obj")) {
                Ok(exporter) => exporter,
                Err(error) => {
                    drop(error);
                    fastcall::drop_deferred_references();
                    return None;
                }
            }
        } else {
            return None;
        };
    }
    None
}
