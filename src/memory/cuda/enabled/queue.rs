//! Streams of devices, in each other's order.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::thread::{self, ThreadId};

use cudarc::driver::sys::{self, CUevent_flags};

use super::context::{Relaxed, enter};
use super::driver::check;
use super::streams::{is_capturing, number_of, ordinal_of, raw};
use crate::device::{Device, DeviceError};
use crate::error::Result;
use crate::memory::cuda::Stream;

/// A stream of a device. The per-thread default stream is another one in every thread, under the same handle, and the handle
/// of a stream that was destroyed may be that of a new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    device: Device,
    stream: Stream,
    thread: Option<ThreadId>,
    /// The driver's number of the stream, where it has one: see [`number_of`].
    number: Option<u64>,
}

impl PartialEq for Queue {
    fn eq(&self, other: &Queue) -> bool {
        self.has_handle_of(other) && self.number == other.number
    }
}

/// What a stream is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Its work is done in its turn.
    Working,
    /// Its work, or for the legacy stream that of one that it waits for, is recorded as a graph.
    Capturing,
    /// It was destroyed: it has no order any more, but its work may still be under way.
    Gone,
}

impl Queue {
    /// The stream that this thread means. Memory that all devices reach says nothing of whose stream it is.
    pub(super) fn of(device: Device, stream: Stream) -> Queue {
        let thread = (stream == Stream::PER_THREAD).then(|| thread::current().id());
        let number = number_of(device, stream);
        let ordinal = if number.is_some() && !device.is_cuda() { ordinal_of(device, stream).ok() } else { None };
        let device = ordinal.and_then(|ordinal| u16::try_from(ordinal).ok()).map_or(device, Device::cuda);
        Queue { device, stream, thread, number }
    }

    /// Whether the streams have one handle, and one of them is gone if they are not the same.
    pub(super) fn has_handle_of(&self, other: &Queue) -> bool {
        self.is_on_device_of(other) && self.stream == other.stream && self.thread == other.thread
    }

    pub(super) fn is_on_device_of(&self, other: &Queue) -> bool {
        self.device.cuda_ordinal() == other.device.cuda_ordinal()
    }

    pub(super) fn device(&self) -> Device {
        self.device
    }

    pub(super) fn stream(&self) -> Stream {
        self.stream
    }

    /// The stream by the name it has in this thread. For another thread's default stream that is the legacy one, which waits
    /// for it as for all blocking streams.
    fn here(&self) -> Queue {
        let has_name = self.thread.is_none_or(|thread| thread == thread::current().id());
        if has_name { *self } else { Queue { stream: Stream::LEGACY, thread: None, ..*self } }
    }

    /// As the driver takes it.
    pub(super) fn raw(&self) -> sys::CUstream {
        raw(self.here().stream)
    }

    /// What the stream is at.
    pub(super) fn state(&self) -> State {
        match is_capturing(self.device, self.here().stream) {
            _ if self.has_lost_handle() => State::Gone,
            Ok(true) => State::Capturing,
            Ok(false) => State::Working,
            // CUDA does not document what a driver answers for a destroyed handle: this relies on an error.
            Err(_) => State::Gone,
        }
    }

    /// Whether the stream is gone, and its handle is another one's now, or nobody's.
    pub(super) fn has_lost_handle(&self) -> bool {
        number_of(self.device, self.stream) != self.number
    }

    /// That its work is recorded.
    pub(super) fn captured(&self) -> DeviceError {
        DeviceError::Capturing { device: self.device, stream: self.stream.handle() }
    }

    /// Waits for the stream, or for all work of its device if it is gone.
    pub(super) fn finish_or_all(&self) -> Result<(), DeviceError> {
        if self.has_lost_handle() { self.finish_all() } else { self.finish().or_else(|_| self.finish_all()) }
    }

    /// Waits for the stream.
    fn finish(&self) -> Result<(), DeviceError> {
        let _entered = enter(self.device)?;
        let _relaxed = Relaxed::new();
        // SAFETY: a handle that the driver had.
        check(self.device, "cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw()) })
    }

    /// Waits for all work of the stream's device: for a stream that is gone there is no better. It fails, and spoils what is
    /// recorded, if anything is.
    pub(super) fn finish_all(&self) -> Result<(), DeviceError> {
        let _entered = enter(self.device)?;
        let _relaxed = Relaxed::new();
        // SAFETY: nothing is asked of it.
        check(self.device, "cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }
}

/// Puts what comes next in the stream `later` of a device after what was asked of the stream `earlier` so far.
pub(crate) fn wait(later: (Device, Stream), earlier: (Device, Stream)) -> Result<()> {
    order(Queue::of(later.0, later.1), Queue::of(earlier.0, earlier.1))
}

/// As [`wait`], for streams that other threads may have named.
pub(super) fn order(later: Queue, earlier: Queue) -> Result<()> {
    if later == earlier {
        return Ok(());
    }
    let (later, earlier) = (later.here(), earlier.here());
    match (is_capturing(later.device, later.stream)?, is_capturing(earlier.device, earlier.stream)?) {
        // What is recorded is not its own work but that of a blocking stream: no event can be had of it, nor can it wait.
        (_, true) if earlier.stream == Stream::LEGACY => Err(earlier.captured().into()),
        (true, _) if later.stream == Stream::LEGACY => Err(later.captured().into()),
        // An event would draw the one into the graph of the other.
        (false, true) => Err(earlier.captured().into()),
        // A graph cannot wait for what is not in it, but it is not run before it has been recorded.
        (true, false) => Ok(earlier.finish_or_all()?),
        _ => by_event(later, earlier),
    }
}

fn by_event(later: Queue, earlier: Queue) -> Result<()> {
    let mut event = std::ptr::null_mut();
    // SAFETY: an event of the device whose stream it is recorded in, and a default stream is that of the device that was
    // entered. The driver keeps an event that is waited for.
    unsafe {
        let device = earlier.device;
        let entered = enter(device)?;
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        check(device, "cuEventCreate", sys::cuEventCreate(&raw mut event, flags))?;
        let recorded = check(device, "cuEventRecord", sys::cuEventRecord(event, earlier.raw()));
        drop(entered);
        let waited = recorded.and_then(|()| {
            let _entered = enter(later.device)?;
            check(later.device, "cuStreamWaitEvent", sys::cuStreamWaitEvent(later.raw(), event, 0))
        });
        let _ = sys::cuEventDestroy_v2(event);
        Ok(waited?)
    }
}
