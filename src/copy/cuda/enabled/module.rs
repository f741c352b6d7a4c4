//! This crate's kernels, loaded into the context of each device that needs them.

use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys;

use crate::device::Device;
use crate::error::Result;
use crate::memory::cuda::{Relaxed, check, enter};

/// The kernels as PTX, which the driver compiles for the device when it loads them.
const PTX: &str = concat!(include_str!("../kernels.ptx"), "\0");

/// The kernels of one device.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    pub(super) copy: Kernel,
    pub(super) transpose: Kernel,
    /// Those for several items of 1, 2 and 4 bytes at once.
    pub(super) packed: [Kernel; 3],
}

/// A kernel's handle.
#[derive(Clone, Copy)]
pub(super) struct Kernel(pub(super) sys::CUfunction);

// SAFETY: the driver accepts a handle from any thread.
unsafe impl Send for Kernel {}

/// Returns the kernels of an entered device; they stay loaded until the process ends.
pub(super) fn kernels(device: Device) -> Result<Kernels> {
    static LOADED: Mutex<Vec<(i32, Kernels)>> = Mutex::new(Vec::new());
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let ordinal = device.cuda_ordinal();
    if let Some((_, kernels)) = loaded.iter().find(|(of, _)| *of == ordinal) {
        return Ok(*kernels);
    }
    let kernels = load(device)?;
    loaded.push((ordinal, kernels));
    Ok(kernels)
}

fn load(device: Device) -> Result<Kernels> {
    let _entered = enter(device)?;
    // Loading is allowed during graph capture, and not captured.
    let _relaxed = Relaxed::new();
    let mut module = std::ptr::null_mut();
    // SAFETY: the driver writes the handle to a live variable; the text ends with a zero.
    let result = unsafe { sys::cuModuleLoadData(&raw mut module, PTX.as_ptr().cast()) };
    check(device, "cuModuleLoadData", result)?;
    let find = |name: &CStr| -> Result<Kernel> {
        let mut function = std::ptr::null_mut();
        // SAFETY: the driver writes the handle to a live variable; the module was just loaded.
        let result = unsafe { sys::cuModuleGetFunction(&raw mut function, module, name.as_ptr()) };
        check(device, "cuModuleGetFunction", result)?;
        Ok(Kernel(function))
    };
    let found = || -> Result<Kernels> {
        let packed = [find(c"dlfield_transpose_1")?, find(c"dlfield_transpose_2")?, find(c"dlfield_transpose_4")?];
        Ok(Kernels { copy: find(c"dlfield_copy")?, transpose: find(c"dlfield_transpose")?, packed })
    };
    let kernels = found();
    if kernels.is_err() {
        // SAFETY: no kernel of this module has been returned.
        let _ = unsafe { sys::cuModuleUnload(module) };
    }
    kernels
}
