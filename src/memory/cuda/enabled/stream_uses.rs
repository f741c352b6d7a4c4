//! The streams that use one piece of memory, and the waits before it is freed.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::context::{context, enter};
use super::queue::{self, Queue, State};
use crate::device::{Device, DeviceError};
use crate::error::Result;
use crate::memory::cuda::Stream;
use crate::memory::cuda::stream::{StreamOwner, owner_of};

/// The streams that use some memory: what PyTorch's allocator records with `record_stream`.
#[derive(Debug)]
#[doc(hidden)]
pub struct StreamUses {
    /// The stream in whose order the memory is freed.
    first: Queue,
    /// Whether the host frees the memory and therefore waits for the streams itself.
    freed_by_host: bool,
    streams: Mutex<Streams>,
}

#[derive(Debug, Default)]
struct Streams {
    recorded: SmallVec<[Use; 2]>,
    /// Destroyed streams whose handle belongs to a new stream now, one for each device: waiting for the device covers them all.
    destroyed: Vec<Use>,
}

/// A stream that was recorded, and may still use the memory.
#[derive(Debug)]
struct Use {
    queue: Queue,
    /// Whether its work is ordered after the earlier work of the first stream.
    ordered: bool,
    /// Keeps the stream alive, if its owner is known.
    owner: Option<StreamOwner>,
}

impl Drop for StreamUses {
    fn drop(&mut self) {
        let Streams { recorded, destroyed } = self.streams.get_mut().unwrap_or_else(PoisonError::into_inner);
        if recorded.iter().chain(&*destroyed).any(|used| used.owner.is_some()) {
            // Destroying a stream makes its device current.
            let _entered = enter(self.first.device());
            recorded.clear();
            destroyed.clear();
        }
    }
}

impl StreamUses {
    /// The uses of memory that is freed in the order of `stream`, its first user.
    pub(crate) fn new(device: Device, stream: Stream) -> StreamUses {
        StreamUses::at(device, Queue::of(device, stream))
    }

    /// The same for a stream as its own thread named it.
    pub(super) fn at(device: Device, first: Queue) -> StreamUses {
        let owner = owner_of(first.device(), first.stream());
        let recorded = owner.map(|owner| Use { queue: first, ordered: true, owner: Some(owner) }).into_iter().collect();
        let streams = Streams { recorded, destroyed: Vec::new() };
        StreamUses { first, freed_by_host: !device.is_cuda(), streams: Mutex::new(streams) }
    }

    /// The uses of imported memory, which `stream` uses first: it is released after the work of that stream.
    ///
    /// # Errors
    /// [`DeviceError::NoCuda`], [`DeviceError::Driver`].
    pub(crate) fn of_import(device: Device, stream: Stream) -> Result<Box<StreamUses>> {
        context(device)?;
        Ok(Box::new(StreamUses::new(device, stream)))
    }

    /// Makes the host wait for all work before the memory is released: its producer orders nothing by streams.
    #[cfg(feature = "python")]
    pub(crate) fn set_freed_by_host(&mut self) {
        self.freed_by_host = true;
    }

    /// Records a stream that is about to use the memory. Its work is ordered once after the earlier work of the first stream;
    /// later dependencies between streams are up to the code that launches the work.
    ///
    /// # Errors
    /// [`DeviceError::Capturing`] if a graph capture forbids that order, [`DeviceError::Driver`].
    #[doc(hidden)]
    pub fn record_stream(&self, device: Device, stream: Stream) -> Result<()> {
        self.record(device, stream, None)
    }

    /// As [`StreamUses::record_stream`]; `owner` keeps the stream alive until its work on the memory is done.
    ///
    /// # Errors
    /// As for [`StreamUses::record_stream`].
    #[doc(hidden)]
    pub fn record_owned_stream(&self, device: Device, stream: Stream, owner: StreamOwner) -> Result<()> {
        self.record(device, stream, Some(owner))
    }

    fn record(&self, device: Device, stream: Stream, owner: Option<StreamOwner>) -> Result<()> {
        // If `owner` is not needed, it is dropped after the lock is released.
        let mut owner = owner.or_else(|| owner_of(device, stream));
        let queue = Queue::of(device, stream);
        if queue == self.first && owner.is_none() {
            return Ok(());
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.note_reused_handle(queue);
        let recorded = &mut streams.recorded;
        let place = recorded.iter().position(|used| used.queue == queue).unwrap_or(recorded.len());
        if place == recorded.len() {
            recorded.push(Use { queue, ordered: false, owner: None });
        }
        if recorded[place].owner.is_none() {
            recorded[place].owner = owner.take();
        }
        if !recorded[place].ordered {
            // Under the lock: no other thread may see the stream as ordered before it is.
            self.order_after_first(queue)?;
            recorded[place].ordered = true;
        }
        Ok(())
    }

    /// Makes the next work of a stream wait for the earlier work of the first one.
    fn order_after_first(&self, queue: Queue) -> Result<()> {
        if !self.first.has_lost_handle() {
            return queue::order(queue, self.first);
        }
        // No stream can wait for a destroyed one: the host waits, which graph capture does not allow.
        match queue.state() {
            State::Capturing => Err(queue.captured().into()),
            _ => Ok(self.first.finish_all()?),
        }
    }

    /// Makes the next work of `to`, a consumer's stream, wait for the earlier work of `from`, and records both.
    ///
    /// # Errors
    /// As for [`StreamUses::record_stream`].
    #[doc(hidden)]
    pub fn make_stream_wait(&self, device: Device, from: Stream, to: Stream) -> Result<()> {
        self.record_stream(device, from)?;
        self.record_stream(device, to)?;
        queue::order(Queue::of(device, to), Queue::of(device, from))
    }

    /// Makes the next work of `stream` wait for the first stream, which no longer orders the free.
    ///
    /// # Errors
    /// As for [`StreamUses::record_stream`].
    pub(crate) fn precede(&self, device: Device, stream: Stream) -> Result<()> {
        self.order_after_first(Queue::of(device, stream))
    }

    /// Waits for the work of all recorded streams, so that the host may use the memory.
    ///
    /// # Errors
    /// [`DeviceError::Capturing`] during graph capture, [`DeviceError::Driver`].
    pub(crate) fn finish(&self) -> Result<()> {
        for queue in self.queues() {
            if queue.state() == State::Capturing {
                return Err(queue.captured().into());
            }
            queue.synchronize_stream_or_device()?;
        }
        Ok(())
    }

    /// Makes the first stream wait for all recorded streams, or the host if it frees the memory. Then the memory may be freed.
    ///
    /// # Errors
    /// [`DeviceError::Capturing`] while one of them is captured into a graph, [`DeviceError::Driver`]: the memory must not be
    /// freed yet.
    pub(crate) fn wait_before_free(&self) -> Result<(), DeviceError> {
        let queues = self.queues();
        let (mut destroyed, mut by_host) = (SmallVec::<[Queue; 2]>::new(), self.freed_by_host);
        for queue in &queues {
            match queue.state() {
                State::Working => {}
                State::Capturing => return Err(queue.captured()),
                State::Gone => {
                    destroyed.push(*queue);
                    by_host |= *queue == self.first;
                }
            }
        }
        // No stream can wait for a destroyed one, but its work may still be running: the host waits for its device.
        let mut done = SmallVec::<[Queue; 2]>::new();
        for queue in destroyed {
            if !done.iter().any(|done| done.is_on_device_of(&queue)) {
                queue.finish_all()?;
                done.push(queue);
            }
        }
        for queue in queues {
            if done.iter().any(|done| done.is_on_device_of(&queue)) {
                continue;
            }
            if by_host {
                queue.synchronize_stream_or_device()?;
            } else if queue::order(self.first, queue).is_err() {
                queue.finish_all()?;
            }
        }
        Ok(())
    }

    /// Returns all recorded streams, the first one last.
    fn queues(&self) -> SmallVec<[Queue; 3]> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = streams.recorded.iter().chain(&streams.destroyed).map(|used| used.queue);
        recorded.filter(|queue| *queue != self.first).chain([self.first]).collect()
    }
}

impl Streams {
    /// Marks as destroyed the recorded stream, if any, that had the handle of this one before.
    fn note_reused_handle(&mut self, queue: Queue) {
        let had_its_handle = |used: &Use| used.queue.has_handle_of(&queue) && used.queue != queue;
        let Some(place) = self.recorded.iter().position(had_its_handle) else { return };
        let replaced = self.recorded.remove(place);
        let is_known = self.destroyed.iter().any(|other| other.queue.is_on_device_of(&replaced.queue));
        // Dropping what keeps a stream alive may run foreign code: it is dropped with the memory.
        if !is_known || replaced.owner.is_some() {
            self.destroyed.push(replaced);
        }
    }
}
