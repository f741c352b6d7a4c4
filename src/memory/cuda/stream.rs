//! Streams by their handles.

use std::marker::PhantomData;

use super::twin;
use crate::device::Device;
use crate::error::{DeviceError, DeviceErrorKind, Result};

/// A stream of one CUDA device, by its handle (the driver's `CUstream`), for as long as it is borrowed.
///
/// The handle of a destroyed stream crashes the driver, so a stream cannot be kept beyond `'stream`, like a
/// [`BorrowedFd`](std::os::fd::BorrowedFd). The two default streams are never destroyed. They have the handles of the array API
/// standard, which the driver understands too.
///
/// # Example
/// ```
/// use dlfield::cuda::Stream;
/// assert_eq!((Stream::LEGACY.handle(), Stream::PER_THREAD.handle()), (1, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream<'stream> {
    handle: u64,
    borrowed: PhantomData<&'stream ()>,
}

impl Stream<'static> {
    /// The legacy default stream: it waits for all blocking streams, and they wait for it.
    pub const LEGACY: Stream<'static> = Stream::of_handle(1);

    /// The calling thread's own default stream.
    pub const PER_THREAD: Stream<'static> = Stream::of_handle(2);
}

impl<'stream> Stream<'stream> {
    /// Borrows a stream of a device by its handle: 1, 2, or an address from the driver.
    ///
    /// # Errors
    /// [`DeviceError`] for 0, which the array API standard disallows as it might mean either default stream, and for a stream of
    /// another device; if the device cannot be used, or the driver fails.
    ///
    /// # Safety
    /// - The stream exists, and is not destroyed during `'stream`.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Device, cuda::Stream};
    /// // SAFETY: 0 is rejected before the driver is asked.
    /// let rejected = unsafe { Stream::borrow_raw(Device::cuda(0), 0) }.unwrap_err();
    /// assert!(rejected.to_string().ends_with("got 0, which may mean either default stream"));
    /// ```
    #[allow(unsafe_code, reason = "the driver crashes on a handle of a destroyed stream")]
    pub unsafe fn borrow_raw(device: Device, handle: u64) -> Result<Stream<'stream>> {
        let stream = Stream::of_handle(handle);
        let found = twin::ordinal_of(device, stream)?;
        if found == device.cuda_ordinal() {
            return Ok(stream);
        }
        let got = format_args!("{handle} of cuda:{found}");
        Err(DeviceError::new("stream", &format_args!("a stream of {device}"), &got)
            .with_kind(DeviceErrorKind::Stream)
            .into())
    }

    /// The stream with this handle, unchecked: it has to exist during `'stream`.
    pub(super) const fn of_handle(handle: u64) -> Stream<'stream> {
        Stream { handle, borrowed: PhantomData }
    }

    /// Returns the handle, as `__dlpack__(stream=)` takes it.
    ///
    /// # Example
    /// ```
    /// use dlfield::cuda::Stream;
    /// assert_eq!((Stream::LEGACY.handle(), Stream::PER_THREAD.handle()), (1, 2));
    /// ```
    pub fn handle(self) -> u64 {
        self.handle
    }
}

#[cfg(feature = "cuda")]
impl<'stream> From<&'stream cudarc::driver::CudaStream> for Stream<'stream> {
    fn from(stream: &'stream cudarc::driver::CudaStream) -> Stream<'stream> {
        // `cudarc` calls the legacy default stream 0.
        Stream::of_handle((stream.cu_stream().addr() as u64).max(1))
    }
}

/// Returns the device that a stream belongs to; `default` for a default stream. The stream exists.
///
/// # Errors
/// As for [`Stream::borrow_raw`], but for a stream of another device.
#[cfg(feature = "python")]
pub(crate) fn device_of_stream(default: Device, handle: u64) -> Result<Device> {
    let ordinal = twin::ordinal_of(default, Stream::of_handle(handle))?;
    Ok(Device::cuda(u16::try_from(ordinal).unwrap_or(0)))
}
