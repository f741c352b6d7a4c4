//! What an import finds beside the descriptor.

use std::sync::Arc;

use pyo3::prelude::*;

use super::data_interface::{Hooks, Interface};
use crate::device::Device;
use crate::py::py_owner::ReleaseHook;
use crate::tensor::Owner;

/// What an import finds beside the descriptor; filled in place, as the descriptor is.
#[derive(Default)]
pub(in crate::py) struct Imported<'py> {
    /// The protocol; of a wrapper that of the array inside.
    pub(super) protocol: &'static str,
    /// The owner of the memory. `None` if the object has the memory itself, and may move it; only for [`Ownership::Borrow`].
    ///
    /// [`Ownership::Borrow`]: super::request::Ownership::Borrow
    pub(super) owner: Option<Owner>,
    /// Whether the memory is taken for read-only because its struct has no flag for that.
    pub(super) readonly_unknown: bool,
    /// The stream of the producer, on which work on the memory may still run, if the producer names it.
    pub(super) producer_stream: Option<i64>,
    /// Whether the descriptor has all metadata of the object, which has no hooks either.
    pub(super) has_all_metadata: bool,
    /// The object's data interface, if it was asked for.
    pub(super) interface: Option<Interface<'py>>,
    /// The array inside the object, if the object is a wrapper.
    pub(super) inner: Option<Box<Inner<'py>>>,
    /// The `release` hook, to be called when the memory is released.
    pub(super) release: Option<Arc<ReleaseHook>>,
}

/// An array inside a wrapper, with what was found about it.
pub(in crate::py) struct Inner<'py> {
    pub(super) array: Bound<'py, PyAny>,
    pub(super) interface: Option<Interface<'py>>,
    /// The array inside this one.
    pub(super) inner: Option<Box<Inner<'py>>>,
}

impl Imported<'_> {
    /// Notes the owner of the memory. Returns that the protocol is there.
    pub(super) fn owned(&mut self, owner: Owner) -> bool {
        self.owner = Some(owner);
        true
    }

    /// Notes that the object has the memory itself. Returns that the protocol is there.
    pub(super) fn borrowed(&mut self) -> bool {
        self.owner = None;
        true
    }

    /// The hooks of the object, or else of the array inside it, for memory on `device`.
    pub(super) fn hooks(&self, device: Device) -> PyResult<Option<Hooks>> {
        let (mut interface, mut inner) = (&self.interface, &self.inner);
        loop {
            let found = interface.as_ref().map_or(Ok(None), |interface| Hooks::of_interface(interface, device))?;
            match (found, inner) {
                (None, Some(next)) => (interface, inner) = (&next.interface, &next.inner),
                (found, _) => return Ok(found),
            }
        }
    }

    /// Calls `release` of an object whose memory was copied, so that its error reaches the caller. Memory that a device may
    /// still be reading is released by its owner.
    pub(super) fn release(&self, py: Python<'_>, device: Device) -> PyResult<()> {
        let release = self.release.as_ref().filter(|_| device.is_host_readable());
        release.map_or(Ok(()), |release| release.now(py))
    }
}
