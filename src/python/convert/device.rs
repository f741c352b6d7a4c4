//! Devices as other libraries write them: DLPack's pair of integers, device objects of PyTorch, JAX and CuPy.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::device::{Device, unknown_code};
use crate::python::convert::args::if_converted;
use crate::python::ffi::getattr;

/// `(device_type, device_id)` as `__dlpack_device__` returns it.
#[derive(PartialEq)]
pub struct DlpackPair(pub i64, pub i64);

impl DlpackPair {
    pub fn of(device: Device) -> DlpackPair {
        let device = device.to_dlpack();
        DlpackPair(device.device_type.0.into(), device.device_id.into())
    }
}

/// Converts DLPack's pair of device type and id.
pub fn dlpack_device((code, id): (i64, i64)) -> PyResult<Device> {
    let (Ok(kind), Ok(device_id)) = (u32::try_from(code), i32::try_from(id)) else {
        return Err(unknown_code(code, id).into());
    };
    Ok(Device::from_dlpack(dlpark::ffi::DLDevice { device_type: dlpark::ffi::DLDeviceType(kind), device_id })?)
}

/// Converts a device object of PyTorch, JAX, CuPy, cuda.core or Numba; `None` for any other object. Imports none of them.
pub fn of_framework(value: &Bound<'_, PyAny>) -> PyResult<Option<Device>> {
    let py = value.py();
    let text = |name: &Bound<'_, PyString>| -> PyResult<Option<String>> {
        Ok(getattr::getattr_opt(value, name)?.and_then(|text| text.extract().ok()))
    };
    let number = |name: &Bound<'_, PyString>| -> PyResult<Option<i64>> {
        Ok(match getattr::getattr_opt(value, name)? {
            Some(number) => if_converted(py, number.extract())?,
            None => None,
        })
    };
    // `torch.device`.
    if let Some(kind) = text(intern!(py, "type"))?
        && let Some(index) = getattr::getattr_opt(value, intern!(py, "index"))?
        && let Some(index) = if_converted(py, index.extract::<Option<i64>>())?
    {
        let number = match index {
            Some(number) => number,
            None if kind == "cuda" => current_of_torch(py)?,
            None => 0,
        };
        return device_named(&kind, number).map(Some);
    }
    // A `jax.Device`: its `id` counts the devices of all processes.
    if let Some(platform) = text(intern!(py, "platform"))?
        && let Some(id) = number(intern!(py, "id"))?
    {
        let local = number(intern!(py, "local_hardware_id"))?;
        let kind = if platform == "gpu" { "cuda" } else { &platform };
        return device_named(kind, local.unwrap_or(id)).map(Some);
    }
    // The rest name a number alone, which means other things elsewhere: the module tells whose it is.
    let module = getattr::module_of(&value.get_type()).unwrap_or_default();
    let id = match module.split('.').next() {
        // `cupy.cuda.Device`, and the devices in `numba.cuda.gpus`.
        Some("cupy" | "numba") => number(intern!(py, "id"))?,
        // `cuda.core.Device`.
        Some("cuda") => number(intern!(py, "device_id"))?,
        _ => None,
    };
    id.map(|id| device_named("cuda", id)).transpose()
}

/// The device of a kind and number; there is one host, regardless of its number.
fn device_named(kind: &str, number: i64) -> PyResult<Device> {
    Ok(if kind == "cpu" { Device::CPU } else { format!("{kind}:{number}").parse()? })
}

/// The number that PyTorch's "cuda" stands for: that of its current device, 0 until PyTorch has used any.
fn current_of_torch(py: Python<'_>) -> PyResult<i64> {
    let Some(torch) = getattr::loaded(py, "torch")? else { return Ok(0) };
    let cuda = torch.getattr(intern!(py, "cuda"))?;
    if !cuda.call_method0(intern!(py, "is_initialized"))?.is_truthy()? {
        return Ok(0);
    }
    cuda.call_method0(intern!(py, "current_device"))?.extract()
}

/// Converts DLPack's pair of device type and id, as callers must write it; [`dlpack_device`] allows producers ids that mean
/// nothing.
pub fn exact_device(pair: (i64, i64)) -> PyResult<Device> {
    let device = dlpack_device(pair)?;
    if DlpackPair::of(device) == DlpackPair(pair.0, pair.1) {
        Ok(device)
    } else {
        Err(unknown_code(pair.0, pair.1).into())
    }
}
