//! The struct that an import fills in: descriptor, protocol, owner, producer's stream, data interface, hooks.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::layout::Promise;
use crate::python::import::data_interface::{Hooks, Interface};
use crate::python::import::type_info::TypeInfo;
use crate::python::py_owner::ReleaseHook;
use crate::tensor::Owner;

/// The result of an import. Importers fill it in in place, as moving it would take time; the descriptor is in the caller's
/// object already.
pub struct Imported<'d, 'py> {
    pub descriptor: &'d mut Descriptor,
    /// The name of the protocol; for a wrapper, that of the array inside.
    pub protocol: &'static str,
    /// The owner of the memory. `None` if the memory belongs to the object, which may move it; only for `Ownership::Borrow`.
    pub owner: Option<Owner>,
    /// Whether the memory lives only as long as the object, too: a dictionary or a struct of addresses says nothing of who keeps it.
    /// Only for `Ownership::Borrow`: a description keeps the object next to the owner, so that the garbage collector sees it.
    pub owner_needs_object: bool,
    /// Whether the memory counts as read-only because its struct has no read-only flag.
    pub readonly_unknown: bool,
    /// The producer's stream, on which work on the memory may still run, if the producer names it.
    pub(super) producer_stream: Option<i64>,
    /// What the allocation of a `dlfield.Tensor` of the module promises, in an extension.
    pub(super) promise: Option<Box<Promise>>,
    /// Whether the object is a `dlfield.Tensor`, which has no hooks, and whose memory stays where it is.
    pub(super) is_tensor: bool,
    /// Whether the descriptor has all metadata of the object, and the object has no hooks.
    pub(super) has_all_metadata: bool,
    /// The object's data interface, if it was looked up.
    pub interface: Option<Interface<'py>>,
    /// The array inside the object, if the object is a wrapper.
    pub(super) inner: Option<Box<Inner<'py>>>,
    pub(super) release: Release,
}

/// The `release` hook of an imported object, to be called when the memory is released; the owner calls it at the latest.
#[derive(Default)]
pub struct Release(pub(super) Option<Arc<ReleaseHook>>);

impl Release {
    /// Calls the hook after the memory was copied, so that its error reaches the caller. For memory that a device may still be
    /// reading, the owner calls the hook.
    pub fn after_copy(&self, py: Python<'_>, device: Device) -> PyResult<()> {
        let hook = self.0.as_ref().filter(|_| device.is_host_readable());
        hook.map_or(Ok(()), |hook| hook.now(py))
    }
}

/// An array inside a wrapper, with the data interface that was looked up for it.
pub struct Inner<'py> {
    pub(super) array: Bound<'py, PyAny>,
    pub(super) interface: Option<Interface<'py>>,
    /// The array inside this one, if this one is a wrapper, too.
    pub(super) inner: Option<Box<Inner<'py>>>,
}

impl<'d, 'py> Imported<'d, 'py> {
    /// A result to fill in, with a descriptor to fill in.
    #[inline]
    pub fn new(descriptor: &'d mut Descriptor) -> Self {
        Imported {
            descriptor,
            protocol: "",
            owner: None,
            owner_needs_object: false,
            readonly_unknown: false,
            producer_stream: None,
            promise: None,
            is_tensor: false,
            has_all_metadata: false,
            interface: None,
            inner: None,
            release: Release(None),
        }
    }

    /// Sets the owner of the memory. Returns `true`, as importers do if the object has their protocol.
    pub(super) fn owned(&mut self, owner: Owner) -> bool {
        self.owner = Some(owner);
        true
    }

    /// Sets no owner: the memory belongs to the object. Returns `true`, as importers do if the object has their protocol.
    pub(super) fn borrowed(&mut self) -> bool {
        self.owner = None;
        true
    }

    /// Whether the object may have metadata that the descriptor does not have.
    #[inline]
    pub fn may_lack_metadata(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.has_all_metadata && self.inner.is_none() {
            return Ok(false);
        }
        Ok(self.inner.is_some() || TypeInfo::of(object)?.may_be_labelled(object))
    }

    /// Returns the array that has the memory: the object, or what it wraps.
    pub(super) fn innermost<'a>(&'a self, object: &'a Bound<'py, PyAny>) -> &'a Bound<'py, PyAny> {
        let mut found = object;
        let mut inner = &self.inner;
        while let Some(next) = inner {
            (found, inner) = (&next.array, &next.inner);
        }
        found
    }

    /// Returns the hooks of the object, or else those of the array inside it, for memory on `device`.
    pub fn hooks(&self, device: Device) -> PyResult<Option<Hooks>> {
        let (mut interface, mut inner) = (&self.interface, &self.inner);
        loop {
            let found = interface.as_ref().map_or(Ok(None), |interface| Hooks::of_interface(interface, device))?;
            match (found, inner) {
                (None, Some(next)) => (interface, inner) = (&next.interface, &next.inner),
                (found, _) => return Ok(found),
            }
        }
    }
}
