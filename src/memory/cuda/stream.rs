//! Streams by their handles.

use std::marker::PhantomData;

use super::twin;
use crate::device::Device;
use crate::error::Result;

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
    /// [`DeviceError::Stream`](crate::DeviceError::Stream) for 0, which the array API standard disallows as it might mean
    /// either default stream; [`DeviceError::StreamElsewhere`](crate::DeviceError::StreamElsewhere) for a stream of another
    /// device; [`DeviceError::NoCuda`](crate::DeviceError::NoCuda), [`DeviceError::Driver`](crate::DeviceError::Driver).
    ///
    /// # Safety
    /// - The stream exists, and is not destroyed during `'stream`.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Device, cuda::Stream};
    /// // SAFETY: 0 is rejected before the driver is asked.
    /// let rejected = unsafe { Stream::borrow_raw(Device::cuda(0), 0) }.unwrap_err();
    /// assert!(rejected.to_string().starts_with("stream: 0"));
    /// ```
    #[allow(unsafe_code, reason = "the driver crashes on a handle of a destroyed stream")]
    pub unsafe fn borrow_raw(device: Device, handle: u64) -> Result<Stream<'stream>> {
        let stream = Stream::of_handle(handle);
        twin::check_stream(device, stream)?;
        Ok(stream)
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
