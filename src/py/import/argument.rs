//! Describes the arguments of a stencil call in place, with their metadata and hooks.

use pyo3::prelude::*;

use super::data_interface::{Hooks, Interface};
use super::functions::describe_plain;
use super::imported::Imported;
use super::owners;
use super::request::{Access, Request};
use super::table::{import_or_error, metadata};
use super::torch;
use super::type_info::TypeInfo;
use super::type_info::is_torch;
use crate::device::Device;
use crate::py::descriptor::PyDescriptor;

/// What is known of a described argument.
pub(in crate::py) struct Described {
    /// The hooks to call around the use of its memory.
    pub(in crate::py) hooks: Option<Hooks>,
    /// Whether foreign code may have run, which may have changed any argument.
    pub(in crate::py) ran_code: bool,
}

/// Describes an object in place, with the metadata that it states. `device` selects one of several buffers; the memory that
/// is found may still be on another device.
#[inline]
pub(in crate::py) fn argument<'py>(
    object: &Bound<'py, PyAny>,
    device: Device,
    writes: bool,
    description: &mut PyDescriptor,
) -> PyResult<Described> {
    if let Some(ran_code) = describe_plain(object, writes, description)? {
        return Ok(Described { hooks: None, ran_code });
    }
    // The host buffer is the default anyway, and producers may copy if a device is requested.
    let device = Some(device).filter(|device| *device != Device::CPU);
    let request = Request { device, access: Access::Stencil, ..Request::default() };
    let mut imported = Imported::default();
    import_or_error(object, &request, &mut imported, description.descriptor_mut())?;
    description.set(owners::kept(object), imported.owner.take(), imported.protocol);
    if imported.may_lack_metadata(object)? {
        metadata(object, device, &mut imported, None, None)?.describe(description.descriptor_mut())?;
    } else if let Ok(described) = object.cast_exact::<PyDescriptor>() {
        // The memory used is that of the described object, so its hooks are called.
        let behind = described.get().object(object.py());
        if TypeInfo::of(&behind)?.may_be_labelled(&behind) {
            imported.interface = Some(Interface::of(&behind, device)?);
        }
    }
    let behind = description.object(object.py());
    if writes && is_torch(&behind)? {
        torch::refuse_grad(&behind)?;
    }
    let hooks = imported.hooks(description.descriptor().device())?;
    Ok(Described { hooks, ran_code: true })
}
