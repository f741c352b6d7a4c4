//! Streams: queues of operations that run only when something waits for them.
//!
//! That is the worst case that CUDA allows for a program that does not wait, and it is the same in every run.

use crate::clocks::{Clock, HOST, Moment, Touch};
use crate::codes::{Failure, Outcome};
use crate::driver::{Driver, Handle};
use crate::work::{HostCall, Work};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// The legacy default stream, which 1 also means.
pub const NULL: Handle = 0;
pub const PER_THREAD: Handle = 2;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

/// An operation before it is queued.
#[derive(Clone)]
pub struct Operation {
    pub what: String,
    pub touches: Vec<Touch>,
    pub work: Work,
}

impl Operation {
    pub fn new(what: &str, touches: Vec<Touch>, work: Work) -> Operation {
        Operation { what: what.to_owned(), touches, work }
    }
}

#[derive(Default)]
pub struct Stream {
    pub context: Handle,
    pub device: usize,
    pub flags: u32,
    pub priority: i32,
    pub legacy: bool,
    /// Created by the driver, not by the program.
    pub implicit: bool,
    /// Destroyed by the program, with work left to run.
    pub destroyed: bool,
    pub capture: Option<u64>,
    pub clock: Clock,
    pushed: u64,
    done: u64,
    queue: VecDeque<Work>,
    /// A host function is running as the operation after `done`.
    busy: bool,
}

impl Stream {
    pub fn is_blocking(&self) -> bool {
        !self.legacy && self.flags & NON_BLOCKING == 0
    }

    pub fn pending(&self) -> usize {
        self.queue.len()
    }
}

/// A position in a stream: the operations queued up to there, and everything before those.
#[derive(Clone, Debug)]
pub struct Point {
    pub stream: Handle,
    pub number: u64,
    pub clock: Clock,
}

pub enum Step {
    Reached,
    Ran,
    /// Another thread runs a function that comes before this point.
    Elsewhere,
    HostFunction(HostCall),
}

/// Returns the number of this thread.
pub fn thread() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = COUNT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

impl Driver {
    pub fn make_stream(&mut self, device: usize, flags: u32, priority: i32) -> Handle {
        let stream = Stream { context: self.devices[device].context, device, flags, priority, ..Stream::default() };
        let number = self.handle();
        self.streams.insert(number, stream);
        number
    }

    /// Gives a stream the handle that programs use, until it is destroyed.
    pub fn name_stream(&mut self, stream: Handle) -> Handle {
        let reused = if self.reuses_streams { self.free_streams.pop() } else { None };
        let handle = reused.unwrap_or(stream);
        self.stream_handles.insert(handle, stream);
        handle
    }

    /// Returns the stream that a handle means on this thread.
    pub fn resolve(&mut self, handle: Handle) -> Outcome<Handle> {
        if handle > PER_THREAD {
            let known = self.stream_handles.get(&handle).copied();
            return known.ok_or_else(|| self.bad_handle("stream", handle));
        }
        let device = self.current_device()?;
        let known = match handle {
            PER_THREAD => self.devices[device].thread_streams.get(&thread()).copied(),
            _ => self.devices[device].null_stream,
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let made = self.make_stream(device, 0, 0);
        if let Some(stream) = self.streams.get_mut(&made) {
            stream.implicit = true;
            stream.legacy = handle != PER_THREAD;
        }
        match handle {
            PER_THREAD => {
                self.devices[device].thread_streams.insert(thread(), made);
            }
            _ => self.devices[device].null_stream = Some(made),
        }
        Ok(made)
    }

    pub fn bad_handle(&mut self, what: &str, handle: Handle) -> Failure {
        self.counters.bad_handles += 1;
        self.report(format!("{handle:#x} is no {what}"));
        Failure::INVALID_HANDLE
    }

    pub fn check_handle(&mut self, is_known: bool, what: &str, handle: Handle) -> Outcome {
        if is_known { Ok(()) } else { Err(self.bad_handle(what, handle)) }
    }

    fn stream_mut(&mut self, handle: Handle) -> Outcome<&mut Stream> {
        self.streams.get_mut(&handle).ok_or(Failure::INVALID_HANDLE)
    }

    /// Returns the end of a stream's queue.
    pub fn tail(&self, stream: Handle) -> Point {
        match self.streams.get(&stream) {
            Some(found) => Point { stream, number: found.pushed, clock: found.clock.clone() },
            None => Point { stream, number: 0, clock: Clock::default() },
        }
    }

    /// Returns the ends of all streams of a device, including destroyed ones with work left.
    pub fn tails(&self, device: usize) -> Vec<Point> {
        let handles = self.streams.iter().filter(|(_, stream)| stream.device == device).map(|(handle, _)| *handle);
        handles.map(|handle| self.tail(handle)).collect()
    }

    /// Queues an operation, or adds it to the graph if the stream is captured.
    pub fn submit(&mut self, stream: Handle, operation: Operation) -> Outcome<Point> {
        let device = self.stream_mut(stream)?.device;
        self.check_fault(device)?;
        self.check_implicit(stream)?;
        if let Some(capture) = self.stream_mut(stream)?.capture {
            self.add_node(capture, stream, operation)?;
            return Ok(Point { stream: NULL, number: 0, clock: Clock::default() });
        }
        let moment = self.next_moment(stream)?;
        self.touch_all(&moment, &operation)?;
        self.push(stream, operation.work)
    }

    /// Returns the moment of the next operation in a stream, after everything that must come before it.
    pub fn next_moment(&mut self, stream: Handle) -> Outcome<Moment> {
        let found = self.stream_mut(stream)?;
        let (device, legacy, blocking) = (found.device, found.legacy, found.is_blocking());
        let before: Vec<Handle> = if legacy {
            let others = self
                .streams
                .iter()
                .filter(|(_, other)| other.device == device && other.is_blocking() && other.capture.is_none());
            others.map(|(handle, _)| *handle).collect()
        } else if blocking {
            self.devices[device].null_stream.into_iter().collect()
        } else {
            vec![]
        };
        for other in before {
            let tail = self.tail(other);
            self.wait_in_stream(stream, &tail)?;
        }
        let host = self.host.clone();
        let found = self.stream_mut(stream)?;
        found.clock.join(&host);
        Ok(Moment { actor: stream, number: found.pushed + 1, clock: found.clock.clone() })
    }

    /// Orders the next operations of a stream after a point of another stream.
    pub fn wait_in_stream(&mut self, stream: Handle, point: &Point) -> Outcome {
        self.stream_mut(stream)?.clock.join(&point.clock);
        if point.stream != stream && !self.is_reached(point.stream, point.number) {
            self.push(stream, Work::Wait(point.stream, point.number))?;
        }
        Ok(())
    }

    pub fn push(&mut self, stream: Handle, work: Work) -> Outcome<Point> {
        let found = self.stream_mut(stream)?;
        found.pushed += 1;
        found.clock.advance(stream, found.pushed);
        found.queue.push_back(work);
        Ok(self.tail(stream))
    }

    pub fn is_reached(&self, stream: Handle, number: u64) -> bool {
        self.streams.get(&stream).is_none_or(|found| found.done >= number)
    }

    /// Runs the operation that must run next to reach a point.
    pub fn step(&mut self, point: &Point) -> Step {
        if self.is_reached(point.stream, point.number) {
            return Step::Reached;
        }
        let mut at = point.stream;
        loop {
            let Some(stream) = self.streams.get(&at) else { return Step::Reached };
            if stream.busy {
                return Step::Elsewhere;
            }
            match stream.queue.front() {
                Some(&Work::Wait(other, number)) if !self.is_reached(other, number) => at = other,
                _ => break,
            }
        }
        let Some(stream) = self.streams.get_mut(&at) else { return Step::Reached };
        match stream.queue.pop_front() {
            None => return Step::Reached,
            Some(Work::Host(function, argument)) => {
                stream.busy = true;
                return Step::HostFunction(HostCall { stream: at, function, argument });
            }
            Some(work) => self.execute(at, work),
        }
        self.finish(at);
        Step::Ran
    }

    /// Records that the operation at the head of a stream has run.
    pub fn finish(&mut self, stream: Handle) {
        self.now += 1;
        if let Some(found) = self.streams.get_mut(&stream) {
            found.done += 1;
            found.busy = false;
            if found.destroyed && found.queue.is_empty() {
                self.streams.remove(&stream);
            }
        }
    }

    /// Destroys a stream; its queued operations stay queued.
    pub fn destroy_stream(&mut self, handle: Handle) -> Outcome {
        let number = self.resolve(handle)?;
        let stream = self.stream_mut(number)?;
        if stream.implicit {
            return Err(Failure::INVALID_HANDLE);
        }
        stream.destroyed = true;
        let (capture, idle) = (stream.capture, stream.queue.is_empty() && !stream.busy);
        if let Some(capture) = capture {
            self.take_capture(capture);
        }
        if idle {
            self.streams.remove(&number);
        }
        self.stream_handles.remove(&handle);
        self.free_streams.push(handle);
        Ok(())
    }

    /// Removes idle default streams of other threads, and the numbers of streams that are gone from all clocks. Without this
    /// each operation takes longer, the more streams there ever were.
    ///
    /// A thread that still runs gets another default stream. An actor stays in the clocks while an access of it may race.
    pub fn forget_streams(&mut self) {
        let Driver { devices, streams, host, .. } = self;
        for device in devices {
            device.thread_streams.retain(|&owner, handle| {
                let idle = streams.get(handle).is_none_or(|found| {
                    found.done == found.pushed
                        && found.capture.is_none()
                        && (found.pushed == 0 || host.covers(*handle, found.pushed))
                });
                let kept = owner == thread() || !idle;
                if !kept {
                    streams.remove(handle);
                }
                kept
            });
        }
        let mut actors = self.memory.drop_complete(&self.host);
        actors.extend(self.streams.keys());
        actors.insert(HOST);
        self.host.retain(&actors);
        self.streams.values_mut().for_each(|stream| stream.clock.retain(&actors));
        let points = self.events.values_mut().filter_map(|event| event.point.as_mut());
        points.for_each(|point| point.clock.retain(&actors));
    }
}
