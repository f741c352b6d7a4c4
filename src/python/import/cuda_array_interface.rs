//! Imports `__cuda_array_interface__` and its ROCm twin `__hip_array_interface__`: device memory that a dictionary describes.
//!
//! Source: Numba's page on the CUDA array interface, versions 2 and 3. Nothing here needs a GPU: the memory is described, not
//! accessed.

use pyo3::prelude::*;

use crate::cuda;
use crate::device::Device;
use crate::error::ExchangeError;
use crate::protocol::array_interface::{CUDA, Data, HIP, Interface};
use crate::python::convert::{args, stream};
use crate::python::import::dictionary::Entries;
use crate::python::import::held_buffer::is_exporter;
use crate::python::import::imported::Imported;
use crate::python::import::names::Name;
use crate::python::import::request::{Ownership, Request};
use crate::python::import::{dictionary, stream_sync, type_info};
use crate::python::py_owner::PyOwner;
use crate::tensor::Owner;

/// One of the two interfaces.
struct Side {
    name: Name,
    interface: &'static Interface,
    /// The kinds of device whose memory it may describe. The interface does not name the device.
    kinds: &'static [&'static str],
    /// The device if neither the caller nor the driver names one.
    default: Device,
}

static SIDES: [Side; 2] = [
    Side {
        name: Name::CudaArrayInterface,
        interface: &CUDA,
        kinds: &["cuda", "cuda_managed"],
        default: Device::cuda(0),
    },
    Side { name: Name::HipArrayInterface, interface: &HIP, kinds: &["rocm"], default: Device::rocm(0) },
];

pub(super) fn import_cuda(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    SIDES[0].import(object, request, imported)
}

pub(super) fn import_hip(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    SIDES[1].import(object, request, imported)
}

impl Side {
    fn import(
        &self,
        object: &Bound<'_, PyAny>,
        request: &Request<'_, '_>,
        imported: &mut Imported<'_, '_>,
    ) -> PyResult<bool> {
        let wanted = request.device.filter(|device| self.kinds.contains(&device.kind()));
        if let Some(other) = request.device.filter(|_| wanted.is_none())
            && is_elsewhere_too(object, other)?
        {
            return Ok(false);
        }
        let Some(value) = type_info::attribute(object, self.name)? else { return Ok(false) };
        let dict = dictionary::of(self.interface.name, &value)?;
        let entries = Entries::of(&dict)?;
        let found = dictionary::on_device(object, &entries, self.interface)?;
        let device = match (wanted, found.data) {
            (Some(wanted), _) => Some(wanted),
            // The interface does not name the device, but the driver knows it.
            (None, Data::At { address, .. }) if self.default.is_cuda() => stream_sync::device_at(address)?,
            _ => None,
        };
        found.read_into(imported.descriptor, self.interface, device.unwrap_or(self.default))?;
        check_order(self.interface, request.stream, found.stream)?;
        imported.producer_stream = found.stream;
        imported.owner_needs_object = request.ownership == Ownership::Borrow;
        let object = (request.ownership == Ownership::Share).then(|| PyOwner::new(object));
        Ok(imported.owned(Owner::foreign((object, PyOwner::new(dict.as_any())))))
    }
}

/// Whether an object with memory on a GPU also has a protocol for memory on `device`.
fn is_elsewhere_too(object: &Bound<'_, PyAny>, device: Device) -> PyResult<bool> {
    if device == Device::CPU {
        return Ok(is_exporter(object) || type_info::attribute(object, Name::ArrayInterface)?.is_some());
    }
    Ok(device.kind() == "rocm" && type_info::attribute(object, Name::HipArrayInterface)?.is_some())
}

/// Rejects a number that is not a stream of the interface, and a consumer stream that differs from the producer's (`found`)
/// if no driver can synchronize them.
pub(super) fn check_order(
    interface: &Interface,
    wanted: Option<&Bound<'_, PyAny>>,
    found: Option<i64>,
) -> PyResult<()> {
    let Some(wanted) = wanted.filter(|stream| !stream.is_none()) else { return Ok(()) };
    let refuse = |allowed| ExchangeError::new("stream", &allowed, &args::shown(wanted));
    let number = stream::number(wanted)?.ok_or_else(|| refuse("None, -1 or the number of a stream"))?;
    if number == -1 {
        // The caller synchronizes the streams.
        return Ok(());
    }
    if let Some(allowed) = interface.refuses_stream(number) {
        return Err(refuse(allowed).into());
    }
    let orders = interface.refuses_stream(0).is_some() && cuda::is_available();
    Ok(if orders { Ok(()) } else { stream_sync::check_same(wanted, number, found) }?)
}
