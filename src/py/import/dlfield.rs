//! Our own types.

use pyo3::prelude::*;

use super::owners;
use super::request::{Ownership, Reading, Request, check_exported};
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
    let Some(owner) = described.shared_owner() else {
        let object = described.object(object.py());
        return Ok(Some(match ownership {
            Ownership::Borrow => {
                pinned::check_unmoved(&object, descriptor)?;
                Reading::Borrowed
            }
            Ownership::Share => {
                if request.access.takes(ownership) && is_torch(&object)? {
                    torch::refuse_grad(&object)?;
                }
                Reading::Owned(pinned::pinned(&object, descriptor)?)
            }
        }));
    };
    Ok(Some(Reading::Owned(match ownership {
        Ownership::Borrow => owner.clone(),
        Ownership::Share => owners::with(owner.clone(), &described.object(object.py())),
    })))
}
