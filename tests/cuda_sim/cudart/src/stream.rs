//! Streams and their capture.

use crate::driver::{self, Handle};
use crate::{export, forward};
use std::ffi::{c_int, c_uint, c_void};

export! {
    fn cudaStreamCreate(stream: *mut Handle) {
        driver::cuStreamCreate(stream, 0)
    }
}

forward! {
    fn cudaStreamCreateWithFlags = cuStreamCreate(stream: *mut Handle, flags: c_uint);
    fn cudaStreamCreateWithPriority = cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int);
    fn cudaStreamDestroy = cuStreamDestroy_v2(stream: Handle);
    fn cudaStreamQuery = cuStreamQuery(stream: Handle);
    fn cudaStreamSynchronize = cuStreamSynchronize(stream: Handle);
    fn cudaStreamWaitEvent = cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
    fn cudaStreamGetPriority = cuStreamGetPriority(stream: Handle, priority: *mut c_int);
    fn cudaStreamIsCapturing = cuStreamIsCapturing(stream: Handle, status: *mut c_int);
    fn cudaStreamGetCaptureInfo = cuStreamGetCaptureInfo_v3(
        stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle, dependencies: *mut *const Handle, edges:
        *mut *const c_void, count: *mut usize,
    );
    fn cudaThreadExchangeStreamCaptureMode = cuThreadExchangeStreamCaptureMode(mode: *mut c_int);
}
