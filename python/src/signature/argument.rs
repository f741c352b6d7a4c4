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
        on_device = Request::new(RequestAccess::Stencil);
        on_device.device = device;
        &on_device
    } else {
        const { &Request::new(RequestAccess::Stencil) }
    };
    let mut imported = Imported::default();
    import::describe(object, request, &mut imported, description.descriptor_mut())?;
    description.set(import::object_to_keep(object), imported.owner.take(), imported.protocol);
    if imported.ran_no_code && !(writes && imported.protocol != "numpy") {
        return Ok(Described { hooks: None, ran_code: false });
    }
    if imported.may_lack_metadata(object)? {
        import::metadata(object, device, &mut imported, None, None)?.describe(description.descriptor_mut())?;
    } else if let Ok(described) = object.cast_exact::<PyDescriptor>() {
        // The memory used is that of the described object, so its hooks are called.
        let object_described = described.get().object(object.py());
        if import::may_be_labelled(&object_described)? {
            imported.interface = Some(Interface::of(&object_described, device)?);
        }
    }
    let mut ran_code = !imported.ran_no_code;
    if writes && imported.protocol != "numpy" {
        let object_kept = description.object(object.py());
        if import::is_torch(&object_kept)? {
            import::refuse_grad_of(&object_kept)?;
            ran_code = true;
        }
    }
    let hooks = imported.hooks(description.descriptor().device())?;
    Ok(Described { hooks, ran_code })
}
