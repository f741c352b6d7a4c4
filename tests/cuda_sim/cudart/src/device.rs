//! Devices, versions, and lookup of driver functions by name.

use crate::driver::{self, Handle};
use crate::properties::Properties;
use crate::runtime::{self, INVALID_VALUE};
use crate::{export, export_early, forward};
use std::ffi::{c_char, c_int, c_uint, c_void};

const NOT_FOUND: c_int = 500;
/// The runtime version of these structures.
const VERSION: c_int = 13_000;

export_early! {
    fn cudaRuntimeGetVersion(version: *mut c_int) {
        runtime::put(version, VERSION)
    }

    fn cudaDriverGetVersion(version: *mut c_int) {
        driver::cuDriverGetVersion(version)
    }

    fn cudaGetDeviceCount(count: *mut c_int) {
        let found = runtime::device_count();
        runtime::put(count, *found.as_ref().unwrap_or(&0))?;
        found.map(|_| ())
    }

    fn cudaGetDevice(device: *mut c_int) {
        runtime::put(device, runtime::device()?)
    }

    fn cudaSetDevice(device: c_int) {
        runtime::set_device(device)
    }

    fn cudaGetDeviceProperties(properties: *mut Properties, device: c_int) {
        runtime::device_count()?;
        runtime::put(properties, Properties::of(device)?)
    }

    fn cudaDeviceGetAttribute(value: *mut c_int, number: c_int, device: c_int) {
        runtime::device_count()?;
        driver::cuDeviceGetAttribute(value, number, device)
    }

    fn cudaDeviceGetPCIBusId(id: *mut c_char, room: c_int, device: c_int) {
        runtime::device_count()?;
        driver::cuDeviceGetPCIBusId(id, room, device)
    }

    fn cudaDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) {
        runtime::device_count()?;
        driver::cuDeviceCanAccessPeer(can, device, peer)
    }

    fn cudaGetDriverEntryPointByVersion(
        name: *const c_char, function: *mut *mut c_void, version: c_uint, flags: u64, status: *mut c_int,
    ) {
        let version = c_int::try_from(version).map_err(|_| INVALID_VALUE)?;
        match driver::cuGetProcAddress_v2(name, function, version, flags, status) {
            // The runtime reports this only in the status.
            Err(NOT_FOUND) => Ok(()),
            found => found,
        }
    }
}

export! {
    fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        driver::cuCtxEnablePeerAccess(runtime::primary(peer)?, flags)
    }
}

forward! {
    fn cudaDeviceSynchronize = cuCtxSynchronize();
    fn cudaDeviceGetStreamPriorityRange = cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    fn cudaMemGetInfo = cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cudaDeviceGetDefaultMemPool = cuDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int);
}
