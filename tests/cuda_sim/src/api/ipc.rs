//! Memory between processes.

use crate::codes::Failure;
use crate::driver;
use crate::entry::Out;
use crate::export;
use crate::ipc::MemHandle;
use std::ffi::c_uint;

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, which has to be passed.
const LAZY_PEER_ACCESS: c_uint = 1;

export! {
    fn cuIpcOpenMemHandle_v2(address: Out<u64>, handle: MemHandle, flags: c_uint) {
        if flags != LAZY_PEER_ACCESS {
            return Err(Failure::INVALID_VALUE);
        }
        let opened = driver::lock()?.open_memory(handle)?;
        address.put(opened)
    }
}

export! { driver:
    fn cuIpcGetMemHandle(handle: Out<MemHandle>, address: u64) {
        let made = driver.export_memory(address)?;
        handle.put(made)
    }

    fn cuIpcCloseMemHandle(address: u64) {
        driver.close_memory(address)
    }
}
