//! Describes one argument of `Signature.bind` in a given `Descriptor`, and finds its hooks.

use dlfield::native::errors::ErrorKind;
use dlfield::native::import::{self, Hooks, Imported, Interface, Request, RequestAccess};
use dlfield::{Device, ExchangeError};
use pyo3::prelude::*;

use crate::classes::descriptor::PyDescriptor;

/// What is known of a described argument.
pub(crate) struct ArgumentInfo {
    /// The hooks to call around the use of its memory.
    pub(crate) hooks: Option<Hooks>,
    /// Whether foreign code may have run before the argument was described, which may have changed earlier arguments.
    pub(crate) ran_code_before: bool,
    /// Whether foreign code may have run since then, which may have changed any argument.
    pub(crate) ran_code: bool,
}

/// Describes an object, with its metadata. `device` selects one of several buffers; the caller checks on which device the
/// memory is. With `writes`, rejects PyTorch tensors that require grad.
#[inline]
pub(crate) fn describe_argument<'py>(
    object: &Bound<'py, PyAny>,
    device: Device,
    writes: bool,
    description: &mut PyDescriptor,
) -> PyResult<ArgumentInfo> {
    // The field's name stands before the message.
    let without_name = |error| ErrorKind::of_argument(object.py(), "", error);
    if let Some(ran_code) = import::describe_exact_array(object, description.descriptor_mut())? {
        description.set(object.clone(), "numpy");
        return Ok(ArgumentInfo { hooks: None, ran_code_before: false, ran_code });
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
    // The import of a stencil's argument accepts tensors that require grad, as those that are only read may. For others the check
    // comes before the description, as it may run foreign code; what is inside a wrapper is only known, and checked, after it.
    let ran_code_before = writes && import::is_torch(object)?;
    if ran_code_before {
        import::refuse_grad_of_torch(object).map_err(without_name)?;
    }
    let mut imported = Imported::new(description.descriptor_mut());
    import::describe(object, request, &mut imported).map_err(without_name)?;
    if writes && imported.readonly_unknown {
        let fix = "its legacy DLPack capsule cannot say that it may be written; if it may, pass \
                   dl.describe(obj, writable=True)";
        return Err(ExchangeError::ReadOnly { field: "access", fix }.into());
    }
    if let Ok(given) = object.cast_exact::<PyDescriptor>() {
        // The memory used is that of the described object, so its hooks are called.
        let described_object = given.get().object(object.py());
        if import::may_have_hooks(&described_object)? {
            imported.interface = Some(Interface::of(&described_object, device)?);
        }
    }
    let hooks = if imported.ran_no_code { None } else { imported.hooks(imported.descriptor.device())? };
    let Imported { owner, owner_needs_object, protocol, ran_no_code, .. } = imported;
    description.set_owned(import::object_to_keep(object), owner, owner_needs_object, protocol);
    let mut ran_code = !ran_no_code;
    // Arrays of NumPy cannot require grad.
    let is_checked = protocol == "numpy" || ran_code_before && ran_no_code;
    if writes && !is_checked {
        let kept = description.object(object.py());
        if import::is_torch(&kept)? {
            import::refuse_grad_of_torch(&kept).map_err(without_name)?;
            ran_code = true;
        }
    }
    Ok(ArgumentInfo { hooks, ran_code_before, ran_code })
}
