//! Who may still be at work on memory, and what has to be done before it can be let go.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::context::{context, enter};
use super::queue::{self, Queue, State};
use crate::device::{Device, DeviceError};
use crate::error::Result;
use crate::memory::cuda::Stream;
use crate::memory::cuda::stream::{Kept, kept};

/// The stream in whose order memory is let go, and all streams that were told of it.
#[derive(Debug)]
pub(crate) struct Order {
    first: Queue,
    /// Whether the memory is let go by the host, which then has to wait itself.
    by_host: bool,
    streams: Mutex<Streams>,
}

/// The streams that were told of memory.
#[derive(Debug, Default)]
struct Streams {
    told: SmallVec<[Told; 2]>,
    /// Those whose handle is another stream's by now, one for each device: all their work is waited for together.
    gone: Vec<Told>,
}

/// A stream that was told of memory, and may be at work on it.
#[derive(Debug)]
struct Told {
    queue: Queue,
    /// Whether its work comes after what was asked of the first stream.
    ordered: bool,
    /// Keeps the stream alive, if its owner is known.
    kept: Option<Kept>,
}

impl Drop for Order {
    fn drop(&mut self) {
        let Streams { told, gone } = self.streams.get_mut().unwrap_or_else(PoisonError::into_inner);
        if told.iter().chain(&*gone).any(|told| told.kept.is_some()) {
            // A stream that goes makes its device current.
            let _entered = enter(self.first.device());
            told.clear();
            gone.clear();
        }
    }
}

impl Order {
    /// Of memory that is let go in the order of `stream`, which was told of it first.
    pub(crate) fn new(device: Device, stream: Stream) -> Order {
        Order::at(device, Queue::of(device, stream))
    }

    /// Of memory that is let go in the order of a stream as it is named by the thread that had it.
    pub(super) fn at(device: Device, first: Queue) -> Order {
        let told =
            kept(first.device(), first.stream()).map(|kept| Told { queue: first, ordered: true, kept: Some(kept) });
        let streams = Streams { told: told.into_iter().collect(), gone: Vec::new() };
        Order { first, by_host: !device.is_cuda(), streams: Mutex::new(streams) }
    }

    /// Of memory of another library, which `stream` was told of first: it is let go after the work of that.
    ///
    /// # Errors
    /// [`DeviceError::NoCuda`], [`DeviceError::Driver`].
    pub(crate) fn of_import(device: Device, stream: Stream) -> Result<Box<Order>> {
        context(device)?;
        Ok(Box::new(Order::new(device, stream)))
    }

    /// Has the host wait for all work before the memory is let go: who had it knows of no stream that would.
    #[cfg(feature = "python")]
    pub(crate) fn set_by_host(&mut self) {
        self.by_host = true;
    }

    /// Tells a stream of the memory, which is going to work on it: at first after what was asked of the first stream so far.
    /// What two streams do from then on is ordered by who asks them.
    ///
    /// # Errors
    /// [`DeviceError::Capturing`] if there is no such order, [`DeviceError::Driver`].
    pub(crate) fn join(&self, device: Device, stream: Stream) -> Result<()> {
        self.tell(device, stream, None)
    }

    /// As [`Order::join`], for a stream that is kept alive until its work on the memory is done.
    ///
    /// # Errors
    /// As for [`Order::join`].
    pub(crate) fn join_kept(&self, device: Device, stream: Stream, keep: Kept) -> Result<()> {
        self.tell(device, stream, Some(keep))
    }

    fn tell(&self, device: Device, stream: Stream, keep: Option<Kept>) -> Result<()> {
        // What is not needed in the end goes after the lock.
        let mut keep = keep.or_else(|| kept(device, stream));
        let queue = Queue::of(device, stream);
        if queue == self.first && keep.is_none() {
            return Ok(());
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.replace(queue);
        let told = &mut streams.told;
        let place = told.iter().position(|told| told.queue == queue).unwrap_or(told.len());
        if place == told.len() {
            told.push(Told { queue, ordered: false, kept: None });
        }
        if told[place].kept.is_none() {
            told[place].kept = keep.take();
        }
        if !told[place].ordered {
            // Nobody else hears that the stream is ordered before it is.
            self.order_after_first(queue)?;
            told[place].ordered = true;
        }
        Ok(())
    }

    /// Puts what comes next in a stream after what was asked of the first one so far.
    fn order_after_first(&self, queue: Queue) -> Result<()> {
        if !self.first.has_lost_handle() {
            return queue::order(queue, self.first);
        }
        // There is no order any more: the host waits, which would spoil what is recorded.
        match queue.state() {
            State::Capturing => Err(queue.captured().into()),
            _ => Ok(self.first.finish_all()?),
        }
    }

    /// Hands the memory to the work of another library: that of `to` comes after what was asked of `from` so far.
    ///
    /// # Errors
    /// As for [`Order::join`].
    pub(crate) fn hand_over(&self, device: Device, from: Stream, to: Stream) -> Result<()> {
        self.join(device, from)?;
        self.join(device, to)?;
        queue::order(Queue::of(device, to), Queue::of(device, from))
    }

    /// Lets `stream` do its work after what was asked of the first stream so far, whose order the memory leaves.
    ///
    /// # Errors
    /// As for [`Order::join`].
    pub(crate) fn precede(&self, device: Device, stream: Stream) -> Result<()> {
        self.order_after_first(Queue::of(device, stream))
    }

    /// Waits for the work of all streams that were told, so that the host may go on with the memory.
    ///
    /// # Errors
    /// [`DeviceError::Capturing`] if there is nothing to wait for, [`DeviceError::Driver`].
    pub(crate) fn finish(&self) -> Result<()> {
        for queue in self.queues() {
            if queue.state() == State::Capturing {
                return Err(queue.captured().into());
            }
            queue.finish_or_all()?;
        }
        Ok(())
    }

    /// Puts what comes next in the first stream after the work of all streams that were told, or waits for it if the host is
    /// next: then the memory may go.
    ///
    /// # Errors
    /// [`DeviceError::Capturing`] while the work of one is recorded as a graph, and [`DeviceError::Driver`]: the memory has to
    /// stay for now.
    pub(crate) fn settle(&self) -> Result<(), DeviceError> {
        let queues = self.queues();
        let (mut gone, mut by_host) = (SmallVec::<[Queue; 2]>::new(), self.by_host);
        for queue in &queues {
            match queue.state() {
                State::Working => {}
                State::Capturing => return Err(queue.captured()),
                State::Gone => {
                    gone.push(*queue);
                    by_host |= *queue == self.first;
                }
            }
        }
        // Streams that are gone have no order any more, but their work may still be under way.
        let mut done = SmallVec::<[Queue; 2]>::new();
        for queue in gone {
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
                queue.finish_or_all()?;
            } else if queue::order(self.first, queue).is_err() {
                queue.finish_all()?;
            }
        }
        Ok(())
    }

    /// All streams that were told, the first one last.
    fn queues(&self) -> SmallVec<[Queue; 3]> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let told = streams.told.iter().chain(&streams.gone).map(|told| told.queue);
        told.filter(|told| *told != self.first).chain([self.first]).collect()
    }
}

impl Streams {
    /// Notes that the stream which had the handle of this one before is gone, if there was one.
    fn replace(&mut self, queue: Queue) {
        let had_its_handle = |told: &Told| told.queue.has_handle_of(&queue) && told.queue != queue;
        let Some(place) = self.told.iter().position(had_its_handle) else { return };
        let replaced = self.told.remove(place);
        let is_known = self.gone.iter().any(|gone| gone.queue.is_on_device_of(&replaced.queue));
        // What keeps a stream alive may be anybody's, and goes with the memory.
        if !is_known || replaced.kept.is_some() {
            self.gone.push(replaced);
        }
    }
}
