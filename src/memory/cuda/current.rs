//! The current stream of each thread.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::stream::Stream;
use super::twin::UsedStream;
use crate::device::Device;

/// What keeps a stream alive.
pub type StreamOwner = Arc<dyn Any + Send + Sync>;

/// A current stream that was set for a device, and the number that removes it.
struct SetStream {
    number: u64,
    used: UsedStream,
}

impl Drop for SetStream {
    fn drop(&mut self) {
        // If it was not given back, its thread has ended in the body, and the stream may be gone.
        self.used.forget();
    }
}

thread_local! {
    /// The newest last.
    static CURRENT: RefCell<Vec<SetStream>> = const { RefCell::new(Vec::new()) };
}

/// Number of the next [`SetStream`], unique across threads: a thread can remove only its own.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The stream that a thread's work on a device uses: see [`current_stream`]. It belongs to the thread.
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// assert_eq!(cuda::current_stream(Device::cuda(0)).handle(), 1);
/// ```
#[derive(Debug)]
pub struct CurrentStream {
    used: UsedStream,
    /// The handle of the per-thread default stream is another stream in every thread.
    thread: PhantomData<*const ()>,
}

impl CurrentStream {
    /// Returns the stream's handle; after the body of [`with_stream`] that has set it, that of the legacy default stream.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Device, cuda};
    /// assert_eq!(cuda::current_stream(Device::cuda(0)).handle(), cuda::Stream::LEGACY.handle());
    /// ```
    pub fn handle(&self) -> u64 {
        self.stream().handle()
    }

    /// Returns the stream, for use in this call.
    pub(crate) fn stream(&self) -> Stream<'_> {
        self.used.stream()
    }

    /// Returns the stream as memory remembers it.
    pub(crate) fn used(&self) -> &UsedStream {
        &self.used
    }
}

/// Returns the calling thread's current stream of a device, which its work uses unless another stream is given.
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// assert_eq!(cuda::current_stream(Device::cuda(0)).handle(), 1);
/// ```
pub fn current_stream(device: Device) -> CurrentStream {
    let ordinal = device.cuda_ordinal();
    let current = CURRENT.try_with(|streams| {
        let streams = streams.borrow();
        streams.iter().rev().find(|one| one.used.device().cuda_ordinal() == ordinal).map(|one| one.used.clone())
    });
    // A thread that is about to end has no current stream any more.
    let used = current.ok().flatten().unwrap_or_else(|| UsedStream::of(device, Stream::LEGACY, None));
    CurrentStream { used, thread: PhantomData }
}

/// Sets the current stream of a device in this thread; returns the number for [`pop_stream`].
///
/// # Safety
/// - The stream exists until then, or as long as its owner.
#[allow(unsafe_code, reason = "the stream is used beyond the call")]
pub unsafe fn push_stream(device: Device, stream: Stream<'_>, owner: Option<StreamOwner>) -> u64 {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let used = UsedStream::of(device, stream, owner);
    CURRENT.with_borrow_mut(|streams| streams.push(SetStream { number, used }));
    number
}

/// Removes a current stream that this thread has set. Memory that remembers it waits for its work until now.
pub fn pop_stream(number: u64) {
    let position = |streams: &Vec<SetStream>| streams.iter().position(|one| one.number == number);
    // Dropping the owner of the stream may run code of other libraries, which may ask for the current stream.
    let taken = CURRENT.with_borrow_mut(|streams| position(streams).map(|position| streams.remove(position)));
    taken.iter().for_each(|taken| taken.used.give_back());
}

/// Runs `work` with another current stream of a device in this thread.
///
/// # Example
/// ```
/// use dlfield::{Device, cuda};
/// let inside = || cuda::current_stream(Device::cuda(0)).handle();
/// assert_eq!(cuda::with_stream(Device::cuda(0), cuda::Stream::PER_THREAD, inside), 2);
/// assert_eq!(inside(), 1);
/// ```
pub fn with_stream<R>(device: Device, stream: Stream<'_>, work: impl FnOnce() -> R) -> R {
    with_owned_stream(device, stream, None, work)
}

/// As [`with_stream`]; `owner` keeps the stream alive, also for memory that remembers it.
pub(crate) fn with_owned_stream<R>(
    device: Device,
    stream: Stream<'_>,
    owner: Option<StreamOwner>,
    work: impl FnOnce() -> R,
) -> R {
    /// Removes the stream again, also after a panic.
    struct PopOnDrop(u64);
    impl Drop for PopOnDrop {
        fn drop(&mut self) {
            pop_stream(self.0);
        }
    }
    // SAFETY: the stream exists until this function returns.
    #[allow(unsafe_code, reason = "as for `push_stream`")]
    let _guard = PopOnDrop(unsafe { push_stream(device, stream, owner) });
    work()
}
