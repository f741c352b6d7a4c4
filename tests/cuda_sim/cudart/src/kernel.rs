//! Kernels of programs that were built with the runtime: they are registered but do not run.

use crate::driver::Handle;
use crate::export;
use crate::runtime::INVALID_DEVICE_FUNCTION;
use std::ffi::{c_char, c_int, c_uint, c_void};

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

#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinaryEnd(_image: *mut *mut c_void) {}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaUnregisterFatBinary(_image: *mut *mut c_void) {}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFunction(
    _image: *mut *mut c_void,
    _stub: *const c_char,
    _function: *mut c_char,
    _name: *const c_char,
    _threads: c_int,
    _thread: *mut c_void,
    _block: *mut c_void,
    _block_size: *mut Dimensions,
    _grid_size: *mut Dimensions,
    _warp_size: *mut c_int,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterVar(
    _image: *mut *mut c_void,
    _host: *mut c_char,
    _device: *mut c_char,
    _name: *const c_char,
    _outside: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
}

/// Accepts the configuration of a launch without storing it: the launch is rejected.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaPushCallConfiguration(
    _grid: Dimensions,
    _block: Dimensions,
    _shared: usize,
    _stream: Handle,
) -> c_uint {
    0
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

export! {
    fn __cudaLaunchKernel(
        _kernel: *const c_void,
        _grid: Dimensions,
        _block: Dimensions,
        _arguments: *mut *mut c_void,
        _shared: usize,
        _stream: Handle,
    ) {
        Err(INVALID_DEVICE_FUNCTION)
    }

    fn cudaLaunchKernel(
        _stub: *const c_void,
        _grid: Dimensions,
        _block: Dimensions,
        _arguments: *mut *mut c_void,
        _shared: usize,
        _stream: Handle,
    ) {
        Err(INVALID_DEVICE_FUNCTION)
    }

    fn cudaLaunchCooperativeKernel(
        _stub: *const c_void,
        _grid: Dimensions,
        _block: Dimensions,
        _arguments: *mut *mut c_void,
        _shared: usize,
        _stream: Handle,
    ) {
        Err(INVALID_DEVICE_FUNCTION)
    }

    fn cudaLaunchKernelExC(_configuration: *const c_void, _stub: *const c_void, _arguments: *mut *mut c_void) {
        Err(INVALID_DEVICE_FUNCTION)
    }

    fn cudaFuncGetAttributes(_attributes: *mut c_void, _stub: *const c_void) {
        Err(INVALID_DEVICE_FUNCTION)
    }

    fn cudaFuncSetAttribute(_stub: *const c_void, _number: c_int, _value: c_int) {
        Err(INVALID_DEVICE_FUNCTION)
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        _blocks: *mut c_int,
        _stub: *const c_void,
        _threads: c_int,
        _shared: usize,
    ) {
        Err(INVALID_DEVICE_FUNCTION)
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        _blocks: *mut c_int,
        _stub: *const c_void,
        _threads: c_int,
        _shared: usize,
        _flags: c_uint,
    ) {
        Err(INVALID_DEVICE_FUNCTION)
    }
}
