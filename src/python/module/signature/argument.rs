//! Describes one argument of `Signature.bind` in a given `Descriptor`, and finds its hooks.

use crate::descriptor::read_only;
use crate::device::Device;
use crate::python::convert::errors::ErrorKind;
use crate::python::import::{self, Found, Hooks, Imported, Interface, Request, RequestAccess};
use crate::python::module::classes::descriptor::PyDescriptor;
use crate::python::own_classes;
use pyo3::prelude::*;

/// Describes an object, with its metadata, and returns the hooks to call around the use of its memory. `device` selects one of
/// several buffers; the caller checks on which device the memory is. With `writes`, rejects PyTorch tensors that require grad.
#[inline]
pub(crate) fn describe_argument<'py>(
    object: &Bound<'py, PyAny>,
    device: Device,
    writes: bool,
    description: &mut PyDescriptor,
) -> PyResult<Option<Hooks>> {
    // The field's name stands before the message.
    let without_name = |error| {
        let error = if writes { import::not_an_output(object, error) } else { error };
        ErrorKind::of_argument(object.py(), "", error)
    };
    if import::locate_array(object, description.descriptor_mut())? {
        description.set(object.clone(), "numpy");
        return Ok(None);
    }
    // The host is not requested: its buffer is the default, and producers may copy if a device is requested.
    let device = Some(device).filter(|device| *device != Device::CPU);
    let mut on_device;
    let request = if device.is_some() {
        on_device = Request::new(RequestAccess::Stencil).with_metadata();
        on_device.device = device;
        &on_device
    } else {
        const { &Request::new(RequestAccess::Stencil).with_metadata() }
    };
    let mut imported = Imported::new(description.descriptor_mut());
    import::describe(object, request, &mut imported).map_err(without_name)?;
    if writes && imported.readonly_unknown {
        let fix = "its legacy DLPack capsule cannot say that it may be written; if it may, pass \
                   dl.describe(obj, writable=True)";
        return Err(read_only("access", fix).into());
    }
    if let Ok(given) = object.cast_exact::<PyDescriptor>() {
        // The memory used is that of the described object, so its hooks are called.
        let described_object = given.get().object(object.py());
        if import::may_have_hooks(&described_object)? {
            imported.interface = Some(Interface::of(&described_object, device)?);
        }
    }
    let hooks = imported.hooks(imported.descriptor.device())?;
    let Found { owner, owner_needs_object, protocol, .. } = imported.found();
    description.set_owned(own_classes::object_to_keep(object), owner, owner_needs_object, protocol);
    if writes {
        // The import accepts tensors that require grad, as those that are only read may.
        let kept = description.object(object.py());
        if import::kind_of(&kept)? == import::Kind::Torch {
            import::refuse_grad_of_torch(&kept).map_err(without_name)?;
        }
    }
    Ok(hooks)
}
