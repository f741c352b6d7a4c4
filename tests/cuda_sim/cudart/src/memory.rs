//! Memory, pools, and attributes of addresses.

use crate::driver::{self, Handle, Outcome};
use crate::runtime::{self, INVALID_VALUE};
use crate::{export, forward};
use std::ffi::{c_int, c_uint, c_void};

/// `cudaPointerAttributes`, without the reserved bytes at its end.
#[repr(C)]
pub struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_address: u64,
    host_address: u64,
}

const UNREGISTERED: c_int = 0;
const MANAGED: c_int = 3;
/// The attributes of an address, as the driver numbers them.
const MEMORY_TYPE: c_int = 2;
const HOST_ADDRESS: c_int = 4;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;
/// The device of memory unknown to CUDA.
const NO_DEVICE: c_int = -2;

fn ask<T: Default>(number: c_int, address: u64) -> Result<T, c_int> {
    let mut value = T::default();
    driver::cuPointerGetAttribute((&raw mut value).cast(), number, address)?;
    Ok(value)
}

fn attributes(address: u64) -> Result<PointerAttributes, c_int> {
    match ask(MEMORY_TYPE, address) {
        Ok(kind) => Ok(PointerAttributes {
            kind: if ask::<c_int>(IS_MANAGED, address)? == 1 { MANAGED } else { kind },
            device: ask(DEVICE_ORDINAL, address)?,
            device_address: address,
            host_address: ask(HOST_ADDRESS, address).unwrap_or(0),
        }),
        Err(INVALID_VALUE) => {
            Ok(PointerAttributes { kind: UNREGISTERED, device: NO_DEVICE, device_address: 0, host_address: address })
        }
        Err(code) => Err(code),
    }
}

/// The runtime frees memory of any device; the double of the driver counts that as misuse unless the device's context is
/// current.
fn free(address: u64) -> Outcome {
    let Ok(owner) = ask(DEVICE_ORDINAL, address) else {
        return driver::cuMemFree_v2(address);
    };
    driver::cuCtxPushCurrent_v2(runtime::primary(owner)?)?;
    let freed = driver::cuMemFree_v2(address);
    driver::cuCtxPopCurrent_v2(&mut 0)?;
    freed
}

export! {
    fn cudaFree(address: u64) {
        if address == 0 { Ok(()) } else { free(address) }
    }

    fn cudaMallocHost(out: *mut u64, bytes: usize) {
        driver::cuMemHostAlloc(out, bytes, 0)
    }

    fn cudaFreeHost(address: u64) {
        if address == 0 { Ok(()) } else { driver::cuMemFreeHost(address) }
    }

    fn cudaPointerGetAttributes(out: *mut PointerAttributes, address: u64) {
        runtime::put(out, attributes(address)?)
    }
}

forward! {
    fn cudaMalloc = cuMemAlloc_v2(out: *mut u64, bytes: usize);
    fn cudaMallocManaged = cuMemAllocManaged(out: *mut u64, bytes: usize, flags: c_uint);
    fn cudaHostAlloc = cuMemHostAlloc(out: *mut u64, bytes: usize, flags: c_uint);
    fn cudaHostRegister = cuMemHostRegister_v2(address: u64, bytes: usize, flags: c_uint);
    fn cudaHostUnregister = cuMemHostUnregister(address: u64);
    fn cudaMallocAsync = cuMemAllocAsync(out: *mut u64, bytes: usize, stream: Handle);
    fn cudaFreeAsync = cuMemFreeAsync(address: u64, stream: Handle);
    fn cudaMemPoolGetAttribute = cuMemPoolGetAttribute(pool: Handle, number: c_int, value: *mut c_void);
    fn cudaMemPoolSetAttribute = cuMemPoolSetAttribute(pool: Handle, number: c_int, value: *mut c_void);
    fn cudaMemPoolSetAccess = cuMemPoolSetAccess(pool: Handle, list: *const c_void, count: usize);
    fn cudaMemPoolTrimTo = cuMemPoolTrimTo(pool: Handle, keep: usize);
}
