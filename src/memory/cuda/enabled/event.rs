//! Events: what came before in a stream, also after the stream is gone.

#![allow(unsafe_code, reason = "functions of the driver")]

use cudarc::driver::sys::{self, CUevent_flags};

use super::context::{Relaxed, enter};
use super::driver::check;
use super::lent::{UsedStream, Work};
use super::streams::{is_capturing, raw};
use crate::device::{Device, DeviceError};
use crate::error::Result;
use crate::memory::cuda::Stream;

/// An event of this crate, recorded once.
#[derive(Debug)]
pub(super) struct Event {
    raw: sys::CUevent,
    device: Device,
}

// SAFETY: the handle is only given to the driver, which takes it from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Records what a stream of a device got until now.
    fn record(device: Device, stream: Stream<'_>) -> Result<Event, DeviceError> {
        let _entered = enter(device)?;
        let mut raw = std::ptr::null_mut();
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the driver writes the handle to a live variable. The event is of the device whose stream records it.
        unsafe {
            check(device, "cuEventCreate", sys::cuEventCreate(&raw mut raw, flags))?;
            let event = Event { raw, device };
            check(device, "cuEventRecord", sys::cuEventRecord(raw, super::streams::raw(stream)))?;
            Ok(event)
        }
    }

    /// Makes the next work of a stream of a device wait. The driver keeps an event that a stream waits for.
    fn make_wait(&self, device: Device, stream: Stream<'_>) -> Result<(), DeviceError> {
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

/// Returns the work that a stream got until now. The legacy default stream counts as captured while a blocking stream is, and
/// can record nothing then.
pub(super) fn work_of(device: Device, stream: Stream<'_>) -> Result<Work, DeviceError> {
    if !is_capturing(device, stream)? {
        return Ok(Work::Running(Some(Event::record(device, stream)?.into())));
    }
    if stream == Stream::LEGACY {
        return Err(DeviceError::Capturing { device, stream: stream.handle() });
    }
    Ok(Work::Captured(Event::record(device, stream)?))
}

/// Orders the next work of a stream of a device after the earlier work of another one.
pub(super) fn order(later: (Device, Stream<'_>), earlier: &UsedStream) -> Result<(), DeviceError> {
    let (device, stream) = later;
    if earlier.is(device, stream) {
        return Ok(());
    }
    let is_captured = is_capturing(device, stream)?;
    if is_captured && stream == Stream::LEGACY {
        // What is captured is a blocking stream that it waits for, so it can't wait.
        return Err(DeviceError::Capturing { device, stream: stream.handle() });
    }
    match earlier.work() {
        // The graph of a blocking stream runs after the earlier work of the legacy stream by itself.
        Err(DeviceError::Capturing { .. }) if is_captured => Ok(()),
        Err(error) => Err(error),
        Ok(Work::Running(None)) => Ok(()),
        // A graph can't wait for work outside it, but does not run before its capture is over: the host waits.
        Ok(Work::Running(Some(event))) if is_captured => event.finish(),
        Ok(Work::Running(Some(event))) => event.make_wait(device, stream),
        Ok(Work::Captured(event)) if is_captured => event.make_wait(device, stream),
        // The event would pull the later stream into the graph.
        Ok(Work::Captured(_)) => Err(earlier.captured()),
    }
}

/// As [`order`], for two streams that exist in this call.
pub(crate) fn wait(later: (Device, Stream<'_>), earlier: (Device, Stream<'_>)) -> Result<()> {
    UsedStream::lent(earlier.0, earlier.1, None, |earlier| Ok(order(later, earlier)?))
}
