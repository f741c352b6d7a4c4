//! `dlfield.storage.SoftwareManagedGPUStorage`: two tensors of ours, one of which is brought up to date and lent.
//!
//! The module is not imported for this: nobody has such an object before it is.

use pyo3::intern;
use pyo3::prelude::*;

use super::facts::Facts;
use super::unwrap::Wrapper;
use super::{Access, Inner, Purpose, Reading, Request, gt, ours};
use crate::descriptor::Descriptor;
use crate::device::Device;

pub(super) fn read<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    purpose: Purpose,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    if !is_pair(object)? {
        return Ok(None);
    }
    // Its data interface says whom to tell, if there is one for its elements.
    if request.access == Access::Stencil
        && let Some(reading) = gt::read(object, request, purpose, descriptor)?
    {
        return Ok(Some(reading));
    }
    let side = side(object, request.device.or(request.near), request.access)?;
    let Request { device, copy, stream, .. } = *request;
    let within = Request { device, copy, stream, inside: true, ..Request::default() };
    let (reading, reader) = super::read(&side, &within, purpose, descriptor)?;
    let owner = match reading {
        Reading::Owned(owner) if purpose == Purpose::Describe => ours::with(owner, &side),
        reading => reading.into_owner(&side, descriptor)?,
    };
    let inner = Inner { array: side, protocol: reader.protocol, seen: Box::new(within.seen) };
    let _ = request.seen.inner.set(inner);
    Ok(Some(Reading::Owned(owner)))
}

/// The side that can be used from a device, as the access asks for it.
fn side<'py>(pair: &Bound<'py, PyAny>, device: Option<Device>, access: Access) -> PyResult<Bound<'py, PyAny>> {
    let access = match access {
        Access::Look => "",
        Access::Read => "r",
        // What a stencil does to memory that it is lent, nobody tells.
        Access::Stencil | Access::Write => "rw",
    };
    pair.call_method1(intern!(pair.py(), "_side"), (device.map(|device| device.to_string()), access))
}

/// Has an object that was described before, and is a storage with two sides, know that its side on `device` is used again.
pub(super) fn used_again(object: &Bound<'_, PyAny>, device: Device, access: Access) -> PyResult<()> {
    if access.is_now() && is_pair(object)? {
        side(object, Some(device), access)?;
    }
    Ok(())
}

/// Whether the object is a storage with two sides.
pub(in crate::py) fn is_pair(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(Facts::of(object)?.wrapper == Some(Wrapper::Pair))
}
