//! Streams by their handles, and the current stream of each thread.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::twin;
use crate::device::Device;
use crate::error::Result;

/// A stream of one CUDA device, by its handle: the driver's `CUstream`.
///
/// The two default streams have the handles of the array API standard, which the driver understands too.
///
/// # Example
/// ```
/// use dlfield::cuda::Stream;
/// assert_eq!((Stream::LEGACY.handle(), Stream::PER_THREAD.handle()), (1, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(u64);

impl Stream {
    /// The legacy default stream: it waits for all blocking streams, and they wait for it.
    pub const LEGACY: Stream = Stream(1);

    /// The calling thread's own default stream.
    pub const PER_THREAD: Stream = Stream(2);

    /// Returns a stream of a device by its handle: 1, 2, or an address from the driver.
    ///
    /// # Errors
    /// [`DeviceError::Stream`](crate::DeviceError::Stream) for 0, which the array API standard disallows as it might mean
    /// either default stream, and for handles that the driver does not know;
    /// [`DeviceError::StreamElsewhere`](crate::DeviceError::StreamElsewhere) for a stream of another device;
    /// [`DeviceError::NoCuda`](crate::DeviceError::NoCuda).
    ///
    /// # Example
    /// ```
    /// use dlfield::{Device, cuda::Stream};
    /// let refused = Stream::new(Device::cuda(0), 0).unwrap_err();
    /// assert!(refused.to_string().starts_with("stream: 0"));
    /// ```
    pub fn new(device: Device, handle: u64) -> Result<Stream> {
        let stream = Stream(handle);
        twin::check_stream(device, stream)?;
        Ok(stream)
    }

    /// Wraps a handle that the driver is known to have.
    #[cfg(any(feature = "cuda-any", feature = "python"))]
    pub(crate) const fn of_raw(handle: u64) -> Stream {
        Stream(handle)
    }

    /// Returns the handle, as `__dlpack__(stream=)` takes it.
    ///
    /// # Example
    /// ```
    /// use dlfield::cuda::Stream;
    /// assert_eq!((Stream::LEGACY.handle(), Stream::PER_THREAD.handle()), (1, 2));
    /// ```
    pub fn handle(self) -> u64 {
        self.0
    }
}

/// A current stream that was set for a device, and the number that removes it.
struct CurrentStream {
    number: u64,
    device: Device,
    stream: Stream,
    /// Keeps the stream alive, if its owner is known.
    #[cfg_attr(not(feature = "cuda-any"), allow(dead_code, reason = "held for its drop"))]
    owner: Option<StreamOwner>,
}

/// What keeps a stream alive.
pub type StreamOwner = Arc<dyn Any + Send + Sync>;

thread_local! {
    /// The newest last.
    static CURRENT: RefCell<Vec<CurrentStream>> = const { RefCell::new(Vec::new()) };
}

/// Number of the next [`CurrentStream`], unique across threads: a thread can remove only its own.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns the calling thread's current stream of a device, which its work uses unless another stream is given.
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// assert_eq!(cuda::current_stream(Device::cuda(0)), cuda::Stream::LEGACY);
/// ```
pub fn current_stream(device: Device) -> Stream {
    let device = device.cuda_ordinal();
    let current = CURRENT.try_with(|streams| {
        let streams = streams.borrow();
        streams.iter().rev().find(|one| one.device.cuda_ordinal() == device).map(|one| one.stream)
    });
    // A thread that is about to end has no current stream any more.
    current.ok().flatten().unwrap_or(Stream::LEGACY)
}

/// Returns whether the calling thread has set a current stream, of any device.
#[cfg(feature = "python")]
pub(crate) fn has_current_stream() -> bool {
    CURRENT.try_with(|streams| !streams.borrow().is_empty()).unwrap_or(false)
}

/// Sets the current stream of a device in this thread; returns the number for [`pop_stream`].
pub fn push_stream(device: Device, stream: Stream, owner: Option<StreamOwner>) -> u64 {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    CURRENT.with_borrow_mut(|streams| streams.push(CurrentStream { number, device, stream, owner }));
    number
}

/// Removes a current stream that this thread has set.
pub fn pop_stream(number: u64) {
    let position = |streams: &Vec<CurrentStream>| streams.iter().position(|one| one.number == number);
    // Dropping the owner of the stream may run foreign code, which may ask for the current stream.
    let taken = CURRENT.with_borrow_mut(|streams| position(streams).map(|position| streams.remove(position)));
    drop(taken);
}

/// Returns the owner of a stream that this thread has set, if it is known.
#[cfg(feature = "cuda-any")]
pub(super) fn owner_of(device: Device, stream: Stream) -> Option<StreamOwner> {
    let device = device.cuda_ordinal();
    let found = CURRENT.try_with(|streams| {
        let streams = streams.borrow();
        let mut matching = streams.iter().filter(|one| one.device.cuda_ordinal() == device && one.stream == stream);
        matching.find_map(|one| one.owner.clone())
    });
    found.ok().flatten()
}

/// Runs `work` with another current stream of a device in this thread.
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// let inside = cuda::with_stream(Device::cuda(0), cuda::Stream::PER_THREAD, || cuda::current_stream(Device::cuda(0)));
/// assert_eq!(inside, cuda::Stream::PER_THREAD);
/// assert_eq!(cuda::current_stream(Device::cuda(0)), cuda::Stream::LEGACY);
/// ```
pub fn with_stream<R>(device: Device, stream: Stream, work: impl FnOnce() -> R) -> R {
    with_owned_stream(device, stream, None, work)
}

/// As [`with_stream`]; `owner` keeps the stream alive, also for memory that records the stream meanwhile.
pub fn with_owned_stream<R>(device: Device, stream: Stream, owner: Option<StreamOwner>, work: impl FnOnce() -> R) -> R {
    /// Removes the stream again, also after a panic.
    struct PopOnDrop(u64);
    impl Drop for PopOnDrop {
        fn drop(&mut self) {
            pop_stream(self.0);
        }
    }
    let _guard = PopOnDrop(push_stream(device, stream, owner));
    work()
}
