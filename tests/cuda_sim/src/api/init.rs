//! Initialization, version, and names of errors.

use crate::codes::{Failure, describe};
use crate::driver;
use crate::entry::Out;
use crate::export;
use std::ffi::{c_char, c_int, c_uint, c_void};

const SWITCH: &str = "DLFIELD_FAKE_CUDA";

export! {
    fn cuInit(flags: c_uint) {
        if std::env::var_os(SWITCH).is_none_or(|value| value != "1") {
            eprintln!("fakecuda: this libcuda is dlfield's test double; it starts only with {SWITCH}=1");
            return Err(Failure::NO_DEVICE);
        }
        if flags != 0 {
            return Err(Failure::INVALID_VALUE);
        }
        driver::lock()?.initialized = true;
        Ok(())
    }

    fn cuDriverGetVersion(version: Out<c_int>) {
        version.put(driver::lock()?.version)
    }

    fn cuGetErrorName(code: c_int, name: Out<*const c_char>) {
        let (text, _) = describe(code).ok_or(Failure::INVALID_VALUE)?;
        name.put(text.as_ptr())
    }

    fn cuGetErrorString(code: c_int, string: Out<*const c_char>) {
        let (_, text) = describe(code).ok_or(Failure::INVALID_VALUE)?;
        string.put(text.as_ptr())
    }

    fn cuGetExportTable(table: Out<*const c_void>, _id: *const c_void) {
        table.put(std::ptr::null())?;
        Err(Failure::NOT_FOUND)
    }
}
