//! Device memory that several processes use.
//!
//! What CUDA asks for is in its driver API's description of `cuIpcGetMemHandle`, `cuIpcOpenMemHandle` and `cuIpcCloseMemHandle`:
//! handles are for memory of `cuMemAlloc`; the process that allocated it cannot open them (`CUDA_ERROR_INVALID_CONTEXT`); and it
//! is undefined what happens if that process frees the memory before the others have closed it. [`UseLock`] prevents that.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::ffi::c_char;

use cudarc::driver::sys::{self, CUipcMem_flags, CUipcMemHandle};

use super::context::{Relaxed, enter, found};
use super::driver::check;
use super::stream_uses::StreamUses;
use super::use_lock::UseLock;
use crate::device::Device;
use crate::error::{DeviceError, ExchangeError, Result};
use crate::memory::cuda::ipc::Exported;
use crate::memory::cuda::{current_stream, device_count};

/// Bytes of a handle.
const HANDLE: usize = 64;

/// Exports an allocation that starts at `base`.
pub(super) fn export(device: Device, base: usize, lock: &UseLock) -> Result<Exported> {
    let uuid = uuid(device)?;
    let _entered = enter(device)?;
    let _relaxed = Relaxed::new();
    let mut handle = CUipcMemHandle { reserved: [0; HANDLE] };
    // SAFETY: memory of `cuMemAlloc`; the driver writes to a live variable.
    check(device, "cuIpcGetMemHandle", unsafe { sys::cuIpcGetMemHandle(&raw mut handle, base as u64) })?;
    Ok(Exported { uuid, handle: handle.reserved.map(byte), file: lock.number() })
}

/// Converts a `char` of C, which is signed on some machines.
fn byte(of: c_char) -> u8 {
    let [byte] = of.to_ne_bytes();
    byte
}

/// Returns the number that a device has in every process, regardless of the devices that it sees.
fn uuid(device: Device) -> Result<[u8; 16], DeviceError> {
    // A context would take memory of each device that is asked.
    found(device)?;
    let (mut number, mut uuid) = (0, sys::CUuuid { bytes: [0; 16] });
    // SAFETY: the driver writes to live variables.
    unsafe {
        check(device, "cuDeviceGet", sys::cuDeviceGet(&raw mut number, device.cuda_ordinal()))?;
        check(device, "cuDeviceGetUuid_v2", sys::cuDeviceGetUuid_v2(&raw mut uuid, number))?;
    }
    Ok(uuid.bytes.map(byte))
}

pub(in crate::memory) fn device_of_uuid(wanted: [u8; 16]) -> Result<Option<Device>> {
    // Without a driver this is the error that says so.
    found(Device::cuda(0))?;
    for ordinal in 0..u16::try_from(device_count()).unwrap_or(u16::MAX) {
        if uuid(Device::cuda(ordinal))? == wanted {
            return Ok(Some(Device::cuda(ordinal)));
        }
    }
    Ok(None)
}

/// Memory that another process has allocated. It is closed, and its lock given back, when this is dropped.
#[derive(Debug)]
pub struct OpenedMemory {
    device: Device,
    base: usize,
    #[allow(dead_code, reason = "held for its drop, after the memory is closed")]
    lock: UseLock,
}

impl OpenedMemory {
    /// Opens memory of at least `bytes`, of which a shared lock on `file` is held.
    ///
    /// # Errors
    /// [`DeviceError`] for a handle that the driver does not take, or without CUDA; [`ExchangeError`] for memory that is shorter.
    pub(crate) fn open(device: Device, handle: [u8; HANDLE], bytes: usize, file: i32) -> Result<OpenedMemory> {
        let lock = UseLock::of(file)?;
        let _entered = enter(device)?;
        let _relaxed = Relaxed::new();
        let handle = CUipcMemHandle { reserved: handle.map(|byte| c_char::from_ne_bytes([byte])) };
        let flags = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let (mut opened, mut base, mut size) = (0u64, 0u64, 0usize);
        // SAFETY: the driver checks the handle, and writes to live variables.
        let result = unsafe { sys::cuIpcOpenMemHandle_v2(&raw mut opened, handle, flags) };
        check(device, "cuIpcOpenMemHandle", result)?;
        // From here on it is closed on an error, too.
        let memory = OpenedMemory { device, base: usize::try_from(opened).unwrap_or(0), lock };
        // SAFETY: the driver writes to live variables.
        let result = unsafe { sys::cuMemGetAddressRange_v2(&raw mut base, &raw mut size, opened) };
        check(device, "cuMemGetAddressRange", result)?;
        let left = opened.checked_sub(base).and_then(|first| size.checked_sub(usize::try_from(first).ok()?));
        if left.is_none_or(|left| bytes > left) {
            let got = format!("a block of {bytes} bytes in memory of {} bytes", left.unwrap_or(0));
            let expected = "a block that is as long as the memory, or shorter";
            return Err(ExchangeError::new("name", &expected, &got).into());
        }
        Ok(memory)
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.base)
    }

    /// Returns stream uses for which the host waits before the memory is closed: CUDA does not say that closing waits.
    pub(crate) fn stream_uses(&self) -> Result<Box<StreamUses>> {
        StreamUses::of_import(self.device, current_stream(self.device).used(), false)
    }
}

impl Drop for OpenedMemory {
    fn drop(&mut self) {
        // As for memory of this process.
        let Ok(_entered) = enter(self.device) else { return };
        let _relaxed = Relaxed::new();
        // SAFETY: opened once and closed once, after the work on it: see `stream_uses`.
        let _ = unsafe { sys::cuIpcCloseMemHandle(self.base as u64) };
    }
}
