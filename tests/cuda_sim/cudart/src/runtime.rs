//! What the runtime adds to the driver: each thread's device and last error, and implicit contexts.

use crate::driver::{self, Handle, Outcome};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, OnceLock};

pub const INVALID_VALUE: c_int = 1;
pub const INVALID_DEVICE_FUNCTION: c_int = 98;
const INVALID_DEVICE: c_int = 101;
const UNKNOWN: c_int = 999;

thread_local! {
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
    static LAST: Cell<c_int> = const { Cell::new(0) };
}

/// Runs the body of a function. A failure becomes the thread's last error.
pub fn call(body: impl FnOnce() -> Outcome) -> c_int {
    match body() {
        Ok(()) => 0,
        Err(code) => {
            LAST.set(code);
            code
        }
    }
}

/// Writes a result to the place that the caller passed for it.
pub fn put<T>(to: *mut T, value: T) -> Outcome {
    // SAFETY: such a place, by the contract of the function that was called.
    unsafe { to.write(value) };
    Ok(())
}

fn start() -> Outcome {
    static STARTED: OnceLock<Outcome> = OnceLock::new();
    *STARTED.get_or_init(|| driver::cuInit(0))
}

pub fn device_count() -> Result<c_int, c_int> {
    start()?;
    let mut count = 0;
    driver::cuDeviceGetCount(&mut count)?;
    Ok(count)
}

/// Returns the primary context of a device, which the runtime retains from the first use on.
pub fn primary(device: c_int) -> Result<Handle, c_int> {
    static KEPT: Mutex<Vec<(c_int, Handle)>> = Mutex::new(vec![]);
    if !(0..device_count()?).contains(&device) {
        return Err(INVALID_DEVICE);
    }
    let mut kept = KEPT.lock().map_err(|_| UNKNOWN)?;
    if let Some(&(_, context)) = kept.iter().find(|(known, _)| *known == device) {
        return Ok(context);
    }
    let mut context = 0;
    driver::cuDevicePrimaryCtxRetain(&mut context, device)?;
    kept.push((device, context));
    Ok(context)
}

fn current() -> Result<Handle, c_int> {
    start()?;
    let mut context = 0;
    driver::cuCtxGetCurrent(&mut context)?;
    Ok(context)
}

/// Returns the device of the current context, if there is one: other libraries change it.
pub fn device() -> Result<c_int, c_int> {
    let mut device = DEVICE.get();
    if current()? != 0 {
        driver::cuCtxGetDevice(&mut device)?;
    }
    Ok(device)
}

pub fn set_device(device: c_int) -> Outcome {
    driver::cuCtxSetCurrent(primary(device)?)?;
    DEVICE.set(device);
    Ok(())
}

/// Makes the thread's device current if no context is.
pub fn bind() -> Outcome {
    if current()? == 0 { set_device(DEVICE.get()) } else { Ok(()) }
}

/// Exports functions that need a context.
#[macro_export]
macro_rules! export {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
            $crate::runtime::call(|| $crate::runtime::bind().and_then(|()| $body))
        }
    )*};
}

/// Exports functions that need a context and are functions of the driver under another name.
#[macro_export]
macro_rules! forward {
    ($(fn $name:ident = $of_driver:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        $crate::export! {$(
            fn $name($($argument: $type),*) {
                $crate::functions! { fn $of_driver($($argument: $type),*); }
                $of_driver($($argument),*)
            }
        )*}
    };
}

/// Exports functions that create no context.
#[macro_export]
macro_rules! export_early {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
            $crate::runtime::call(|| $body)
        }
    )*};
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> c_int {
    LAST.take()
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaPeekAtLastError() -> c_int {
    LAST.get()
}

/// Returns the driver's text for a code, or that of a code which only the runtime has.
fn describe(code: c_int, ask: fn(c_int, *mut *const c_char) -> Outcome, of_a_kernel: &'static CStr) -> *const c_char {
    let mut text = c"unrecognized error code".as_ptr();
    if code == INVALID_DEVICE_FUNCTION {
        text = of_a_kernel.as_ptr();
    } else {
        let _ = ask(code, &mut text);
    }
    text
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorName(code: c_int) -> *const c_char {
    describe(code, driver::cuGetErrorName, c"cudaErrorInvalidDeviceFunction")
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorString(code: c_int) -> *const c_char {
    describe(code, driver::cuGetErrorString, c"invalid device function")
}
