//! Events.

use crate::driver::{self, Handle};
use crate::export;
use std::ffi::c_uint;

export! {
    fn cudaEventCreate(event: *mut Handle) {
        driver::cuEventCreate(event, 0)
    }

    fn cudaEventCreateWithFlags(event: *mut Handle, flags: c_uint) {
        driver::cuEventCreate(event, flags)
    }

    fn cudaEventDestroy(event: Handle) {
        driver::cuEventDestroy_v2(event)
    }

    fn cudaEventRecord(event: Handle, stream: Handle) {
        driver::cuEventRecord(event, stream)
    }

    fn cudaEventRecordWithFlags(event: Handle, stream: Handle, flags: c_uint) {
        driver::cuEventRecordWithFlags(event, stream, flags)
    }

    fn cudaEventQuery(event: Handle) {
        driver::cuEventQuery(event)
    }

    fn cudaEventSynchronize(event: Handle) {
        driver::cuEventSynchronize(event)
    }

    fn cudaEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) {
        driver::cuEventElapsedTime_v2(milliseconds, start, end)
    }
}
