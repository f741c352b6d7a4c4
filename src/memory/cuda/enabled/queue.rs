//! Streams of devices, in each other's order.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::thread::{self, ThreadId};

use cudarc::driver::sys::{self, CUevent_flags};

use super::context::{Relaxed, enter};
use super::driver::check;
use super::streams::{is_capturing, raw};
use crate::device::{Device, DeviceError};
use crate::error::Result;
use crate::memory::cuda::Stream;

/// A stream of a device. The per-thread default stream is another one in every thread, under the same handle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    device: Device,
    stream: Stream,
    thread: Option<ThreadId>,
}

impl PartialEq for Queue {
    fn eq(&self, other: &Queue) -> bool {
        let same = self.device.cuda_ordinal() == other.device.cuda_ordinal() && self.stream == other.stream;
        same && self.thread == other.thread
    }
}

impl Queue {
    /// The stream that this thread means.
    pub(super) fn of(device: Device, stream: Stream) -> Queue {
        Queue { device, stream, thread: (stream == Stream::PER_THREAD).then(|| thread::current().id()) }
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

    /// Whether the stream's work, or for the legacy stream that of one that it waits for, is recorded as a graph.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] if there is no such stream any more.
    pub(super) fn is_capturing(&self) -> Result<bool> {
        is_capturing(self.device, self.here().stream)
    }

    /// That it is.
    pub(super) fn captured(&self) -> DeviceError {
        DeviceError::Capturing { device: self.device, stream: self.stream.handle() }
    }

    /// Waits for the stream, or for all work of its device if it is gone.
    pub(super) fn finish_or_all(&self) -> Result<(), DeviceError> {
        self.finish().or_else(|_| self.finish_all())
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
    match (later.is_capturing()?, earlier.is_capturing()?) {
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
