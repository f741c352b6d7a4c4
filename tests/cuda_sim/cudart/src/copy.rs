//! Copies and fills. The driver finds the kind of memory by its address, so the kind of copy is ignored.

use crate::driver::{self, Handle};
use crate::{export, runtime};
use std::ffi::c_int;

export! {
    fn cudaMemcpy(to: u64, from: u64, bytes: usize, _kind: c_int) {
        driver::cuMemcpy(to, from, bytes)
    }

    fn cudaMemcpyAsync(to: u64, from: u64, bytes: usize, _kind: c_int, stream: Handle) {
        driver::cuMemcpyAsync(to, from, bytes, stream)
    }

    fn cudaMemcpyPeerAsync(to: u64, to_device: c_int, from: u64, from_device: c_int, bytes: usize, stream: Handle) {
        let (to_context, from_context) = (runtime::primary(to_device)?, runtime::primary(from_device)?);
        driver::cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, stream)
    }

    fn cudaMemset(to: u64, value: c_int, bytes: usize) {
        driver::cuMemsetD8_v2(to, value as u8, bytes)
    }

    fn cudaMemsetAsync(to: u64, value: c_int, bytes: usize, stream: Handle) {
        driver::cuMemsetD8Async(to, value as u8, bytes, stream)
    }
}
