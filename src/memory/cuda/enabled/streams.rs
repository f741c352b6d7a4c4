//! Devices and streams, and their state.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::ffi::c_int;

use cudarc::driver::sys::{self, CUresult};

use super::context::{enter, found};
use super::driver::{check, driver};
use crate::device::{Device, DeviceError};
use crate::error::Result;
use crate::memory::cuda::Stream;

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
/// [`DeviceError::NoCuda`], [`DeviceError::Driver`].
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
/// [`DeviceError::NoCuda`], [`DeviceError::Driver`].
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

/// Waits until a stream has finished its work.
///
/// # Errors
/// [`DeviceError::Capturing`] during graph capture, when there is nothing to wait for; [`DeviceError::NoCuda`],
/// [`DeviceError::Driver`].
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// if cuda::is_available() {
///     cuda::synchronize(Device::cuda(0), cuda::Stream::LEGACY).unwrap();
/// }
/// ```
pub fn synchronize(device: Device, stream: Stream) -> Result<()> {
    error_if_capturing(device, stream)?;
    let _entered = enter(device)?;
    // SAFETY: the driver has just accepted the handle.
    Ok(check(device, "cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(raw(stream)) })?)
}

/// Returns whether a stream's work is captured into a graph instead of run. The legacy default stream counts as captured while
/// a blocking stream is.
///
/// # Errors
/// [`DeviceError::NoCuda`], [`DeviceError::Driver`].
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// if cuda::is_available() {
///     assert!(!cuda::is_capturing(Device::cuda(0), cuda::Stream::LEGACY).unwrap());
/// }
/// ```
pub fn is_capturing(device: Device, stream: Stream) -> Result<bool> {
    let _entered = enter(device)?;
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the driver looks the handle up, and writes to a live variable.
    let result = unsafe { sys::cuStreamIsCapturing(raw(stream), &raw mut status) };
    if result == CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT {
        return Ok(true);
    }
    check(device, "cuStreamIsCapturing", result)?;
    Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

/// Rejects a stream that is captured into a graph.
///
/// # Errors
/// [`DeviceError::Capturing`], [`DeviceError::Driver`].
pub(crate) fn error_if_capturing(device: Device, stream: Stream) -> Result<()> {
    if is_capturing(device, stream)? {
        return Err(DeviceError::Capturing { device, stream: stream.handle() }.into());
    }
    Ok(())
}

/// Returns a stream's handle in the driver's type.
pub(crate) fn raw(stream: Stream) -> sys::CUstream {
    std::ptr::without_provenance_mut(usize::try_from(stream.handle()).unwrap_or(0))
}

/// Rejects a handle that is not a stream of the device.
pub(in crate::memory::cuda) fn check_stream(device: Device, stream: Stream) -> Result<()> {
    if stream.handle() == 0 {
        return Err(DeviceError::stream_0().into());
    }
    let _entered = enter(device)?;
    if [Stream::LEGACY, Stream::PER_THREAD].contains(&stream) {
        return Ok(());
    }
    let found = ordinal_of(device, stream)?;
    if found != device.cuda_ordinal() {
        return Err(DeviceError::StreamElsewhere { stream: stream.handle(), device, found }.into());
    }
    Ok(())
}

/// Returns the ordinal of the device that a stream belongs to, for streams other than the default ones. Errors name `device`.
///
/// # Errors
/// [`DeviceError::Stream`] for a handle that the driver does not know, [`DeviceError::Driver`].
pub(super) fn ordinal_of(device: Device, stream: Stream) -> Result<i32, DeviceError> {
    let (mut context, mut found, mut left) = (std::ptr::null_mut(), 0, std::ptr::null_mut());
    // SAFETY: the driver looks the handle up, and writes to live variables. The context that is pushed is popped.
    unsafe {
        if sys::cuStreamGetCtx(raw(stream), &raw mut context) != CUresult::CUDA_SUCCESS {
            return Err(DeviceError::Stream { got: stream.handle().to_string() });
        }
        check(device, "cuCtxPushCurrent", sys::cuCtxPushCurrent_v2(context))?;
        let result = sys::cuCtxGetDevice(&raw mut found);
        let _ = sys::cuCtxPopCurrent_v2(&raw mut left);
        check(device, "cuCtxGetDevice", result)?;
    }
    Ok(found)
}

/// Returns the driver's id of a stream. Ids are never reused, while handles of destroyed streams are. `None` for a default
/// stream, which is never destroyed, for a handle that the driver does not know, and with a driver before CUDA 12.0.
pub(super) fn number_of(device: Device, stream: Stream) -> Option<u64> {
    if [Stream::LEGACY, Stream::PER_THREAD].contains(&stream) || !driver().ok()?.numbers_streams {
        return None;
    }
    let _entered = enter(device).ok()?;
    let mut number = 0;
    // SAFETY: the driver looks the handle up, and writes to a live variable.
    let result = unsafe { sys::cuStreamGetId(raw(stream), &raw mut number) };
    (result == CUresult::CUDA_SUCCESS).then_some(number)
}
