//! Streams by their handles, and the one a thread's work goes to.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::twin;
use crate::device::Device;
use crate::error::Result;

/// A queue of work for one CUDA device, by its handle: what the driver calls `CUstream`.
///
/// The two default streams have the handles that the array API standard gives them, which the driver understands too.
///
/// # Example
/// ```
/// use dlfield::cuda::Stream;
/// assert_eq!((Stream::LEGACY.handle(), Stream::PER_THREAD.handle()), (1, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(u64);

impl Stream {
    /// The legacy default stream, which waits for all blocking streams, and they for it.
    pub const LEGACY: Stream = Stream(1);

    /// The calling thread's own default stream.
    pub const PER_THREAD: Stream = Stream(2);

    /// A stream of a device, by its handle: 1, 2, or an address that the driver gave.
    ///
    /// # Errors
    /// [`DeviceError::Stream`](crate::DeviceError::Stream) for 0, which the array API standard leaves to nobody as it might
    /// be either default stream, and for handles that the driver does not know or that are another device's;
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

    /// A stream by a handle that the driver is known to have.
    #[cfg(any(feature = "cuda", feature = "python"))]
    pub(crate) const fn of_raw(handle: u64) -> Stream {
        Stream(handle)
    }

    /// The handle: what `__dlpack__(stream=)` takes.
    pub fn handle(self) -> u64 {
        self.0
    }
}

/// A stream that was stated for a device, with the number by which it is taken back.
struct Statement {
    number: u64,
    device: Device,
    stream: Stream,
    /// Keeps the stream alive, if its owner is known.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "held for its drop"))]
    kept: Option<Kept>,
}

/// What keeps a stream alive.
pub(crate) type Kept = Arc<dyn Any + Send + Sync>;

thread_local! {
    /// The newest last.
    static CURRENT: RefCell<Vec<Statement>> = const { RefCell::new(Vec::new()) };
}

/// Of the next statement, of whatever thread: what another thread takes back is nobody else's.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The stream to which the calling thread's work for a device goes, unless another is stated.
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// assert_eq!(cuda::current_stream(Device::cuda(0)), cuda::Stream::LEGACY);
/// ```
pub fn current_stream(device: Device) -> Stream {
    let device = device.cuda_ordinal();
    let stated = CURRENT.try_with(|stated| {
        let stated = stated.borrow();
        stated.iter().rev().find(|one| one.device.cuda_ordinal() == device).map(|one| one.stream)
    });
    // A thread that is about to end states nothing any more.
    stated.ok().flatten().unwrap_or(Stream::LEGACY)
}

/// States another current stream of a device in this thread; returns the number to take that back with.
pub(crate) fn state(device: Device, stream: Stream, kept: Option<Kept>) -> u64 {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    CURRENT.with_borrow_mut(|stated| stated.push(Statement { number, device, stream, kept }));
    number
}

/// Takes back what this thread has stated.
pub(crate) fn pop_stream(number: u64) {
    let place = |stated: &Vec<Statement>| stated.iter().position(|one| one.number == number);
    // What keeps the stream may run anybody's code when it goes, which may ask for the current stream.
    let taken = CURRENT.with_borrow_mut(|stated| place(stated).map(|place| stated.remove(place)));
    drop(taken);
}

/// What keeps a stream alive that this thread has stated, if its owner is known.
#[cfg(feature = "cuda")]
pub(super) fn kept(device: Device, stream: Stream) -> Option<Kept> {
    let device = device.cuda_ordinal();
    let found = CURRENT.try_with(|stated| {
        let stated = stated.borrow();
        let mut meant = stated.iter().filter(|one| one.device.cuda_ordinal() == device && one.stream == stream);
        meant.find_map(|one| one.kept.clone())
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
    with_kept_stream(device, stream, None, work)
}

/// As [`with_stream`]; memory that the stream is told of meanwhile keeps it.
pub(crate) fn with_kept_stream<R>(device: Device, stream: Stream, kept: Option<Kept>, work: impl FnOnce() -> R) -> R {
    /// Takes the statement back, also after a panic.
    struct Stated(u64);
    impl Drop for Stated {
        fn drop(&mut self) {
            pop_stream(self.0);
        }
    }
    let _stated = Stated(state(device, stream, kept));
    work()
}
