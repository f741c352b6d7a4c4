//! Streams and their capture.

use crate::driver::{self, Handle};
use crate::export;
use std::ffi::{c_int, c_uint, c_void};

export! {
    fn cudaStreamCreate(stream: *mut Handle) {
        driver::cuStreamCreate(stream, 0)
    }

    fn cudaStreamCreateWithFlags(stream: *mut Handle, flags: c_uint) {
        driver::cuStreamCreate(stream, flags)
    }

    fn cudaStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int) {
        driver::cuStreamCreateWithPriority(stream, flags, priority)
    }

    fn cudaStreamDestroy(stream: Handle) {
        driver::cuStreamDestroy_v2(stream)
    }

    fn cudaStreamQuery(stream: Handle) {
        driver::cuStreamQuery(stream)
    }

    fn cudaStreamSynchronize(stream: Handle) {
        driver::cuStreamSynchronize(stream)
    }

    fn cudaStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) {
        driver::cuStreamWaitEvent(stream, event, flags)
    }

    fn cudaStreamGetPriority(stream: Handle, priority: *mut c_int) {
        driver::cuStreamGetPriority(stream, priority)
    }

    fn cudaStreamIsCapturing(stream: Handle, status: *mut c_int) {
        driver::cuStreamIsCapturing(stream, status)
    }

    fn cudaStreamGetCaptureInfo(
        stream: Handle,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut Handle,
        dependencies: *mut *const Handle,
        edges: *mut *const c_void,
        count: *mut usize,
    ) {
        driver::cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges, count)
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        driver::cuThreadExchangeStreamCaptureMode(mode)
    }
}
