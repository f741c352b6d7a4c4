//! Objects that want to be told that their memory is used, by the data interface: `acquire` before that, `release` after.
//!
//! Source: GDP 3. Stencils call both, and `touch`, around each call; see `signature`.

use std::sync::Arc;

use pyo3::prelude::*;

use super::facts::Facts;
use super::{Access, Hooks, Interface, Purpose, Reader, Reading, Request, Seen, lent};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::py::keep::Call;
use crate::tensor::Owner;

/// Calls `acquire` of an object whose memory on `device` was found, and has `release` called when that is let go. What
/// `__dlpack__` has handed over is ready to be used, and a wrapper passes on what the array inside it wants.
#[inline(always)]
pub(super) fn acquired<'py>(
    object: &Bound<'py, PyAny>,
    reader: &Reader,
    request: &Request<'_, 'py>,
    descriptor: &Descriptor,
    reading: Reading,
) -> PyResult<Reading> {
    if reader.labelled || request.plain.get() || !request.access.is_now() || !Facts::of(object)?.may_be_told(object) {
        return Ok(reading);
    }
    if reader.protocol == "dlpack" || request.seen.inner.get().is_some() {
        return Ok(reading);
    }
    told(object, request, descriptor, reading)
}

/// As [`acquired`], of an object that may want to be told.
#[cold]
fn told<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    descriptor: &Descriptor,
    reading: Reading,
) -> PyResult<Reading> {
    if request.seen.interface.get().is_none() {
        let interface = Interface::of(object, request.device.or(request.near))?;
        let _ = request.seen.interface.set(interface);
    }
    let Some(hooks) = Hooks::of(&request.seen, descriptor.device())? else { return Ok(reading) };
    if let Some(acquire) = hooks.acquire {
        acquire.call0(object.py())?;
    }
    let Some(release) = hooks.release else { return Ok(reading) };
    let release = Arc::new(Call::new(release));
    let _ = request.seen.release.set(Arc::clone(&release));
    // Told first, and then let go.
    Ok(match reading {
        Reading::Owned(owner) => Reading::Owned(Owner::foreign((release, owner))),
        Reading::Unsure(owner) => Reading::Unsure(Owner::foreign((release, owner))),
        Reading::Borrowed => Reading::Owned(Owner::foreign((release, lent::pinned(object, descriptor)?))),
    })
}

impl Access {
    /// Whether the elements are used from now on.
    pub(super) fn is_now(self) -> bool {
        matches!(self, Access::Read | Access::Write)
    }

    /// Whether the elements are written, or kept to be read or written: more than a description to read by.
    pub(super) fn takes(self, purpose: Purpose) -> bool {
        self == Access::Write || (self == Access::Read && purpose == Purpose::Own)
    }
}

impl Seen<'_> {
    /// Calls `release` of an object whose memory was copied, so that its error is the caller's. What a device may still be
    /// reading is let go when it has been read.
    pub(super) fn release(&self, py: Python<'_>, device: Device) -> PyResult<()> {
        let inside = self.inner.get().map_or(Ok(()), |inner| inner.seen.release(py, device));
        let release = self.release.get().filter(|_| device.is_host_readable());
        release.map_or(Ok(()), |release| release.now(py)).and(inside)
    }
}
