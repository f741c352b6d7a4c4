//! Whether a stream is captured, as the driver says: the one question that a capture always allows.

#![allow(unsafe_code, reason = "functions of the driver")]

use cudarc::driver::sys::{self, CUresult};

use crate::memory::cuda::Stream;

/// Returns a stream's handle in the driver's type.
pub(crate) fn raw(stream: Stream<'_>) -> sys::CUstream {
    std::ptr::without_provenance_mut(usize::try_from(stream.handle()).unwrap_or(0))
}

/// Returns whether a stream's work is captured into a graph. The default streams are those of the device that the thread has
/// entered.
pub(super) fn is_capturing_here(stream: Stream<'_>) -> Result<bool, CUresult> {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the stream exists, and the driver writes to a live variable. The capture stays valid.
    match unsafe { sys::cuStreamIsCapturing(raw(stream), &raw mut status) } {
        CUresult::CUDA_SUCCESS => Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE),
        CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => Ok(true),
        failed => Err(failed),
    }
}

/// Returns whether a stream is captured, without using its device.
pub(super) fn is_capturing_unentered(stream: Stream<'_>) -> bool {
    let mut entered = std::ptr::null_mut();
    // SAFETY: the driver writes to a live variable.
    let found = unsafe { sys::cuCtxGetCurrent(&raw mut entered) };
    // Only a stream that was made knows its device by itself.
    let is_default = [Stream::LEGACY, Stream::PER_THREAD].contains(&stream);
    let has_device = found == CUresult::CUDA_SUCCESS && !entered.is_null() || !is_default;
    has_device && is_capturing_here(stream).unwrap_or(false)
}
