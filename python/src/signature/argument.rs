//! Describes the arguments of a stencil call in place, with their metadata and hooks.

use dlfield::device::Device;
use dlfield::native::import::{self, Hooks, Imported, Interface, Request, RequestAccess};
use pyo3::prelude::*;

use crate::classes::descriptor::PyDescriptor;

/// What is known of a described argument.
pub(crate) struct Described {
    /// The hooks to call around the use of its memory.
    pub(crate) hooks: Option<Hooks>,
    /// Whether foreign code may have run, which may have changed any argument.
    pub(crate) ran_code: bool,
}

/// Describes an object in place, with its metadata. `device` selects one of several buffers; the memory that
/// is found may still be on another device.
#[inline]
pub(crate) fn argument<'py>(
    object: &Bound<'py, PyAny>,
    device: Device,
    writes: bool,
    description: &mut PyDescriptor,
) -> PyResult<Described> {
    // The host buffer is the default anyway, and producers may copy if a device is requested.
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
    import::describe(object, request, &mut imported)?;
    if let Ok(described) = object.cast_exact::<PyDescriptor>() {
        // The memory used is that of the described object, so its hooks are called.
        let described = described.get().object(object.py());
        if import::may_be_labelled(&described)? {
            imported.interface = Some(Interface::of(&described, device)?);
        }
    }
    let hooks = if imported.ran_no_code { None } else { imported.hooks(imported.descriptor.device())? };
    let Imported { owner, protocol, ran_no_code, .. } = imported;
    description.set(import::object_to_keep(object), owner, protocol);
    let mut ran_code = !ran_no_code;
    if writes && protocol != "numpy" {
        let kept = description.object(object.py());
        if import::is_torch(&kept)? {
            import::refuse_grad_of(&kept)?;
            ran_code = true;
        }
    }
    Ok(Described { hooks, ran_code })
}
