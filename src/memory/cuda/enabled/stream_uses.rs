//! The streams that use one piece of memory, and the waits before it is freed.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::context::{context, enter};
use super::queue::{self, Queue, State};
use crate::device::{Device, DeviceError};
use crate::error::{Error, Result};
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
    /// How often an entry of `destroyed` came to stand for another stream, too.
    merged: u64,
    /// Whether the first stream was destroyed and the host has waited for its work since.
    first_finished: bool,
}

/// A stream that was recorded, and may still use the memory.
#[derive(Debug)]
struct Use {
    queue: Queue,
    /// Whether its work is ordered after the earlier work of the first stream.
    ordered: bool,
    /// Whether it was destroyed and the host has waited for its work since.
    finished: bool,
    /// Keeps the stream alive, if its owner is known.
    owner: Option<StreamOwner>,
}

impl Drop for StreamUses {
    fn drop(&mut self) {
        let Streams { recorded, destroyed, .. } = self.streams.get_mut().unwrap_or_else(PoisonError::into_inner);
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
        let mut streams = Streams::default();
        streams.recorded.extend(owner.map(|owner| Use { ordered: true, owner: Some(owner), ..Use::of(first) }));
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
        self.record(Queue::of(device, stream), owner_of(device, stream))
    }

    /// As [`StreamUses::record_stream`]; `owner` keeps the stream alive until its work on the memory is done.
    ///
    /// # Errors
    /// As for [`StreamUses::record_stream`].
    #[doc(hidden)]
    pub fn record_owned_stream(&self, device: Device, stream: Stream, owner: StreamOwner) -> Result<()> {
        self.record(Queue::of(device, stream), Some(owner))
    }

    fn record(&self, queue: Queue, mut owner: Option<StreamOwner>) -> Result<()> {
        // If `owner` is not needed, it is dropped after the lock is released.
        if queue == self.first && owner.is_none() {
            return Ok(());
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.note_reused_handle(queue);
        let recorded = &mut streams.recorded;
        let place = recorded.iter().position(|used| used.queue == queue).unwrap_or(recorded.len());
        if place == recorded.len() {
            recorded.push(Use::of(queue));
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

    /// Makes the next work of `to`, a consumer's stream, wait for the earlier work of `from` and of all recorded streams, and
    /// records both.
    ///
    /// # Errors
    /// As for [`StreamUses::record_stream`].
    #[doc(hidden)]
    pub fn make_stream_wait(&self, device: Device, from: Stream, to: Stream) -> Result<()> {
        let (earlier, later) = (Queue::of(device, from), Queue::of(device, to));
        self.record(earlier, owner_of(device, from))?;
        self.record(later, owner_of(device, to))?;
        queue::order(later, earlier)?;
        self.order_after_others(later, earlier)
    }

    /// Makes the next work of `later` wait for the earlier work of all recorded streams but `done`.
    fn order_after_others(&self, later: Queue, done: Queue) -> Result<()> {
        let (unfinished, merged) = self.unfinished_queues();
        let (gone, left): (SmallVec<[Queue; 2]>, SmallVec<[Queue; 2]>) =
            unfinished.into_iter().filter(|queue| *queue != later && *queue != done).partition(Queue::has_lost_handle);
        if !gone.is_empty() {
            self.finish_gone(&gone, merged, later)?;
        }
        for queue in left {
            let Err(error) = queue::order(later, queue) else { continue };
            let is_captured = later.state() == State::Capturing;
            match error {
                // A blocking stream that is captured cannot wait for the legacy one, but did so when it was recorded, and
                // runs its graph after that stream's later work.
                _ if is_captured && queue == self.first && queue.stream() == Stream::LEGACY => {}
                Error::Device(DeviceError::Capturing { .. }) => return Err(error),
                _ if is_captured => return Err(later.captured().into()),
                // As for a destroyed stream.
                _ => queue.finish_all()?,
            }
        }
        Ok(())
    }

    /// Waits for the work of destroyed streams before `later` goes on: no stream can wait for them, so the host does, once.
    /// `merged` is the number of merged streams when `gone` was listed.
    #[cold]
    fn finish_gone(&self, gone: &[Queue], merged: u64, later: Queue) -> Result<()> {
        if later.state() == State::Capturing {
            // The host cannot wait. The earlier work of the first stream came before when `later` was recorded, its last may not.
            return Err(later.captured().into());
        }
        let mut devices = SmallVec::<[Queue; 2]>::new();
        for queue in gone {
            if !devices.iter().any(|done| done.is_on_device_of(queue)) {
                queue.finish_all()?;
                devices.push(*queue);
            }
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a number a new stream with the same handle would count as finished too.
        let is_finished = |queue: Queue| queue.has_number() && gone.contains(&queue);
        streams.first_finished |= is_finished(self.first);
        // Meanwhile an entry may have come to stand for a stream whose last work began after the wait.
        let is_as_listed = streams.merged == merged;
        let Streams { recorded, destroyed, .. } = &mut *streams;
        for used in recorded.iter_mut().chain(destroyed.iter_mut().filter(|_| is_as_listed)) {
            used.finished |= is_finished(used.queue);
        }
        Ok(())
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
        self.queues_in(&self.streams.lock().unwrap_or_else(PoisonError::into_inner), |_| true)
    }

    /// Returns the recorded streams without those that were destroyed and waited for, and how many were merged until now.
    fn unfinished_queues(&self) -> (SmallVec<[Queue; 3]>, u64) {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        (self.queues_in(&streams, |finished| !finished), streams.merged)
    }

    /// Returns the recorded streams that `wanted` takes, the first one last; it is given whether the host has waited for them
    /// since they were destroyed.
    fn queues_in(&self, streams: &Streams, wanted: impl Fn(bool) -> bool) -> SmallVec<[Queue; 3]> {
        let recorded = streams.recorded.iter().chain(&streams.destroyed);
        let recorded = recorded.filter(|used| used.queue != self.first && wanted(used.finished)).map(|used| used.queue);
        recorded.chain(wanted(streams.first_finished).then_some(self.first)).collect()
    }
}

impl Use {
    /// A stream that is not ordered yet.
    fn of(queue: Queue) -> Use {
        Use { queue, ordered: false, finished: false, owner: None }
    }
}

impl Streams {
    /// Marks as destroyed the recorded stream, if any, that had the handle of this one before.
    fn note_reused_handle(&mut self, queue: Queue) {
        let had_its_handle = |used: &Use| used.queue.has_handle_of(&queue) && used.queue != queue;
        let Some(place) = self.recorded.iter().position(had_its_handle) else { return };
        let replaced = self.recorded.remove(place);
        let known = self.destroyed.iter_mut().find(|other| other.queue.is_on_device_of(&replaced.queue));
        let is_known = known.is_some();
        if let Some(known) = known {
            // It stands for both.
            known.finished &= replaced.finished;
            self.merged += 1;
        }
        // Dropping what keeps a stream alive may run foreign code: it is dropped with the memory.
        if !is_known || replaced.owner.is_some() {
            self.destroyed.push(replaced);
        }
    }
}
