//! `dlfield.storage.SoftwareManagedGPUStorage`: two tensors of ours, one of which is brought up to date and lent.
//!
//! The module is not imported for this: nobody has such an object before it is.

use pyo3::intern;
use pyo3::prelude::*;

use super::facts::Facts;
use super::unwrap::Wrapper;
use super::{Access, Inner, Purpose, Reading, Request, gt, ours};
use crate::descriptor::Descriptor;

pub(super) fn read<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    purpose: Purpose,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    if !is_pair(object)? {
        return Ok(None);
    }
    let py = object.py();
    let access = match request.access {
        // Its data interface says whom to tell.
        Access::Stencil => return gt::read(object, request, purpose, descriptor),
        Access::Look => "",
        Access::Read => "r",
        Access::Write => "rw",
    };
    let wanted = request.device.or(request.near).map(|device| device.to_string());
    let side = object.call_method1(intern!(py, "_side"), (wanted, access))?;
    let Request { device, copy, stream, .. } = *request;
    let within = Request { device, copy, stream, inside: true, ..Request::default() };
    let (reading, reader) = super::read(&side, &within, purpose, descriptor)?;
    let owner = match reading {
        Reading::Owned(owner) if purpose == Purpose::Describe => ours::with(owner, &side),
        reading => reading.into_owner(&side),
    };
    let inner = Inner { array: side, protocol: reader.protocol, seen: Box::new(within.seen) };
    let _ = request.seen.inner.set(inner);
    Ok(Some(Reading::Owned(owner)))
}

/// Whether the object is a storage with two sides.
pub(in crate::py) fn is_pair(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(Facts::of(object)?.wrapper == Some(Wrapper::Pair))
}
