//! Replaces `enabled` in builds without the feature `cuda`: the same signatures, and no CUDA.

use crate::device::{Device, stream_0, unavailable};
use crate::error::{DeviceError, Result};

use super::Stream;
use super::current::StreamOwner;
use super::ipc::Exported;

const UNAVAILABLE_REASON: &str = "dlfield was built without the feature `cuda`";

fn no_cuda<T, E: From<DeviceError>>(device: Device) -> Result<T, E> {
    Err(unavailable(device, &UNAVAILABLE_REASON).into())
}

/// Returns whether a CUDA device can be used.
pub fn is_available() -> bool {
    false
}

/// Returns why no CUDA device can be used; `None` if one can.
pub fn unavailable_reason() -> Option<String> {
    Some(UNAVAILABLE_REASON.to_owned())
}

/// Returns the number of CUDA devices.
pub fn device_count() -> i32 {
    0
}

/// Returns the driver's name of a device.
///
/// # Errors
/// [`DeviceError`].
pub fn device_name(device: Device) -> Result<String> {
    no_cuda(device)
}

/// Returns the free and the total memory of a device, in bytes.
///
/// # Errors
/// [`DeviceError`].
pub fn memory_info(device: Device) -> Result<(usize, usize)> {
    no_cuda(device)
}

/// Prepares a device.
///
/// # Errors
/// [`DeviceError`].
pub fn init(device: Device) -> Result<()> {
    no_cuda(device)
}

/// Waits until a stream has finished its work.
///
/// # Errors
/// [`DeviceError`].
pub fn synchronize(device: Device, _: Stream<'_>) -> Result<()> {
    no_cuda(device)
}

/// Returns whether a stream's work is captured into a graph instead of run.
///
/// # Errors
/// [`DeviceError`].
pub fn is_capturing(device: Device, _: Stream<'_>) -> Result<bool, DeviceError> {
    no_cuda(device)
}

pub(crate) fn error_if_capturing(device: Device, _: Stream<'_>) -> Result<(), DeviceError> {
    no_cuda(device)
}

pub(super) fn ordinal_of(device: Device, stream: Stream<'_>) -> Result<i32> {
    if stream.handle() == 0 { Err(stream_0().into()) } else { no_cuda(device) }
}

/// Returns the device of the memory at an address, according to the driver: none without a driver.
pub(crate) fn device_of_pointer(_: usize) -> Result<Option<Device>> {
    Ok(None)
}

/// No memory: none can be allocated.
#[derive(Debug)]
pub(in crate::memory) enum CudaMemory {}

impl CudaMemory {
    pub(in crate::memory) fn allocate(
        device: Device,
        _: usize,
        _: usize,
        _: crate::memory::Contents,
    ) -> Result<CudaMemory> {
        no_cuda(device)
    }

    pub(in crate::memory) fn as_ptr(&self) -> *mut u8 {
        match *self {}
    }

    pub(in crate::memory) fn allocate_exported(device: Device, _: usize, _: i32) -> Result<CudaMemory> {
        no_cuda(device)
    }

    pub(in crate::memory) fn exported(&self) -> Option<Result<Exported>> {
        match *self {}
    }

    pub(in crate::memory) fn is_alone(&self) -> bool {
        match *self {}
    }

    pub(in crate::memory) fn stream_uses(&self) -> Box<StreamUses> {
        match *self {}
    }
}

pub(super) fn device_of_uuid(_: [u8; 16]) -> Result<Option<Device>> {
    no_cuda(Device::cuda(0))
}

/// No memory of another process: none can be opened.
#[derive(Debug)]
pub enum OpenedMemory {}

impl OpenedMemory {
    pub(crate) fn open(device: Device, _: [u8; 64], _: usize, _: i32) -> Result<OpenedMemory> {
        no_cuda(device)
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        match *self {}
    }

    pub(crate) fn stream_uses(&self) -> Result<Box<StreamUses>> {
        match *self {}
    }
}

/// A stream that a thread has set. There is no work on it.
#[derive(Clone, Debug)]
pub(crate) struct UsedStream {
    device: Device,
    handle: u64,
}

impl UsedStream {
    pub(super) fn of(device: Device, stream: Stream<'_>, _: Option<StreamOwner>) -> UsedStream {
        UsedStream { device, handle: stream.handle() }
    }

    pub(crate) fn lent<R>(
        device: Device,
        stream: Stream<'_>,
        owner: Option<StreamOwner>,
        work: impl FnOnce(&UsedStream) -> R,
    ) -> R {
        work(&UsedStream::of(device, stream, owner))
    }

    pub(super) fn give_back(&self) {}

    pub(super) fn forget(&self) {}

    pub(super) fn device(&self) -> Device {
        self.device
    }

    pub(crate) fn stream(&self) -> Stream<'_> {
        Stream::of_handle(self.handle)
    }

    pub(crate) fn is(&self, device: Device, stream: Stream<'_>) -> bool {
        self.device.cuda_ordinal() == device.cuda_ordinal() && self.handle == stream.handle()
    }
}

/// No streams: there is no work.
#[derive(Debug)]
pub(crate) enum StreamUses {}

impl StreamUses {
    pub(crate) fn of_import(device: Device, _: &UsedStream, _: bool) -> Result<Box<StreamUses>> {
        no_cuda(device)
    }

    pub(crate) fn record(&self, _: &UsedStream) -> Result<()> {
        match *self {}
    }

    pub(crate) fn record_owned(&self, _: Device, _: Stream<'_>, _: StreamOwner) -> Result<()> {
        match *self {}
    }

    pub(crate) fn hand_out(&self) {
        match *self {}
    }

    pub(crate) fn make_stream_wait(&self, _: Device, _: Stream<'_>, _: Option<StreamOwner>) -> Result<()> {
        match *self {}
    }

    pub(crate) fn finish(&self) -> Result<(), DeviceError> {
        match *self {}
    }

    pub(crate) fn wait_before_free(&self) -> Result<(), DeviceError> {
        match *self {}
    }
}

pub(crate) fn wait(later: (Device, Stream<'_>), _: (Device, Stream<'_>)) -> Result<()> {
    no_cuda(later.0)
}
