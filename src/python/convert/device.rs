//! Devices as other libraries write them: DLPack's pair of integers, device objects of PyTorch, JAX and CuPy.

use pyo3::prelude::*;

use crate::device::{Device, unknown_code};

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
