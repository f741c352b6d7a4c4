//! Arguments of a stencil: described like anything else, and asked who has to be told that they are used.

use pyo3::prelude::*;

use super::facts::Facts;
use super::functions::describe_plain;
use super::{Access, Hooks, Interface, Purpose, Request, Seen, labels, may_state_labels, ours, read};
use crate::device::Device;
use crate::py::descriptor::PyDescriptor;

/// Describes an object in place, with the labels that it states. Which of several buffers is meant, `device` says; the
/// memory may be elsewhere all the same.
#[inline]
pub(in crate::py) fn argument<'py>(
    object: &Bound<'py, PyAny>,
    device: Device,
    description: &mut PyDescriptor,
) -> PyResult<Option<Hooks>> {
    if describe_plain(object, description)? {
        return Ok(None);
    }
    // The host's buffer comes first anyway, and producers asked for a device may copy.
    let device = Some(device).filter(|device| *device != Device::CPU);
    let seen = Seen { device, ..Seen::default() };
    let request = Request { device, access: Access::Stencil, seen, ..Request::default() };
    let (reading, reader) = read(object, &request, Purpose::Describe, description.descriptor_mut())?;
    let protocol = request.seen.inner.get().map_or(reader.protocol, |inner| inner.protocol);
    description.set(ours::kept(object), reading.into_shared(), protocol);
    if may_state_labels(object, reader, &request)? {
        labels(object, reader, &request, None, None)?.describe(description.descriptor_mut())?;
    } else if let Ok(described) = object.cast_exact::<PyDescriptor>() {
        // What was described is used, and wants to be told.
        let behind = described.get().object(object.py());
        if Facts::of(&behind)?.may_be_labelled(&behind) {
            let interface = Interface::of(&behind, device)?;
            let _ = request.seen.interface.set(interface);
        }
    }
    Hooks::of(&request.seen, description.descriptor().device())
}
