//! What `enabled` is in builds without the feature `cuda`: the same signatures, and there is no CUDA.

use crate::device::{Device, DeviceError};
use crate::error::Result;
use crate::memory::Contents;

use super::Stream;
#[cfg(feature = "python")]
use super::stream::Kept;

const WHY_NOT: &str = "this build of dlfield is without the feature `cuda`";

fn no_cuda<T>(device: Device) -> Result<T> {
    Err(DeviceError::NoCuda { device, why: WHY_NOT.to_owned() }.into())
}

/// Whether there is a CUDA device that can be used.
pub fn is_available() -> bool {
    false
}

/// Why there is no CUDA device that can be used, if there is none.
pub fn why_not() -> Option<String> {
    Some(WHY_NOT.to_owned())
}

/// How many CUDA devices there are.
pub fn device_count() -> i32 {
    0
}

/// What the driver calls a device.
///
/// # Errors
/// [`DeviceError::NoCuda`].
pub fn device_name(device: Device) -> Result<String> {
    no_cuda(device)
}

/// Bytes of memory of a device: those that are free, and all.
///
/// # Errors
/// [`DeviceError::NoCuda`].
pub fn memory_info(device: Device) -> Result<(usize, usize)> {
    no_cuda(device)
}

/// Waits until a stream has done its work.
///
/// # Errors
/// [`DeviceError::NoCuda`].
pub fn synchronize(device: Device, _: Stream) -> Result<()> {
    no_cuda(device)
}

/// Whether a stream's work is recorded as a graph instead of done.
///
/// # Errors
/// [`DeviceError::NoCuda`].
pub fn is_capturing(device: Device, _: Stream) -> Result<bool> {
    no_cuda(device)
}

pub(crate) fn error_if_capturing(device: Device, _: Stream) -> Result<()> {
    no_cuda(device)
}

pub(super) fn check_stream(device: Device, stream: Stream) -> Result<()> {
    if stream.handle() == 0 { Err(DeviceError::stream_0().into()) } else { no_cuda(device) }
}

/// The device whose memory is at an address, as the driver has it: there is none to know it.
#[cfg(feature = "python")]
pub(crate) fn device_of_pointer(_: usize) -> Result<Option<Device>> {
    Ok(None)
}

/// No memory: none can be had.
#[derive(Debug)]
pub(in crate::memory) enum CudaMemory {}

impl CudaMemory {
    pub(in crate::memory) fn allocate(
        device: Device,
        _: usize,
        _: usize,
        _: Contents,
        _: Stream,
    ) -> Result<CudaMemory> {
        no_cuda(device)
    }

    pub(in crate::memory) fn as_ptr(&self) -> *mut u8 {
        match *self {}
    }

    pub(in crate::memory) fn stream_uses(&self) -> Box<StreamUses> {
        match *self {}
    }
}

/// No streams: there is no work.
#[derive(Debug)]
pub(crate) enum StreamUses {}

impl StreamUses {
    pub(crate) fn of_import(device: Device, _: Stream) -> Result<Box<StreamUses>> {
        no_cuda(device)
    }

    #[cfg(feature = "python")]
    pub(crate) fn set_freed_by_host(&mut self) {
        match *self {}
    }

    pub(crate) fn record_stream(&self, _: Device, _: Stream) -> Result<()> {
        match *self {}
    }

    #[cfg(feature = "python")]
    pub(crate) fn record_kept_stream(&self, _: Device, _: Stream, _: Kept) -> Result<()> {
        match *self {}
    }

    pub(crate) fn make_stream_wait(&self, _: Device, _: Stream, _: Stream) -> Result<()> {
        match *self {}
    }

    pub(crate) fn finish(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn wait_before_free(&self) -> Result<(), DeviceError> {
        match *self {}
    }
}

pub(crate) fn wait(later: (Device, Stream), _: (Device, Stream)) -> Result<()> {
    no_cuda(later.0)
}
