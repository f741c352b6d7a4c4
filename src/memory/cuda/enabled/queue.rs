//! Streams of devices, and the order between them.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::thread::{self, ThreadId};

use cudarc::driver::sys::{self, CUevent_flags};

use super::context::{Relaxed, enter};
use super::driver::check;
use super::streams::{is_capturing, number_of, ordinal_of, raw};
use crate::device::{Device, DeviceError};
use crate::error::Result;
use crate::memory::cuda::Stream;

/// A stream of a device. The per-thread default stream is a different one in every thread under the same handle, and a new
/// stream may have the handle of a destroyed one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    device: Device,
    stream: Stream,
    thread: Option<ThreadId>,
    /// The driver's id of the stream, if it has one: see [`number_of`].
    number: Option<u64>,
}

impl PartialEq for Queue {
    fn eq(&self, other: &Queue) -> bool {
        self.has_handle_of(other) && self.number == other.number
    }
}

/// The state of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It runs its work.
    Working,
    /// Its work is captured into a graph, or for the legacy stream that of a stream that it waits for.
    Capturing,
    /// It was destroyed: nothing can be ordered after it, but its work may still be running.
    Gone,
}

impl Queue {
    /// Returns the stream that this thread means. Pinned and managed memory does not say which device the stream belongs to.
    pub(super) fn of(device: Device, stream: Stream) -> Queue {
        let thread = (stream == Stream::PER_THREAD).then(|| thread::current().id());
        let number = number_of(device, stream);
        let ordinal = if number.is_some() && !device.is_cuda() { ordinal_of(device, stream).ok() } else { None };
        let device = ordinal.and_then(|ordinal| u16::try_from(ordinal).ok()).map_or(device, Device::cuda);
        Queue { device, stream, thread, number }
    }

    /// Returns whether both have one handle. If they are not the same stream, one of them was destroyed.
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

    /// Returns the stream by its name in this thread. Another thread's default stream has none here: the legacy stream replaces
    /// it, which waits for it as for all blocking streams.
    fn here(&self) -> Queue {
        let has_name = self.thread.is_none_or(|thread| thread == thread::current().id());
        if has_name { *self } else { Queue { stream: Stream::LEGACY, thread: None, ..*self } }
    }

    /// Returns the driver's handle.
    pub(super) fn raw(&self) -> sys::CUstream {
        raw(self.here().stream)
    }

    /// Returns the stream's state.
    pub(super) fn state(&self) -> State {
        match is_capturing(self.device, self.here().stream) {
            _ if self.has_lost_handle() => State::Gone,
            Ok(true) => State::Capturing,
            Ok(false) => State::Working,
            // CUDA does not document what a driver answers for a destroyed handle: this relies on an error.
            Err(_) => State::Gone,
        }
    }

    /// Returns whether the stream was destroyed. Its handle may belong to a new stream now.
    pub(super) fn has_lost_handle(&self) -> bool {
        number_of(self.device, self.stream) != self.number
    }

    /// Returns whether the driver numbers the stream: then no later stream counts as the same.
    pub(super) fn has_number(&self) -> bool {
        self.number.is_some()
    }

    /// Returns the error that the stream is captured into a graph.
    pub(super) fn captured(&self) -> DeviceError {
        DeviceError::Capturing { device: self.device, stream: self.stream.handle() }
    }

    /// Waits for the stream, or for all work of its device if it was destroyed.
    pub(super) fn synchronize_stream_or_device(&self) -> Result<(), DeviceError> {
        if self.has_lost_handle() { self.finish_all() } else { self.finish().or_else(|_| self.finish_all()) }
    }

    /// Waits for the stream.
    fn finish(&self) -> Result<(), DeviceError> {
        let _entered = enter(self.device)?;
        let _relaxed = Relaxed::new();
        // SAFETY: a handle that the driver knew.
        check(self.device, "cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw()) })
    }

    /// Waits for all work of the stream's device, the only way for a destroyed stream. During graph capture this fails and
    /// invalidates the capture.
    pub(super) fn finish_all(&self) -> Result<(), DeviceError> {
        let _entered = enter(self.device)?;
        let _relaxed = Relaxed::new();
        // SAFETY: the function takes no arguments.
        check(self.device, "cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }
}

/// Orders the next work of the stream `later` after the earlier work of the stream `earlier`.
pub(crate) fn wait(later: (Device, Stream), earlier: (Device, Stream)) -> Result<()> {
    order(Queue::of(later.0, later.1), Queue::of(earlier.0, earlier.1))
}

/// As [`wait`], also for streams that other threads have named.
pub(super) fn order(later: Queue, earlier: Queue) -> Result<()> {
    if later == earlier {
        return Ok(());
    }
    let (later, earlier) = (later.here(), earlier.here());
    match (is_capturing(later.device, later.stream)?, is_capturing(earlier.device, earlier.stream)?) {
        // The captured stream is not the legacy one but a blocking one that it waits for: it can neither record an event nor
        // wait.
        (_, true) if earlier.stream == Stream::LEGACY => Err(earlier.captured().into()),
        (true, _) if later.stream == Stream::LEGACY => Err(later.captured().into()),
        // An event would pull `later` into the graph of `earlier`.
        (false, true) => Err(earlier.captured().into()),
        // A graph cannot wait for work outside it, but it does not run before its capture is over: the host waits.
        (true, false) => Ok(earlier.synchronize_stream_or_device()?),
        _ => by_event(later, earlier),
    }
}

fn by_event(later: Queue, earlier: Queue) -> Result<()> {
    let mut event = std::ptr::null_mut();
    // SAFETY: each call is made with the stream's device current, which default streams need, and the event is of the device
    // whose stream records it. The driver keeps an event that a stream waits for.
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
