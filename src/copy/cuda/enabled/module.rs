//! This crate's kernels, loaded into the context of each device that needs them.

use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys;

use crate::device::Device;
use crate::error::Result;
use crate::memory::cuda::{Relaxed, check, enter};

/// The kernels as PTX, which the driver compiles for the device when it loads them.
const PTX: &str = concat!(include_str!("../kernels.ptx"), "\0");

/// The kernels of one device; arrays are for items of 1, 2, 4, 8 and 16 bytes in this order.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    pub(super) copy: [Kernel; 5],
    pub(super) transpose: [Kernel; 5],
    pub(super) fill_strided: [Kernel; 5],
    pub(super) fill_8: Kernel,
    pub(super) fill_16: Kernel,
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
    let find = |name: String| -> Result<Kernel> {
        let name = CString::new(name).unwrap_or_default();
        let mut function = std::ptr::null_mut();
        // SAFETY: the driver writes the handle to a live variable; the module was just loaded, and the name ends with a zero.
        let result = unsafe { sys::cuModuleGetFunction(&raw mut function, module, name.as_ptr()) };
        check(device, "cuModuleGetFunction", result)?;
        Ok(Kernel(function))
    };
    let sized = |name: &str| -> Result<[Kernel; 5]> {
        let of = |bytes: usize| find(format!("{name}_{bytes}"));
        Ok([of(1)?, of(2)?, of(4)?, of(8)?, of(16)?])
    };
    let found = || -> Result<Kernels> {
        Ok(Kernels {
            copy: sized("dlfield_copy")?,
            transpose: sized("dlfield_transpose")?,
            fill_strided: sized("dlfield_fill_strided")?,
            fill_8: find("dlfield_fill_8".to_owned())?,
            fill_16: find("dlfield_fill_16".to_owned())?,
        })
    };
    let kernels = found();
    if kernels.is_err() {
        // SAFETY: no kernel of this module has been returned.
        let _ = unsafe { sys::cuModuleUnload(module) };
    }
    kernels
}
