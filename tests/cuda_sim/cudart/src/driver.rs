//! The driver's functions, found at run time in `libcuda.so.1`.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// A context, stream, event or pool.
pub type Handle = usize;

/// Success, or a code; the runtime's codes have the driver's numbers.
pub type Outcome = Result<(), c_int>;

const NO_DRIVER: c_int = 35;
const NOT_SUPPORTED: c_int = 801;

pub fn outcome(code: c_int) -> Outcome {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// Returns the address of a driver function, whose name ends with a zero.
pub fn find(name: &str) -> Result<usize, c_int> {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    // SAFETY: the names are zero-terminated, and the library stays loaded.
    unsafe {
        let library = *LIBRARY.get_or_init(|| libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) as usize);
        if library == 0 {
            return Err(NO_DRIVER);
        }
        match libc::dlsym(library as *mut c_void, name.as_ptr().cast()) as usize {
            0 => Err(NOT_SUPPORTED),
            function => Ok(function),
        }
    }
}

/// Defines functions that call those of the driver, which have these names.
#[macro_export]
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {$(
        pub fn $name($($argument: $type),*) -> $crate::driver::Outcome {
            static FOUND: std::sync::OnceLock<Result<usize, std::ffi::c_int>> = std::sync::OnceLock::new();
            let found = (*FOUND.get_or_init(|| $crate::driver::find(concat!(stringify!($name), "\0"))))?;
            // SAFETY: the driver's function of this name has this signature; the runtime's caller answers for the pointers, by
            // the same contract.
            $crate::driver::outcome(unsafe {
                std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> std::ffi::c_int>(found)($($argument),*)
            })
        }
    )*};
}

functions! {
    fn cuInit(flags: c_uint);
    fn cuDriverGetVersion(version: *mut c_int);
    fn cuGetErrorName(code: c_int, name: *mut *const c_char);
    fn cuGetErrorString(code: c_int, text: *mut *const c_char);
    fn cuGetProcAddress_v2(name: *const c_char, out: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_int);

    fn cuDeviceGetCount(count: *mut c_int);
    fn cuDeviceGetName(name: *mut c_char, room: c_int, device: c_int);
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int);
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int);
    fn cuDeviceGetPCIBusId(id: *mut c_char, room: c_int, device: c_int);
    fn cuDeviceGetAttribute(value: *mut c_int, number: c_int, device: c_int);
    fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int);
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);

    fn cuCtxGetCurrent(context: *mut Handle);
    fn cuCtxSetCurrent(context: Handle);
    fn cuCtxPushCurrent_v2(context: Handle);
    fn cuCtxPopCurrent_v2(context: *mut Handle);
    fn cuCtxGetDevice(device: *mut c_int);
    fn cuCtxEnablePeerAccess(context: Handle, flags: c_uint);

    fn cuMemFree_v2(address: u64);
    fn cuMemHostAlloc(out: *mut u64, bytes: usize, flags: c_uint);
    fn cuMemFreeHost(address: u64);
    fn cuPointerGetAttribute(out: *mut c_void, number: c_int, address: u64);

    fn cuMemcpy(to: u64, from: u64, bytes: usize);
    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Handle);
    fn cuMemcpyPeerAsync(to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize, stream: Handle);
    fn cuMemsetD8_v2(to: u64, value: u8, bytes: usize);
    fn cuMemsetD8Async(to: u64, value: u8, bytes: usize, stream: Handle);

    fn cuStreamCreate(stream: *mut Handle, flags: c_uint);

    fn cuEventCreate(event: *mut Handle, flags: c_uint);
}
