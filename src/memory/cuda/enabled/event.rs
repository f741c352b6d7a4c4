//! Events: what came before in a stream, also after the stream is gone.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::sync::Arc;

use cudarc::driver::sys::{self, CUevent_flags};

use super::capture::raw;
use super::context::{Relaxed, enter};
use super::driver::check;
use super::streams::{capturing, is_capturing};
use crate::device::Device;
use crate::error::DeviceError;
use crate::memory::cuda::Stream;

/// An event of this crate, recorded once.
#[derive(Debug)]
pub(super) struct Event {
    raw: sys::CUevent,
    device: Device,
}

// SAFETY: the handle is only given to the driver, which takes it from any thread.
unsafe impl Send for Event {}
// SAFETY: the handle is only given to the driver, which takes it from any thread.
unsafe impl Sync for Event {}

impl Event {
    /// Records what a stream of a device got until now.
    fn record(device: Device, stream: Stream<'_>) -> Result<Event, DeviceError> {
        let _entered = enter(device)?;
        let mut made = std::ptr::null_mut();
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the driver writes the handle to a live variable. The event is of the device whose stream records it.
        unsafe {
            check(device, "cuEventCreate", sys::cuEventCreate(&raw mut made, flags))?;
            let event = Event { raw: made, device };
            check(device, "cuEventRecord", sys::cuEventRecord(event.raw, raw(stream)))?;
            Ok(event)
        }
    }

    /// Makes the next work of a stream of a device wait. The driver keeps an event that a stream waits for.
    pub(super) fn make_wait(&self, device: Device, stream: Stream<'_>) -> Result<(), DeviceError> {
        let _entered = enter(device)?;
        // SAFETY: the event is live, and the stream's device is current, which default streams need.
        check(device, "cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(raw(stream), self.raw, 0) })
    }

    /// Waits until what came before is done.
    pub(super) fn finish(&self) -> Result<(), DeviceError> {
        let _entered = enter(self.device)?;
        let _relaxed = Relaxed::new();
        // SAFETY: the event is live.
        check(self.device, "cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: destroyed once. Streams that wait for it go on waiting.
        let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
    }
}

/// The work that a stream got until now.
pub(super) enum Work {
    /// The stream runs all that came before this event.
    Running(Arc<Event>),
    /// It is captured into a graph, with this event at its end.
    Captured(Event),
}

/// Returns the work that a stream got until now. The legacy default stream counts as captured while a blocking stream is, and
/// can record nothing then.
pub(super) fn work_of(device: Device, stream: Stream<'_>) -> Result<Work, DeviceError> {
    if !is_capturing(device, stream)? {
        return Ok(Work::Running(Event::record(device, stream)?.into()));
    }
    if stream == Stream::LEGACY {
        return Err(capturing(device, stream));
    }
    Ok(Work::Captured(Event::record(device, stream)?))
}
