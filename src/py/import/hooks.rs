//! The hooks of the data interface: `acquire` is called before memory is used, `release` after.
//!
//! Source: GDP 3. Stencils call both, and `touch`, around each call; see `signature`.

use std::sync::Arc;

use pyo3::prelude::*;

use super::type_info::TypeInfo;
use super::{Access, Hooks, ImportCache, Interface, Ownership, Protocol, Reading, Request, borrow};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::py::py_owner::ReleaseHook;
use crate::tensor::Owner;

/// Calls `acquire` of an imported object, and makes its owner call `release`. Neither is called for memory from `__dlpack__`,
/// which is ready for use, or for a wrapper: the array inside has the hooks.
#[inline(always)]
pub(super) fn run_acquire<'py>(
    object: &Bound<'py, PyAny>,
    row: &Protocol,
    request: &Request<'_, 'py>,
    descriptor: &Descriptor,
    reading: Reading,
) -> PyResult<Reading> {
    if row.labelled
        || request.has_no_metadata.get()
        || !request.access.is_now()
        || !TypeInfo::of(object)?.may_have_hooks(object)
    {
        return Ok(reading);
    }
    if row.name == "dlpack" || request.cache.inner.get().is_some() {
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
    let Some(hooks) = Hooks::of(&request.cache, descriptor.device())? else { return Ok(reading) };
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
        Reading::Borrowed => Reading::Owned(Owner::foreign((release, borrow::pinned(object, descriptor)?))),
    })
}

impl Access {
    /// Whether elements are read or written right after the import.
    pub(super) fn is_now(self) -> bool {
        matches!(self, Access::Read | Access::Write)
    }

    /// Whether elements are written, or the memory is kept: more than reading it for the length of a call.
    pub(super) fn takes(self, ownership: Ownership) -> bool {
        self == Access::Write || (self == Access::Read && ownership == Ownership::Share)
    }
}

impl ImportCache<'_> {
    /// Calls `release` of an object whose memory was copied, so that its error reaches the caller. Memory that a device may
    /// still be reading is released by its owner.
    pub(super) fn release(&self, py: Python<'_>, device: Device) -> PyResult<()> {
        let inside = self.inner.get().map_or(Ok(()), |inner| inner.cache.release(py, device));
        let release = self.release.get().filter(|_| device.is_host_readable());
        release.map_or(Ok(()), |release| release.now(py)).and(inside)
    }
}
