//! The driver's functions, found at run time in `libcuda.so.1`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
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

/// Returns the address of a driver function.
fn find(name: &CStr) -> Result<usize, c_int> {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    // SAFETY: the names are zero-terminated, and the library stays loaded.
    unsafe {
        let library = *LIBRARY.get_or_init(|| libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) as usize);
        if library == 0 {
            return Err(NO_DRIVER);
        }
        match libc::dlsym(library as *mut c_void, name.as_ptr()) as usize {
            0 => Err(NOT_SUPPORTED),
            function => Ok(function),
        }
    }
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {$(
        pub fn $name($($argument: $type),*) -> Outcome {
            static FOUND: OnceLock<Result<usize, c_int>> = OnceLock::new();
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!(),
            };
            let found = (*FOUND.get_or_init(|| find(NAME)))?;
            // SAFETY: the driver's function of this name has this signature; the runtime's caller answers for the pointers, by
            // the same contract.
            outcome(unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> c_int>(found)($($argument),*) })
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
    fn cuCtxSynchronize();
    fn cuCtxEnablePeerAccess(context: Handle, flags: c_uint);
    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);

    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuMemAlloc_v2(out: *mut u64, bytes: usize);
    fn cuMemFree_v2(address: u64);
    fn cuMemAllocManaged(out: *mut u64, bytes: usize, flags: c_uint);
    fn cuMemHostAlloc(out: *mut u64, bytes: usize, flags: c_uint);
    fn cuMemFreeHost(address: u64);
    fn cuMemHostRegister_v2(address: u64, bytes: usize, flags: c_uint);
    fn cuMemHostUnregister(address: u64);
    fn cuMemAllocAsync(out: *mut u64, bytes: usize, stream: Handle);
    fn cuMemFreeAsync(address: u64, stream: Handle);
    fn cuPointerGetAttribute(out: *mut c_void, number: c_int, address: u64);

    fn cuDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int);
    fn cuMemPoolGetAttribute(pool: Handle, number: c_int, value: *mut c_void);
    fn cuMemPoolSetAttribute(pool: Handle, number: c_int, value: *mut c_void);
    fn cuMemPoolSetAccess(pool: Handle, list: *const c_void, count: usize);
    fn cuMemPoolTrimTo(pool: Handle, keep: usize);

    fn cuMemcpy(to: u64, from: u64, bytes: usize);
    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Handle);
    fn cuMemcpyPeerAsync(to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize, stream: Handle);
    fn cuMemsetD8_v2(to: u64, value: u8, bytes: usize);
    fn cuMemsetD8Async(to: u64, value: u8, bytes: usize, stream: Handle);

    fn cuStreamCreate(stream: *mut Handle, flags: c_uint);
    fn cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int);
    fn cuStreamDestroy_v2(stream: Handle);
    fn cuStreamQuery(stream: Handle);
    fn cuStreamSynchronize(stream: Handle);
    fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
    fn cuStreamGetPriority(stream: Handle, priority: *mut c_int);
    fn cuStreamIsCapturing(stream: Handle, status: *mut c_int);
    fn cuStreamGetCaptureInfo_v3(
        stream: Handle,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut Handle,
        dependencies: *mut *const Handle,
        edges: *mut *const c_void,
        count: *mut usize,
    );
    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_int);

    fn cuEventCreate(event: *mut Handle, flags: c_uint);
    fn cuEventDestroy_v2(event: Handle);
    fn cuEventRecord(event: Handle, stream: Handle);
    fn cuEventRecordWithFlags(event: Handle, stream: Handle, flags: c_uint);
    fn cuEventQuery(event: Handle);
    fn cuEventSynchronize(event: Handle);
    fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: Handle, end: Handle);
}
