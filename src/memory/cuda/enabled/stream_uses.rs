//! The streams that use one piece of memory, and the waits before it is freed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::CudaStream;
use smallvec::SmallVec;

use super::context::{enter, prepare};
use super::event::Work;
use super::lent::UsedStream;
use super::order::order;
use super::streams::error_if_capturing;
use crate::device::Device;
use crate::error::{DeviceError, Result};
use crate::memory::cuda::current::StreamOwner;
use crate::memory::cuda::{Stream, current_stream};

/// How many streams are recorded at most. Of more, the oldest counts as done with the memory, once another one waits for its work.
const MOST: usize = 8;

/// The streams that use some memory: what PyTorch's allocator records with `record_stream`.
#[derive(Debug)]
pub(crate) struct StreamUses {
    /// The stream that allocated the memory, or on which its producer's work runs.
    first: UsedStream,
    freed_by: FreedBy,
    others: Mutex<SmallVec<[UsedStream; 2]>>,
    /// Whether other libraries were given the memory for streams of theirs.
    handed_out: AtomicBool,
}

/// What frees the memory, after the work of the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FreedBy {
    /// This crate, in the order of the legacy stream if that allocated it, else of [`own_stream`].
    Stream,
    /// The host, or a producer that orders nothing by streams.
    Host,
    /// A producer, in the order of the first stream.
    Producer,
}

impl Drop for StreamUses {
    fn drop(&mut self) {
        let others = self.others.get_mut().unwrap_or_else(PoisonError::into_inner);
        if others.iter().any(UsedStream::is_owned) || self.first.is_owned() {
            // Destroying a stream makes its device current.
            let _entered = enter(self.first.device());
            others.clear();
            self.first = UsedStream::Own(self.first.device());
        }
    }
}

impl StreamUses {
    fn new(first: UsedStream, freed_by: FreedBy) -> Box<StreamUses> {
        Box::new(StreamUses { first, freed_by, others: Mutex::default(), handed_out: AtomicBool::new(false) })
    }

    /// The uses of memory of this crate on a device, that `first` allocated.
    pub(super) fn of_block(device: Device, first: UsedStream) -> Box<StreamUses> {
        StreamUses::new(first, if device.is_cuda() { FreedBy::Stream } else { FreedBy::Host })
    }

    /// The uses of a slice of `cudarc`, which is freed in the order of its stream.
    pub(crate) fn of_slice(device: Device, stream: &Arc<CudaStream>) -> Box<StreamUses> {
        let first = UsedStream::of(device, (&**stream).into(), Some(stream.clone()));
        StreamUses::new(first, FreedBy::Producer)
    }

    /// The uses of imported memory, on which the work of `first` may still run. It is released after its last use by the host,
    /// unless its producer releases it in the order of `first`.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub(crate) fn of_import(device: Device, first: &UsedStream, by_producer: bool) -> Result<Box<StreamUses>> {
        prepare(device, current_stream(device).stream())?;
        let freed_by = if by_producer && device.is_cuda() { FreedBy::Producer } else { FreedBy::Host };
        Ok(StreamUses::new(first.clone(), freed_by))
    }

    /// Records a stream that is about to use the memory. Its work is ordered after that of the streams that were given back, and
    /// when it is recorded first, after that of the first stream. What streams do at the same time is up to the code that
    /// launches it.
    ///
    /// # Errors
    /// [`DeviceError`] if a graph capture forbids that order, or the driver fails.
    pub(crate) fn record(&self, used: &UsedStream) -> Result<()> {
        let later = (used.device(), used.stream());
        let is_first = self.first.is_same(used);
        // Locked until the end: no other thread may see the stream as ordered before it is.
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        // Chosen once: a stream may be given back meanwhile.
        let surplus = others.len().saturating_sub(MOST);
        let is_earlier = |(place, other): &(usize, &UsedStream)| *place < surplus || !other.is_lent();
        let earlier: SmallVec<[UsedStream; 2]> =
            others.iter().enumerate().filter(is_earlier).map(|(_, other)| other.clone()).collect();
        earlier.iter().filter(|other| !other.is_same(used)).try_for_each(|other| order(later, other))?;
        let is_known = is_first || others.iter().any(|other| other.is_same(used));
        if !is_known {
            order(later, &self.first)?;
        }
        // The work of this stream is done after that of those.
        others.retain(|other| other.is_same(used) || !earlier.iter().any(|earlier| earlier.is_same(other)));
        if !is_known {
            others.push(used.clone());
        }
        Ok(())
    }

    /// Notes that another library has the memory, for work that is not known.
    pub(crate) fn hand_out(&self) {
        self.handed_out.store(true, Ordering::Relaxed);
    }

    /// As [`StreamUses::record`], for a stream that its owner keeps alive until its work on the memory is done.
    ///
    /// # Errors
    /// As for [`StreamUses::record`].
    pub(crate) fn record_owned(&self, device: Device, stream: Stream<'_>, owner: StreamOwner) -> Result<()> {
        UsedStream::lent(device, stream, Some(owner), |used| self.record(used))
    }

    /// Makes the next work of a consumer's stream `to` wait for the earlier work of all recorded streams and of the thread's
    /// current one, which is recorded too. What the consumer's stream does with the memory later is waited for if its owner is known; else it has
    /// to be done when the consumer releases the memory.
    ///
    /// # Errors
    /// As for [`StreamUses::record`].
    pub(crate) fn make_stream_wait(&self, device: Device, to: Stream<'_>, owner: Option<StreamOwner>) -> Result<()> {
        self.hand_out();
        self.record(current_stream(device).used())?;
        for used in self.all() {
            order((device, to), &used)?;
        }
        owner.map_or(Ok(()), |owner| self.record_owned(device, to, owner))
    }

    /// Makes the next work of `stream`, which will order the free, wait for that of all others.
    ///
    /// # Errors
    /// As for [`StreamUses::record`].
    pub(crate) fn precede(&self, device: Device, stream: Stream<'_>) -> Result<()> {
        let (all, consumers) = (self.all(), self.of_consumers());
        all.iter().chain(&consumers).try_for_each(|used| Ok(order((device, stream), used)?))
    }

    /// Waits for the work of all recorded streams, so that the host may use the memory.
    ///
    /// # Errors
    /// [`DeviceError`] during graph capture, or if the driver fails.
    pub(crate) fn finish(&self) -> Result<(), DeviceError> {
        self.all().iter().try_for_each(finish)?;
        self.of_consumers().iter().try_for_each(finish)
    }

    /// Orders the free after the work of all recorded streams. Then the memory may be freed.
    ///
    /// # Errors
    /// [`DeviceError`] while one of them is captured into a graph, or if the driver fails: the memory must not be
    /// freed yet.
    pub(crate) fn wait_before_free(&self) -> Result<(), DeviceError> {
        if self.first.is_captured()? {
            return Err(self.first.captured());
        }
        let device = self.first.device();
        let freed_in = match self.freed_by {
            FreedBy::Host => return self.finish(),
            FreedBy::Stream => self.first.freeing_stream()?,
            FreedBy::Producer if self.first.is_owned() => self.first.stream(),
            FreedBy::Producer if matches!(self.first, UsedStream::Legacy(_)) => Stream::LEGACY,
            // The producer's stream may be gone.
            FreedBy::Producer => {
                return self.others().iter().chain(&self.of_consumers()).try_for_each(finish);
            }
        };
        let mut consumers = self.of_consumers();
        if self.freed_by == FreedBy::Producer && consumers.is_none() && self.others().is_empty() {
            // Only the stream in which the producer frees the memory has used it.
            return Ok(());
        }
        if freed_in == Stream::LEGACY {
            // It waits for blocking streams, also for those of consumers.
            error_if_capturing(device, freed_in)?;
            consumers = None;
        }
        // Who frees the memory waits for the first stream.
        self.others().iter().chain(&consumers).try_for_each(|used| order((device, freed_in), used))
    }

    /// Returns the recorded streams but the first one.
    fn others(&self) -> SmallVec<[UsedStream; 2]> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns all recorded streams.
    fn all(&self) -> SmallVec<[UsedStream; 3]> {
        self.others().into_iter().chain([self.first.clone()]).collect()
    }

    /// Returns what waits for the blocking streams of consumers: the legacy stream, if there are consumers.
    fn of_consumers(&self) -> Option<UsedStream> {
        self.handed_out.load(Ordering::Relaxed).then(|| UsedStream::Legacy(self.first.device()))
    }
}

/// Waits for the work of a stream.
fn finish(used: &UsedStream) -> Result<(), DeviceError> {
    match used.work()? {
        Work::Running(event) => event.finish(),
        Work::Captured(_) => Err(used.captured()),
    }
}
