//! Events.

use crate::driver::{self, Handle};
use crate::{export, forward};
use std::ffi::c_uint;

export! {
    fn cudaEventCreate(event: *mut Handle) {
        driver::cuEventCreate(event, 0)
    }
}

forward! {
    fn cudaEventCreateWithFlags = cuEventCreate(event: *mut Handle, flags: c_uint);
    fn cudaEventDestroy = cuEventDestroy_v2(event: Handle);
    fn cudaEventRecord = cuEventRecord(event: Handle, stream: Handle);
    fn cudaEventRecordWithFlags = cuEventRecordWithFlags(event: Handle, stream: Handle, flags: c_uint);
    fn cudaEventQuery = cuEventQuery(event: Handle);
    fn cudaEventSynchronize = cuEventSynchronize(event: Handle);
    fn cudaEventElapsedTime = cuEventElapsedTime_v2(milliseconds: *mut f32, start: Handle, end: Handle);
}
