//! The driver: looked for once, and the errors it returns.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::ffi::CStr;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUresult};

use crate::device::{Device, DeviceError};

/// The first version that allocates in stream order.
const OLDEST: i32 = 11_020;

/// The first version that numbers streams.
const NUMBERS_STREAMS: i32 = 12_000;

/// A driver that works, with the devices it found.
pub(super) struct Driver {
    pub(super) contexts: Box<[OnceLock<Context>]>,
    /// Whether each stream has a number that no other gets.
    pub(super) numbers_streams: bool,
}

/// A device's primary context, which everybody in the process shares. It is kept for as long as the process runs.
#[derive(Clone, Copy)]
pub(super) struct Context {
    pub(super) raw: sys::CUcontext,
    /// Whether memory can be had in stream order.
    pub(super) has_pools: bool,
}

// SAFETY: the driver takes a context from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// The driver, or why there is none.
pub(super) fn driver() -> Result<&'static Driver, &'static str> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    DRIVER.get_or_init(look).as_ref().map_err(String::as_str)
}

/// Looks for a driver and devices. No other function of the driver may be called where this finds none: cudarc panics
/// without a library.
fn look() -> Result<Driver, String> {
    // SAFETY: loads the library, as its users do.
    if !unsafe { sys::is_culib_present() } {
        return Err("the driver's library was looked for as libcuda.so and libcuda.so.1, and not found".to_owned());
    }
    let (mut version, mut count) = (0, 0);
    // SAFETY: the first function that may be called, and places for what the others tell.
    unsafe {
        called("cuInit", sys::cuInit(0))?;
        called("cuDriverGetVersion", sys::cuDriverGetVersion(&raw mut version))?;
        if version < OLDEST {
            return Err(format!("the driver is of CUDA {}.{}; 11.2 is needed", version / 1000, version % 1000 / 10));
        }
        called("cuDeviceGetCount", sys::cuDeviceGetCount(&raw mut count))?;
    }
    if count < 1 {
        return Err("the driver finds no device".to_owned());
    }
    let contexts = (0..count).map(|_| OnceLock::new()).collect();
    Ok(Driver { contexts, numbers_streams: version >= NUMBERS_STREAMS })
}

// An error code that is newer than cudarc's bindings would be no value of `CUresult`; cudarc leaves that open.
fn called(function: &str, result: CUresult) -> Result<(), String> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("{function}: {}", words(result))) }
}

/// The driver's name for what went wrong, and its explanation.
fn words(result: CUresult) -> String {
    let text = |ask: unsafe fn(CUresult, *mut *const std::ffi::c_char) -> CUresult| {
        let mut text = std::ptr::null();
        // SAFETY: a place for the address of a text that is the library's.
        unsafe {
            if ask(result, &raw mut text) != CUresult::CUDA_SUCCESS || text.is_null() {
                return format!("error {}", result as u32);
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    };
    format!("{}, {}", text(sys::cuGetErrorName), text(sys::cuGetErrorString))
}

/// Makes an error of what a function of the driver returned for a device.
#[inline]
pub(crate) fn check(device: Device, function: &'static str, result: CUresult) -> Result<(), DeviceError> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(failed(device, function, result)) }
}

impl DeviceError {
    /// What `cudarc` returned for a device.
    pub(crate) fn of_cudarc(device: Device, function: &'static str, error: cudarc::driver::DriverError) -> DeviceError {
        failed(device, function, error.0)
    }
}

#[cold]
fn failed(device: Device, function: &'static str, result: CUresult) -> DeviceError {
    DeviceError::Driver { device, function, code: result as u32, words: words(result) }
}
