//! Which device a thread's calls are about.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::marker::PhantomData;
use std::sync::OnceLock;

use cudarc::driver::sys;

use super::driver::{Context, check, driver};
use crate::device::{Device, DeviceError};

/// Calls of this thread are about one device while this lives, and then again about the one before.
pub(crate) struct Entered {
    pub(crate) has_pools: bool,
    /// A thread's own.
    here: PhantomData<*mut ()>,
}

/// Makes a device the one that this thread's calls to the driver are about.
///
/// # Errors
/// [`DeviceError::NoCuda`] if there is no driver or not so many devices, [`DeviceError::Driver`] if its context cannot be
/// had.
pub(crate) fn enter(device: Device) -> Result<Entered, DeviceError> {
    let context = context(device)?;
    // SAFETY: a context that is kept.
    check(device, "cuCtxPushCurrent", unsafe { sys::cuCtxPushCurrent_v2(context.raw) })?;
    Ok(Entered { has_pools: context.has_pools, here: PhantomData })
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut left = std::ptr::null_mut();
        // SAFETY: what was pushed is popped, by the thread that pushed it. There is nobody to tell of a failure, which only
        // a driver that is shutting down has.
        let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut left) };
    }
}

/// Lets the thread allocate, free and load code while a graph is recorded, in whatever stream and by whatever thread, for as
/// long as this lives. None of that is recorded.
pub(crate) struct Relaxed(sys::CUstreamCaptureMode);

impl Relaxed {
    pub(crate) fn new() -> Relaxed {
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the mode before is put where the new one was.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
        Relaxed(mode)
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // SAFETY: as above.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut self.0) };
    }
}

/// Whether this is the primary context of a device.
///
/// # Errors
/// As for [`enter`].
pub(crate) fn is_primary(device: Device, context: sys::CUcontext) -> Result<bool, DeviceError> {
    Ok(self::context(device)?.raw == context)
}

/// The primary context of a device.
pub(super) fn context(device: Device) -> Result<Context, DeviceError> {
    let kept = found(device)?;
    if let Some(context) = kept.get() {
        return Ok(*context);
    }
    // Two threads may do this at once: the driver counts, and what is kept too often is kept until the end as well.
    let context = retain(device, device.cuda_ordinal())?;
    Ok(*kept.get_or_init(|| context))
}

/// The place for the context of a device that the driver finds.
pub(super) fn found(device: Device) -> Result<&'static OnceLock<Context>, DeviceError> {
    let driver = driver().map_err(|why| DeviceError::NoCuda { device, why: why.to_owned() })?;
    let kept = usize::try_from(device.cuda_ordinal()).ok().and_then(|ordinal| driver.contexts.get(ordinal));
    kept.ok_or_else(|| {
        let count = driver.contexts.len();
        DeviceError::NoCuda { device, why: format!("the driver finds {count} devices, with numbers from 0") }
    })
}

fn retain(device: Device, ordinal: i32) -> Result<Context, DeviceError> {
    let (mut number, mut raw, mut has_pools) = (0, std::ptr::null_mut(), 0);
    let pools = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    // SAFETY: places for what the driver tells.
    unsafe {
        check(device, "cuDeviceGet", sys::cuDeviceGet(&raw mut number, ordinal))?;
        let result = sys::cuDeviceGetAttribute(&raw mut has_pools, pools, number);
        check(device, "cuDeviceGetAttribute", result)?;
        check(device, "cuDevicePrimaryCtxRetain", sys::cuDevicePrimaryCtxRetain(&raw mut raw, number))?;
        if has_pools != 0 {
            keep_what_is_freed(number);
        }
    }
    Ok(Context { raw, has_pools: has_pools != 0 })
}

/// Lets the driver's pool keep freed memory for the next allocation, unless somebody said how much it may keep. By default it
/// gives all back whenever anybody waits for the device, and each allocation after that is as slow as the first.
///
/// # Safety
/// - The driver has a device of this number, with a pool.
unsafe fn keep_what_is_freed(number: sys::CUdevice) {
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    let (mut pool, mut kept) = (std::ptr::null_mut(), 0u64);
    let mut everything = u64::MAX;
    // SAFETY: places for what the driver tells, of the type that the attribute has. Without the pool's answer it stays as it
    // is, which is only slower.
    unsafe {
        let found = sys::cuDeviceGetDefaultMemPool(&raw mut pool, number) == sys::CUresult::CUDA_SUCCESS
            && sys::cuMemPoolGetAttribute(pool, attribute, (&raw mut kept).cast()) == sys::CUresult::CUDA_SUCCESS;
        if found && kept == 0 {
            let _ = sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut everything).cast());
        }
    }
}
