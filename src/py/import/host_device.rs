//! Host/device pairs: `dlfield.storage.SoftwareManagedGPUStorage` has a host buffer and a device buffer, one of which is
//! brought up to date and imported.

use pyo3::intern;
use pyo3::prelude::*;

use super::type_info::TypeInfo;
use super::unwrap::Wrapper;
use super::{Access, Inner, Ownership, Reading, Request, dlfield, gt_data_interface};
use crate::descriptor::Descriptor;
use crate::device::Device;

pub(super) fn import<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    if !is_pair(object)? {
        return Ok(None);
    }
    // Its data interface has the hooks, if it has one for these elements.
    if request.access == Access::Stencil
        && let Some(reading) = gt_data_interface::import(object, request, ownership, descriptor)?
    {
        return Ok(Some(reading));
    }
    let buffer = buffer(object, request.device.or(request.near), request.access)?;
    let Request { device, copy, stream, .. } = *request;
    let within = Request { device, copy, stream, inside: true, ..Request::default() };
    let (reading, row) = super::import_object(&buffer, &within, ownership, descriptor)?;
    let owner = match reading {
        Reading::Owned(owner) if ownership == Ownership::Borrow => dlfield::with(owner, &buffer),
        reading => reading.into_owner(&buffer, descriptor)?,
    };
    let inner = Inner { array: buffer, protocol: row.name, cache: Box::new(within.cache) };
    let _ = request.cache.inner.set(inner);
    Ok(Some(Reading::Owned(owner)))
}

/// The buffer that can be used from a device, brought up to date for the access.
fn buffer<'py>(pair: &Bound<'py, PyAny>, device: Option<Device>, access: Access) -> PyResult<Bound<'py, PyAny>> {
    let access = match access {
        Access::Look => "",
        Access::Read => "r",
        // A stencil does not say whether it writes.
        Access::Stencil | Access::Write => "rw",
    };
    pair.call_method1(intern!(pair.py(), "_side"), (device.map(|device| device.to_string()), access))
}

/// Tells a host/device pair that was described before that its buffer on `device` is used again.
pub(super) fn used_again(object: &Bound<'_, PyAny>, device: Device, access: Access) -> PyResult<()> {
    if access.is_now() && is_pair(object)? {
        buffer(object, Some(device), access)?;
    }
    Ok(())
}

/// Whether the object is a host/device pair.
pub(in crate::py) fn is_pair(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(TypeInfo::of(object)?.wrapper == Some(Wrapper::Pair))
}
