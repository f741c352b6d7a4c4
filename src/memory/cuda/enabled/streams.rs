//! Devices and streams, and their state.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::ffi::c_int;

use cudarc::driver::sys;

use super::capture::{is_capturing_here, raw};
use super::context::{enter, found, prepare};
use super::driver::{check, driver, failed};
use crate::device::{Device, stream_0};
use crate::error::{DeviceError, DeviceErrorKind, Result};
use crate::memory::cuda::{Stream, current_stream};

/// Returns whether a CUDA device can be used.
///
/// # Example
/// ```
/// assert_eq!(dlfield::cuda::is_available(), dlfield::cuda::device_count() > 0);
/// ```
pub fn is_available() -> bool {
    driver().is_ok()
}

/// Returns why no CUDA device can be used: no driver, one that is too old, or no device. `None` if one can.
///
/// # Example
/// ```
/// assert_eq!(dlfield::cuda::unavailable_reason().is_none(), dlfield::cuda::is_available());
/// ```
pub fn unavailable_reason() -> Option<String> {
    driver().err().map(str::to_owned)
}

/// Returns the number of CUDA devices.
///
/// # Example
/// ```
/// assert!(dlfield::cuda::device_count() >= 0);
/// ```
pub fn device_count() -> i32 {
    driver().map_or(0, |driver| i32::try_from(driver.contexts.len()).unwrap_or(i32::MAX))
}

/// Returns the driver's name of a device, such as "NVIDIA H100 80GB HBM3".
///
/// # Errors
/// [`DeviceError`].
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// for number in 0..u16::try_from(cuda::device_count()).unwrap() {
///     println!("{}", cuda::device_name(Device::cuda(number)).unwrap());
/// }
/// ```
pub fn device_name(device: Device) -> Result<String> {
    const ROOM: u8 = 255;
    found(device)?;
    let (mut number, mut name) = (0, [0; ROOM as usize]);
    // SAFETY: the driver writes to live variables, to the name at most as many characters as it has.
    unsafe {
        check(device, "cuDeviceGet", sys::cuDeviceGet(&raw mut number, device.cuda_ordinal()))?;
        check(device, "cuDeviceGetName", sys::cuDeviceGetName(name.as_mut_ptr(), c_int::from(ROOM), number))?;
    }
    let characters = name.iter().take_while(|character| **character != 0);
    let bytes: Vec<u8> = characters.flat_map(|character| character.to_ne_bytes()).collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the free and the total memory of a device, in bytes.
///
/// # Errors
/// [`DeviceError`].
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// if cuda::is_available() {
///     let (free, all) = cuda::memory_info(Device::cuda(0)).unwrap();
///     assert!(free <= all);
/// }
/// ```
pub fn memory_info(device: Device) -> Result<(usize, usize)> {
    let _entered = enter(device)?;
    let (mut free, mut all) = (0, 0);
    // SAFETY: the driver writes to live variables.
    check(device, "cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut all) })?;
    Ok((free, all))
}

/// Prepares a device: makes what is made once in a process, such as its context. The first use of a device does that by
/// itself, but can't during a graph capture.
///
/// # Errors
/// [`DeviceError`] during a graph capture; if the device cannot be used, or the driver fails.
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// for number in 0..u16::try_from(cuda::device_count()).unwrap() {
///     cuda::init(Device::cuda(number)).unwrap();
/// }
/// ```
pub fn init(device: Device) -> Result<()> {
    Ok(prepare(device, current_stream(device).stream())?)
}

/// Waits until a stream has finished its work.
///
/// # Errors
/// [`DeviceError`] during graph capture, when there is nothing to wait for; if the device cannot be used, or the driver fails.
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// if cuda::is_available() {
///     cuda::synchronize(Device::cuda(0), cuda::Stream::LEGACY).unwrap();
/// }
/// ```
pub fn synchronize(device: Device, stream: Stream<'_>) -> Result<()> {
    error_if_capturing(device, stream)?;
    let _entered = enter(device)?;
    // SAFETY: the stream exists.
    Ok(check(device, "cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(raw(stream)) })?)
}

/// Returns whether a stream's work is captured into a graph instead of run. The legacy default stream counts as captured while
/// a blocking stream is.
///
/// # Errors
/// [`DeviceError`].
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// if cuda::is_available() {
///     assert!(!cuda::is_capturing(Device::cuda(0), cuda::Stream::LEGACY).unwrap());
/// }
/// ```
pub fn is_capturing(device: Device, stream: Stream<'_>) -> Result<bool, DeviceError> {
    let _entered = enter(device)?;
    is_capturing_here(stream).map_err(|result| failed(device, "cuStreamIsCapturing", result))
}

/// Returns the error for a stream that nothing can wait for, as its work is captured into a graph.
#[cold]
pub(super) fn capturing(device: Device, stream: Stream<'_>) -> DeviceError {
    let stream = stream.handle();
    let sentence = format_args!("stream {stream} of {device} is capturing a graph, so its work cannot be waited for");
    DeviceError::from_sentence("stream", &sentence).with_kind(DeviceErrorKind::Capturing)
}

/// Rejects a stream that is captured into a graph.
///
/// # Errors
/// [`DeviceError`].
pub(crate) fn error_if_capturing(device: Device, stream: Stream<'_>) -> Result<(), DeviceError> {
    if is_capturing(device, stream)? {
        return Err(capturing(device, stream));
    }
    Ok(())
}

/// Returns the number of the device that a stream belongs to; for a default stream, that of `device`.
///
/// # Errors
/// [`DeviceError`] for 0; if the device cannot be used, or the driver fails.
pub(in crate::memory::cuda) fn ordinal_of(device: Device, stream: Stream<'_>) -> Result<i32> {
    if stream.handle() == 0 {
        return Err(stream_0().into());
    }
    prepare(device, stream)?;
    if [Stream::LEGACY, Stream::PER_THREAD].contains(&stream) {
        return Ok(device.cuda_ordinal());
    }
    let _entered = enter(device)?;
    let (mut context, mut found, mut left) = (std::ptr::null_mut(), 0, std::ptr::null_mut());
    // SAFETY: the stream exists, and the driver writes to live variables. The context that is pushed is popped.
    unsafe {
        check(device, "cuStreamGetCtx", sys::cuStreamGetCtx(raw(stream), &raw mut context))?;
        check(device, "cuCtxPushCurrent", sys::cuCtxPushCurrent_v2(context))?;
        let result = sys::cuCtxGetDevice(&raw mut found);
        let _ = sys::cuCtxPopCurrent_v2(&raw mut left);
        check(device, "cuCtxGetDevice", result)?;
    }
    Ok(found)
}
