//! Streams that memory remembers, and the work on them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::context::own_stream;
use super::event::{Event, Work, work_of};
use super::streams::{capturing, is_capturing};
use crate::device::Device;
use crate::error::DeviceError;
use crate::memory::cuda::Stream;
use crate::memory::cuda::current::StreamOwner;

/// A stream that memory remembers, until it is released after the work on it.
#[derive(Clone, Debug)]
pub(crate) enum UsedStream {
    /// The legacy default stream of a device.
    Legacy(Device),
    /// The stream of this crate on a device, which is never captured.
    Own(Device),
    /// A stream of other code.
    Lent(Arc<LentStream>),
}

/// A stream that other code has lent, for one call or the body of [`with_stream`](crate::cuda::with_stream). When it is given back,
/// its handle is forgotten, as the driver crashes on that of a destroyed stream: an event stands for the work on it.
#[derive(Debug)]
pub(crate) struct LentStream {
    device: Device,
    /// Whose default stream it is, if it is the per-thread one: another stream in every thread under the same handle.
    thread: Option<ThreadId>,
    /// Keeps the stream alive. It is not given back then, but lent until this is dropped.
    owner: Option<StreamOwner>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// The handle.
    Lent(u64),
    /// The end of its work; `None` if that could not be recorded, as during a capture. Then the legacy stream stands for it, which
    /// waits for blocking streams.
    GivenBack(Option<Arc<Event>>),
}

impl LentStream {
    /// Borrows a stream until [`LentStream::give_back`]; with an owner for as long as the result lives.
    fn new(device: Device, stream: Stream<'_>, owner: Option<StreamOwner>) -> Arc<LentStream> {
        let thread = (stream == Stream::PER_THREAD).then(|| thread::current().id());
        Arc::new(LentStream { device, thread, owner, state: Mutex::new(State::Lent(stream.handle())) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an event in place of the handle, which is not used any more.
    fn give_back(self: &Arc<LentStream>) {
        if self.owner.is_some() {
            return;
        }
        let mut state = self.state();
        if let State::Lent(handle) = *state {
            // Nobody waits for an event that no memory remembers.
            let event = match (Arc::strong_count(self) > 1).then(|| self.work_of(handle)) {
                Some(Ok(Work::Running(event))) => Some(event),
                _ => None,
            };
            *state = State::GivenBack(event);
        }
    }

    /// Returns the stream by its name in this thread. Another thread's default stream has none here: the legacy stream replaces
    /// it, which waits for it as for all blocking streams.
    fn here(&self, handle: u64) -> Stream<'_> {
        let has_name = self.thread.is_none_or(|thread| thread == thread::current().id());
        if has_name { Stream::of_handle(handle) } else { Stream::LEGACY }
    }

    fn work_of(&self, handle: u64) -> Result<Work, DeviceError> {
        work_of(self.device, self.here(handle))
    }

    fn handle(&self) -> Option<u64> {
        if let State::Lent(handle) = *self.state() { Some(handle) } else { None }
    }
}

impl UsedStream {
    /// Returns a stream until [`UsedStream::give_back`], or as long as its owner lives, if that is known.
    pub(in crate::memory::cuda) fn of(device: Device, stream: Stream<'_>, owner: Option<StreamOwner>) -> UsedStream {
        if stream == Stream::LEGACY {
            return UsedStream::Legacy(device);
        }
        UsedStream::Lent(LentStream::new(device, stream, owner))
    }

    /// Runs `work` with a stream that is lent for this call, and longer if its owner is known.
    pub(crate) fn lent<R>(
        device: Device,
        stream: Stream<'_>,
        owner: Option<StreamOwner>,
        work: impl FnOnce(&UsedStream) -> R,
    ) -> R {
        /// Gives the stream back, also after a panic.
        struct GiveBackOnDrop(UsedStream);
        impl Drop for GiveBackOnDrop {
            fn drop(&mut self) {
                self.0.give_back();
            }
        }
        work(&GiveBackOnDrop(UsedStream::of(device, stream, owner)).0)
    }

    /// As [`LentStream::give_back`]. The streams that are never destroyed stay.
    pub(in crate::memory::cuda) fn give_back(&self) {
        if let UsedStream::Lent(lent) = self {
            lent.give_back();
        }
    }

    /// Forgets the handle without asking the driver, as the stream may be gone.
    pub(in crate::memory::cuda) fn forget(&self) {
        if let UsedStream::Lent(lent) = self
            && lent.owner.is_none()
            && let state @ State::Lent(_) = &mut *lent.state()
        {
            *state = State::GivenBack(None);
        }
    }

    /// Returns the stream as long as it is lent, and the legacy default stream after that.
    pub(crate) fn stream(&self) -> Stream<'_> {
        match self {
            UsedStream::Lent(lent) => lent.handle().map_or(Stream::LEGACY, |handle| lent.here(handle)),
            _ => Stream::LEGACY,
        }
    }

    pub(in crate::memory::cuda) fn device(&self) -> Device {
        match self {
            UsedStream::Legacy(device) | UsedStream::Own(device) => *device,
            UsedStream::Lent(lent) => lent.device,
        }
    }

    /// Returns the stream in whose order memory is freed that this one has allocated.
    pub(super) fn freeing_stream(&self) -> Result<Stream<'static>, DeviceError> {
        if let UsedStream::Legacy(_) = self { Ok(Stream::LEGACY) } else { own_stream(self.device()) }
    }

    /// Returns whether it is kept alive by its owner.
    pub(super) fn is_owned(&self) -> bool {
        matches!(self, UsedStream::Lent(lent) if lent.owner.is_some())
    }

    /// Returns whether this is a stream that exists now. Handles are compared while both streams do.
    pub(crate) fn is(&self, device: Device, stream: Stream<'_>) -> bool {
        let is_there = self.device().cuda_ordinal() == device.cuda_ordinal();
        is_there
            && match self {
                UsedStream::Legacy(_) => stream == Stream::LEGACY,
                UsedStream::Own(device) => own_stream(*device).is_ok_and(|own| own == stream),
                UsedStream::Lent(lent) => lent.handle().is_some_and(|handle| lent.here(handle) == stream),
            }
    }

    /// Returns whether both stand for the same work, now and later.
    pub(super) fn is_same(&self, other: &UsedStream) -> bool {
        match (self, other) {
            (UsedStream::Lent(one), UsedStream::Lent(other)) => {
                let is_kept = one.owner.is_some() && other.owner.is_some();
                let is_there = one.device == other.device && one.thread == other.thread;
                Arc::ptr_eq(one, other) || is_kept && is_there && one.handle() == other.handle()
            }
            (UsedStream::Legacy(one), UsedStream::Legacy(other)) | (UsedStream::Own(one), UsedStream::Own(other)) => {
                one.cuda_ordinal() == other.cuda_ordinal()
            }
            _ => false,
        }
    }

    /// Returns the work that the stream got until now.
    pub(super) fn work(&self) -> Result<Work, DeviceError> {
        match self {
            UsedStream::Legacy(device) => work_of(*device, Stream::LEGACY),
            UsedStream::Own(device) => work_of(*device, own_stream(*device)?),
            UsedStream::Lent(lent) => match &*lent.state() {
                State::Lent(handle) => lent.work_of(*handle),
                State::GivenBack(Some(event)) => Ok(Work::Running(event.clone())),
                State::GivenBack(None) => work_of(lent.device, Stream::LEGACY),
            },
        }
    }

    /// Returns whether the stream is lent, and its work is captured into a graph.
    pub(super) fn is_captured(&self) -> Result<bool, DeviceError> {
        match self {
            UsedStream::Lent(lent) => match &*lent.state() {
                State::Lent(handle) => is_capturing(lent.device, lent.here(*handle)),
                State::GivenBack(_) => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// Returns whether the stream exists now.
    pub(super) fn is_lent(&self) -> bool {
        !matches!(self, UsedStream::Lent(lent) if lent.handle().is_none())
    }

    /// Returns the error that the stream is captured into a graph.
    pub(super) fn captured(&self) -> DeviceError {
        capturing(self.device(), self.stream())
    }
}
