//! The hooks of the data interface: `acquire` is called before memory is used, `release` after.
//!
//! Source: GDP 3. Stencils call both, and `touch`, around each call; see `signature`.

use std::sync::Arc;

use pyo3::prelude::*;

use super::data_interface::{Hooks, Interface};
use super::pinned;
use super::request::{ImportCache, Reading, Request};
use super::type_info::TypeInfo;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::py::py_owner::ReleaseHook;
use crate::tensor::Owner;

/// Calls `acquire` of an imported object, and makes its owner call `release`. Neither is called for memory from `__dlpack__`,
/// which is ready for use, or for a wrapper: the array inside has the hooks.
#[inline(always)]
pub(super) fn run_acquire<'py>(
    object: &Bound<'py, PyAny>,
    protocol: &str,
    labelled: bool,
    request: &Request<'_, 'py>,
    descriptor: &Descriptor,
    reading: Reading,
) -> PyResult<Reading> {
    if labelled
        || request.has_no_metadata.get()
        || !request.access.is_now()
        || !TypeInfo::of(object)?.may_have_hooks(object)
    {
        return Ok(reading);
    }
    if protocol == "dlpack" || request.cache.inner.get().is_some() {
        return Ok(reading);
    }
    run_acquire_cold(object, request, descriptor, reading)
}

/// As [`run_acquire`], of an object that may have hooks.
#[cold]
fn run_acquire_cold<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    descriptor: &Descriptor,
    reading: Reading,
) -> PyResult<Reading> {
    if request.cache.interface.get().is_none() {
        let interface = Interface::of(object, request.device.or(request.near))?;
        let _ = request.cache.interface.set(interface);
    }
    let Some(hooks) = request.cache.hooks(descriptor.device())? else { return Ok(reading) };
    if let Some(acquire) = hooks.acquire {
        acquire.call0(object.py())?;
    }
    let Some(release) = hooks.release else { return Ok(reading) };
    let release = Arc::new(ReleaseHook::new(release));
    let _ = request.cache.release.set(Arc::clone(&release));
    // `release` is called before the memory is released.
    Ok(match reading {
        Reading::Owned(owner) => Reading::Owned(Owner::foreign((release, owner))),
        Reading::ReadonlyUnknown(owner) => Reading::ReadonlyUnknown(Owner::foreign((release, owner))),
        Reading::Borrowed => Reading::Owned(Owner::foreign((release, pinned::pinned(object, descriptor)?))),
    })
}

impl ImportCache<'_> {
    /// The hooks of the object, or else of the array inside it, for memory on `device`.
    pub(super) fn hooks(&self, device: Device) -> PyResult<Option<Hooks>> {
        let own = self.interface.get().map_or(Ok(None), |interface| Hooks::of_interface(interface, device))?;
        match (own, self.inner.get()) {
            (None, Some(inner)) => inner.cache.hooks(device),
            (own, _) => Ok(own),
        }
    }

    /// Calls `release` of an object whose memory was copied, so that its error reaches the caller. Memory that a device may
    /// still be reading is released by its owner.
    pub(super) fn release(&self, py: Python<'_>, device: Device) -> PyResult<()> {
        let inside = self.inner.get().map_or(Ok(()), |inner| inner.cache.release(py, device));
        let release = self.release.get().filter(|_| device.is_host_readable());
        release.map_or(Ok(()), |release| release.now(py)).and(inside)
    }
}
