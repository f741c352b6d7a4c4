//! Imports memory that a dictionary or a C struct describes: NumPy's `__array_interface__` and `__array_struct__` on the host,
//! `__cuda_array_interface__` and its ROCm twin `__hip_array_interface__` on a device. Nothing here accesses the memory.
//!
//! Source: NumPy's page on the array interface, version 3; Numba's page on the CUDA array interface, versions 2 and 3.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict};

use crate::cuda;
use crate::device::Device;
use crate::error::ExchangeError;
use crate::memory::cuda::device_of_pointer;
use crate::protocol::array_interface::{CUDA, Data, Descr, HIP, HOST, Interface};
use crate::protocol::array_struct::STRUCT;
use crate::python::convert::{args, stream};
use crate::python::ffi::numpy_api::{self, references};
use crate::python::import::dictionary::{self, Entries, Key};
use crate::python::import::held_buffer::is_exporter;
use crate::python::import::numpy::numpy_scalar;
use crate::python::import::request::{Imported, Request};
use crate::python::import::type_info::{Name, attribute};

pub fn import(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    // The interface of a NumPy scalar, which its type has, points to a temporary.
    if numpy_scalar(object)?.is_some() {
        return Ok(false);
    }
    let Some(value) = attribute(object, Name::ArrayInterface)? else { return Ok(false) };
    let dict = dictionary::of(HOST.name, &value)?;
    drop(value);
    check_copied(&dict, request)?;
    let held = dictionary::on_host(object, &Entries::of(&dict)?, &HOST, out.descriptor)?;
    Ok(out.owned_by(held, &dict, object, request))
}

/// Rejects a copy if the object's own memory is requested: bytes that only a fresh dictionary refers to were made for this
/// call, as Pillow does.
fn check_copied(dict: &Bound<'_, PyDict>, request: &Request<'_>) -> PyResult<()> {
    if references(dict) > 1 || !request.rejects_copy() {
        return Ok(());
    }
    let Some(data) = dictionary::entry(dict, Key::Data)? else { return Ok(()) };
    let owns = data.is_exact_instance_of::<PyBytes>() || data.is_exact_instance_of::<PyByteArray>();
    // One reference is the dictionary's, the other is `data`.
    if owns && references(&data) <= 2 {
        return Err(request.refused_copy("the producer has copied its elements into \"data\" for this call").into());
    }
    Ok(())
}

pub fn import_struct(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    // The struct of a NumPy scalar points to a temporary.
    if numpy_scalar(object)?.is_some() {
        return Ok(false);
    }
    let Some(capsule) = attribute(object, Name::ArrayStruct)? else { return Ok(false) };
    let Some((found, descr)) = numpy_api::array_struct(&capsule)? else {
        let (got, allowed) = (args::shown(&capsule), "a capsule without a name, with a PyArrayInterface");
        return Err(ExchangeError::new(STRUCT.name, &allowed, &got).into());
    };
    let typestr = found.typestr();
    let descr = descr.map_or(Ok(Descr::Absent), |descr| dictionary::descr(&descr, &typestr))?;
    let dtype = dictionary::own_dtype(object, &typestr)?;
    found.into_interface(&typestr, dtype, descr)?.read_into(out.descriptor, &STRUCT, Device::CPU)?;
    Ok(out.owned_by(None, &capsule, object, request))
}

pub fn import_cuda(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    let kinds = &["cuda", "cuda_managed"];
    import_device(object, Name::CudaArrayInterface, &CUDA, kinds, Device::cuda(0), request, out)
}

pub fn import_hip(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    import_device(object, Name::HipArrayInterface, &HIP, &["rocm"], Device::rocm(0), request, out)
}

/// Imports memory on a device of one of the `kinds`. The interface does not name the device: the caller does, else the driver, else it
/// is the `default`.
fn import_device(
    object: &Bound<'_, PyAny>,
    name: Name,
    interface: &Interface,
    kinds: &[&str],
    default: Device,
    request: &Request<'_>,
    out: &mut Imported<'_>,
) -> PyResult<bool> {
    let wanted = request.device.filter(|device| kinds.contains(&device.kind()));
    if let Some(other) = request.device.filter(|_| wanted.is_none())
        && is_elsewhere_too(object, other)?
    {
        return Ok(false);
    }
    let Some(value) = attribute(object, name)? else { return Ok(false) };
    let dict = dictionary::of(interface.name, &value)?;
    let entries = Entries::of(&dict)?;
    let found = dictionary::on_device(object, &entries, interface)?;
    let device = match (wanted, found.data) {
        (None, Data::At { address, .. }) if default.is_cuda() && address != 0 && cuda::is_available() => {
            usize::try_from(address).map_or(Ok(None), device_of_pointer)?
        }
        (wanted, _) => wanted,
    };
    found.read_into(out.descriptor, interface, device.unwrap_or(default))?;
    check_order(interface, request.stream, found.stream)?;
    out.producer_stream = found.stream;
    Ok(out.owned_by(None, &dict, object, request))
}

/// Whether an object with memory on a GPU also has a protocol for memory on `device`.
fn is_elsewhere_too(object: &Bound<'_, PyAny>, device: Device) -> PyResult<bool> {
    if device == Device::CPU {
        return Ok(is_exporter(object) || attribute(object, Name::ArrayInterface)?.is_some());
    }
    Ok(device.kind() == "rocm" && attribute(object, Name::HipArrayInterface)?.is_some())
}

/// Rejects a number that is not a stream of the interface, and a consumer's stream that differs from the producer's (`found`) if no
/// driver can synchronize them.
pub fn check_order(interface: &Interface, wanted: Option<&Bound<'_, PyAny>>, found: Option<i64>) -> PyResult<()> {
    let Some(wanted) = wanted.filter(|stream| !stream.is_none()) else { return Ok(()) };
    let refuse = |allowed: &str| Err(ExchangeError::new("stream", &allowed, &args::shown(wanted)).into());
    let Some(number) = stream::number(wanted)? else { return refuse("None, -1 or the number of a stream") };
    if number == -1 {
        // The caller synchronizes the streams.
        return Ok(());
    }
    if let Some(allowed) = interface.refuses_stream(number) {
        return refuse(allowed);
    }
    let is_ordered = interface.refuses_stream(0).is_some() && cuda::is_available();
    if is_ordered || found.is_none_or(|found| found == number) {
        return Ok(());
    }
    refuse("the producer's own stream, or -1 for no synchronization, as there is no CUDA driver to synchronize streams")
}
