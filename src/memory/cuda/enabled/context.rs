//! The device that a thread's driver calls use.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::marker::PhantomData;
use std::sync::OnceLock;

use cudarc::driver::sys;

use super::capture::is_capturing_unentered;
use super::driver::{Context, check, driver};
use crate::device::{Device, unavailable};
use crate::error::{DeviceError, DeviceErrorKind};
use crate::memory::cuda::{Stream, current_stream};

/// Keeps a device current for this thread's driver calls; when dropped, the previous one is current again.
pub(crate) struct Entered {
    pub(crate) has_pools: bool,
    /// Keeps the value on its thread, whose current device it restores.
    here: PhantomData<*mut ()>,
}

/// Makes a device current for this thread's driver calls.
///
/// # Errors
/// [`DeviceError`] if there is no driver, or no device of that number; if its context cannot be created, or would be during a
/// graph capture.
pub(crate) fn enter(device: Device) -> Result<Entered, DeviceError> {
    push(device, context(device)?)
}

/// Makes what is made once for a device, for work on a stream.
///
/// # Errors
/// As for [`enter`].
pub(super) fn prepare(device: Device, stream: Stream<'_>) -> Result<(), DeviceError> {
    context_for(device, stream).map(drop)
}

fn push(device: Device, context: Context) -> Result<Entered, DeviceError> {
    // SAFETY: the context is retained until the process ends.
    check(device, "cuCtxPushCurrent", unsafe { sys::cuCtxPushCurrent_v2(context.raw) })?;
    Ok(Entered { has_pools: context.has_pools, here: PhantomData })
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut left = std::ptr::null_mut();
        // SAFETY: this thread pops what it pushed. Only a driver that is shutting down fails, and a drop cannot report that.
        let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut left) };
    }
}

/// While it lives, the thread may allocate, free and load code during graph capture on any stream by any thread. None of that
/// is captured.
pub(crate) struct Relaxed(sys::CUstreamCaptureMode);

impl Relaxed {
    pub(crate) fn new() -> Relaxed {
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the driver swaps the mode with a live variable, which has the previous mode from then on.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
        Relaxed(mode)
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // SAFETY: the driver writes to the variable, which lives during the call.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut self.0) };
    }
}

/// Returns whether this is the primary context of a device.
///
/// # Errors
/// As for [`enter`].
pub(crate) fn is_primary(device: Device, context: sys::CUcontext) -> Result<bool, DeviceError> {
    Ok(self::context(device)?.raw == context)
}

/// Returns the primary context of a device.
fn context(device: Device) -> Result<Context, DeviceError> {
    match found(device)?.get() {
        Some(context) => Ok(*context),
        None => context_for(device, current_stream(device).stream()),
    }
}

/// Returns the primary context of a device, for work on a stream.
fn context_for(device: Device, stream: Stream<'_>) -> Result<Context, DeviceError> {
    let slot = found(device)?;
    if let Some(context) = slot.get() {
        return Ok(*context);
    }
    // Making one would invalidate the capture.
    if is_capturing_unentered(stream) {
        let sentence = format_args!("{device} was not used before this graph capture");
        return Err(DeviceError::from_sentence("device", &sentence)
            .with_fix(&"initialize it before")
            .with_kind(DeviceErrorKind::Capturing));
    }
    let _relaxed = Relaxed::new();
    // Two threads may do this at once: the driver counts references, and what is surplus is held until the process ends, too.
    let context = retain(device, device.cuda_ordinal())?;
    Ok(*slot.get_or_init(|| context))
}

/// Returns the cell for the context of a device that the driver has found.
pub(super) fn found(device: Device) -> Result<&'static OnceLock<Context>, DeviceError> {
    let driver = driver().map_err(|why| unavailable(device, &why))?;
    let slot = usize::try_from(device.cuda_ordinal()).ok().and_then(|ordinal| driver.contexts.get(ordinal));
    slot.ok_or_else(|| {
        let count = driver.contexts.len();
        unavailable(device, &format_args!("the driver finds {count} devices, with numbers from 0"))
    })
}

fn retain(device: Device, ordinal: i32) -> Result<Context, DeviceError> {
    let (mut number, mut has_pools) = (0, 0);
    let (mut raw, mut stream, mut left) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    let pools = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    // SAFETY: the driver writes to live variables.
    unsafe {
        check(device, "cuDeviceGet", sys::cuDeviceGet(&raw mut number, ordinal))?;
        let result = sys::cuDeviceGetAttribute(&raw mut has_pools, pools, number);
        check(device, "cuDeviceGetAttribute", result)?;
        check(device, "cuDevicePrimaryCtxRetain", sys::cuDevicePrimaryCtxRetain(&raw mut raw, number))?;
        if has_pools != 0 {
            set_pool_threshold(number);
        }
        check(device, "cuCtxPushCurrent", sys::cuCtxPushCurrent_v2(raw))?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        let made = sys::cuStreamCreate(&raw mut stream, flags);
        let _ = sys::cuCtxPopCurrent_v2(&raw mut left);
        check(device, "cuStreamCreate", made)?;
    }
    Ok(Context { raw, has_pools: has_pools != 0, stream })
}

/// Returns this crate's stream on a device.
pub(in crate::memory::cuda) fn own_stream(device: Device) -> Result<Stream<'static>, DeviceError> {
    // It is never destroyed.
    Ok(Stream::of_handle(context(device)?.stream.addr() as u64))
}

/// Makes the driver's pool keep freed memory for the next allocations, unless the program has set a limit. By default the pool
/// returns all of it whenever any thread synchronizes with the device, and each allocation after that is as slow as the first.
///
/// # Safety
/// - The driver has a device of this number, with a memory pool.
unsafe fn set_pool_threshold(number: sys::CUdevice) {
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    let (mut pool, mut threshold) = (std::ptr::null_mut(), 0u64);
    let mut everything = u64::MAX;
    // SAFETY: the driver writes to live variables of the attribute's type. If the pool does not answer it stays as it is, which
    // is only slower.
    unsafe {
        let found = sys::cuDeviceGetDefaultMemPool(&raw mut pool, number) == sys::CUresult::CUDA_SUCCESS
            && sys::cuMemPoolGetAttribute(pool, attribute, (&raw mut threshold).cast()) == sys::CUresult::CUDA_SUCCESS;
        if found && threshold == 0 {
            let _ = sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut everything).cast());
        }
    }
}
