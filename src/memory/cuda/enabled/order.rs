//! The order of work between streams.

use super::event::Work;
use super::lent::UsedStream;
use super::streams::{capturing, is_capturing};
use crate::device::Device;
use crate::error::{DeviceError, DeviceErrorKind, Result};
use crate::memory::cuda::Stream;

/// Orders the next work of a stream of a device after the earlier work of another one.
pub(super) fn order(later: (Device, Stream<'_>), earlier: &UsedStream) -> Result<(), DeviceError> {
    let (device, stream) = later;
    if earlier.is(device, stream) {
        return Ok(());
    }
    let is_captured = is_capturing(device, stream)?;
    if is_captured && stream == Stream::LEGACY {
        // What is captured is a blocking stream that it waits for, so it can't wait.
        return Err(capturing(device, stream));
    }
    match earlier.work() {
        // Neither the graph nor the host can wait for the legacy stream while a blocking stream is captured. A launch in a
        // blocking stream comes after its work by itself.
        Err(error) if is_captured && error.kind() == DeviceErrorKind::Capturing => Ok(()),
        Err(error) => Err(error),
        // A graph can't wait for work outside it, but does not run before its capture is over: the host waits.
        Ok(Work::Running(event)) if is_captured => event.finish(),
        Ok(Work::Running(event)) => event.make_wait(device, stream),
        Ok(Work::Captured(event)) if is_captured => event.make_wait(device, stream),
        // The event would pull the later stream into the graph.
        Ok(Work::Captured(_)) => Err(earlier.captured()),
    }
}

/// As [`order`], for two streams that exist in this call.
pub(crate) fn wait(later: (Device, Stream<'_>), earlier: (Device, Stream<'_>)) -> Result<()> {
    UsedStream::lent(earlier.0, earlier.1, None, |earlier| Ok(order(later, earlier)?))
}
