//! Kernels of programs that were built with the runtime: they are registered but do not run.
//!
//! Functions that do not look at their arguments declare none: callers pass them in registers, or remove them from the stack.

use crate::driver::Handle;
use crate::export;
use crate::runtime::INVALID_DEVICE_FUNCTION;
use std::ffi::{c_int, c_uint, c_void};

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dimensions {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinary(image: *mut c_void) -> *mut *mut c_void {
    image.cast()
}

/// Exports functions that do nothing and succeed.
macro_rules! ignored {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> c_int {
            0
        }
    )*};
}

ignored! {
    __cudaRegisterFatBinaryEnd
    __cudaUnregisterFatBinary
    __cudaRegisterFunction
    __cudaRegisterVar
    // The configuration of a launch, which is rejected.
    __cudaPushCallConfiguration
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaPopCallConfiguration(
    grid: *mut Dimensions,
    block: *mut Dimensions,
    shared: *mut usize,
    stream: *mut Handle,
) -> c_int {
    let one = Dimensions { x: 1, y: 1, z: 1 };
    // SAFETY: the caller passes places for the results.
    unsafe {
        grid.write(one);
        block.write(one);
        shared.write(0);
        stream.write(0);
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaGetKernel(kernel: *mut *const c_void, stub: *const c_void) -> c_int {
    // SAFETY: the caller passes a place for the result.
    unsafe { kernel.write(stub) };
    0
}

/// Exports functions that would need the code of a kernel.
macro_rules! rejected {
    ($($name:ident)*) => {
        export! { $(fn $name() { Err(INVALID_DEVICE_FUNCTION) })* }
    };
}

rejected! {
    __cudaLaunchKernel
    cudaLaunchKernel
    cudaLaunchCooperativeKernel
    cudaLaunchKernelExC
    cudaFuncGetAttributes
    cudaFuncSetAttribute
    cudaOccupancyMaxActiveBlocksPerMultiprocessor
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
}
