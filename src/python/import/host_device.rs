//! Gets the buffer to import from a host/device pair (`dlfield.storage.SoftwareManagedGPUStorage`), brought up to date.

use pyo3::intern;
use pyo3::prelude::*;

use crate::device::Device;
use crate::python::import::request::RequestAccess;
use crate::python::import::type_info::TypeInfo;
use crate::python::import::wrapper::Wrapper;

/// Returns the buffer that `device` can use, brought up to date for the access.
pub(super) fn buffer<'py>(
    pair: &Bound<'py, PyAny>,
    device: Option<Device>,
    access: RequestAccess,
) -> PyResult<Bound<'py, PyAny>> {
    let access = match access {
        RequestAccess::Inspect => "",
        RequestAccess::Read => "r",
        // Whether the stencil writes is not known here.
        RequestAccess::Stencil | RequestAccess::Write => "rw",
    };
    pair.call_method1(intern!(pair.py(), "_buffer"), (device.map(|device| device.to_string()), access))
}

/// Brings the buffer on `device` up to date again, if a host/device pair was described and the description is used.
pub(super) fn refresh_described(object: &Bound<'_, PyAny>, device: Device, access: RequestAccess) -> PyResult<()> {
    if access.accesses_elements() && is_pair(object)? {
        buffer(object, Some(device), access)?;
    }
    Ok(())
}

/// Whether the object is a host/device pair.
pub fn is_pair(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(TypeInfo::of(object)?.wrapper == Some(Wrapper::Pair))
}
