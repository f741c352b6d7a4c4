//! The driver, which is loaded once, and its errors.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::ffi::CStr;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUresult};

use crate::device::Device;
use crate::error::{DeviceError, DeviceErrorKind};

/// The first version with stream-ordered allocation.
const OLDEST: i32 = 11_020;

/// A driver that works, with its devices.
pub(super) struct Driver {
    pub(super) contexts: Box<[OnceLock<Context>]>,
}

/// A device's primary context, which all libraries of the process share. It is retained until the process ends.
#[derive(Clone, Copy)]
pub(super) struct Context {
    pub(super) raw: sys::CUcontext,
    /// Whether the device has stream-ordered allocation.
    pub(super) has_pools: bool,
    /// A stream of this crate: in its order memory is allocated during a capture, and freed that other streams have used.
    pub(super) stream: sys::CUstream,
}

// SAFETY: the handles are only given to the driver, which takes them from any thread.
unsafe impl Send for Context {}
// SAFETY: the handles are only given to the driver, which takes them from any thread.
unsafe impl Sync for Context {}

/// Returns the driver, or why there is none.
pub(super) fn driver() -> Result<&'static Driver, &'static str> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    DRIVER.get_or_init(look).as_ref().map_err(String::as_str)
}

/// The answer for programs that are linked to the driver: they would not have started without it.
#[allow(dead_code, reason = "`is_present` uses it if `cudarc` has no function of this name")]
unsafe fn is_culib_present() -> bool {
    true
}

/// Whether the driver's library was found.
fn is_present() -> bool {
    // If `cudarc` loads the driver at run time, its function of this name hides the one above.
    #[allow(unused_imports, reason = "as the function above")]
    use cudarc::driver::sys::*;
    // SAFETY: loads the driver's library, as every CUDA program does.
    unsafe { is_culib_present() }
}

/// Looks for a driver and devices. If it finds none, no other function of the driver may be called: cudarc panics without a
/// library.
fn look() -> Result<Driver, String> {
    if !is_present() {
        return Err("the driver's library was not found; looked for libcuda.so and libcuda.so.1".to_owned());
    }
    let (mut version, mut count) = (0, 0);
    // SAFETY: `cuInit` comes first, as the driver requires; the others write to live variables.
    unsafe {
        called("cuInit", sys::cuInit(0))?;
        called("cuDriverGetVersion", sys::cuDriverGetVersion(&raw mut version))?;
        if version < OLDEST {
            return Err(format!(
                "the driver supports CUDA {}.{}; 11.2 or newer is needed",
                version / 1000,
                version % 1000 / 10
            ));
        }
        called("cuDeviceGetCount", sys::cuDeviceGetCount(&raw mut count))?;
    }
    if count < 1 {
        return Err("the driver finds no device".to_owned());
    }
    let contexts = (0..count).map(|_| OnceLock::new()).collect();
    Ok(Driver { contexts })
}

// An error code that is newer than cudarc's bindings would be no value of `CUresult`; cudarc leaves that open.
fn called(function: &str, result: CUresult) -> Result<(), String> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("{function}: {}", error_text(result))) }
}

/// Returns the driver's name and explanation of an error.
fn error_text(result: CUresult) -> String {
    let text = |ask: unsafe fn(CUresult, *mut *const std::ffi::c_char) -> CUresult| {
        let mut text = std::ptr::null();
        // SAFETY: the driver writes the address of a string of its own to a live variable.
        unsafe {
            if ask(result, &raw mut text) != CUresult::CUDA_SUCCESS || text.is_null() {
                return format!("error {}", result as u32);
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    };
    format!("{}, {}", text(sys::cuGetErrorName), text(sys::cuGetErrorString))
}

/// Turns the result of a driver function for a device into an error, if it is one.
#[inline]
pub(crate) fn check(device: Device, function: &'static str, result: CUresult) -> Result<(), DeviceError> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(failed(device, function, result)) }
}

/// Wraps an error that `cudarc` returned for a device.
pub(crate) fn of_cudarc(device: Device, function: &'static str, error: cudarc::driver::DriverError) -> DeviceError {
    failed(device, function, error.0)
}

#[cold]
pub(super) fn failed(device: Device, function: &'static str, result: CUresult) -> DeviceError {
    let sentence = format_args!("{function} on {device} failed: {} ({})", error_text(result), result as u32);
    DeviceError::from_sentence("device", &sentence).with_kind(DeviceErrorKind::Driver)
}
