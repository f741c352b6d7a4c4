//! Who may still be at work on memory, and what has to be done before it can be let go.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::{self, CUevent_flags};
use smallvec::SmallVec;

use super::context::enter;
use super::driver::check;
use super::streams::{is_capturing, raw, synchronize};
use crate::device::{Device, DeviceError};
use crate::error::Result;
use crate::memory::cuda::Stream;

/// A stream of a device.
type Queue = (Device, Stream);

/// The stream in whose order memory is let go, and all streams that were told of it.
#[derive(Debug)]
pub(crate) struct Order {
    first: Queue,
    /// Whether the memory is let go by the host, which then has to wait itself.
    by_host: bool,
    told: Mutex<SmallVec<[Queue; 2]>>,
}

impl Order {
    /// Of memory that is let go in the order of `stream`, which was told of it first.
    pub(crate) fn new(device: Device, stream: Stream) -> Order {
        Order { first: (device, stream), by_host: !device.is_cuda(), told: Mutex::default() }
    }

    /// The stream in whose order the memory is let go.
    pub(crate) fn stream(&self) -> Stream {
        self.first.1
    }

    /// Tells a stream of the memory, which is going to work on it: at first after what was asked of the first stream so far.
    /// What two streams do from then on is ordered by who asks them.
    ///
    /// # Errors
    /// [`DeviceError::Driver`].
    pub(crate) fn join(&self, device: Device, stream: Stream) -> Result<()> {
        if self.note((device, stream)) && !is_capturing(device, stream)? {
            wait((device, stream), self.first)?;
        }
        Ok(())
    }

    /// Hands the memory to the work of another library: that of `to` comes after what was asked of `from` so far.
    ///
    /// # Errors
    /// [`DeviceError::Driver`].
    pub(crate) fn hand_over(&self, device: Device, from: Stream, to: Stream) -> Result<()> {
        self.join(device, from)?;
        self.join(device, to)?;
        wait((device, to), (device, from))
    }

    /// Waits for the work of all streams that were told, so that the host may go on with the memory.
    ///
    /// # Errors
    /// [`DeviceError::Capturing`] if there is nothing to wait for, [`DeviceError::Driver`].
    pub(crate) fn finish(&self) -> Result<()> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (device, stream) in told.into_iter().chain([self.first]) {
            match synchronize(device, stream) {
                Err(crate::Error::Device(DeviceError::Driver { .. })) => everything(device)?,
                finished => finished?,
            }
        }
        Ok(())
    }

    /// Lets `stream` do its work after what was asked of the first stream so far, whose order the memory leaves.
    ///
    /// # Errors
    /// [`DeviceError::Driver`].
    pub(crate) fn precede(&self, device: Device, stream: Stream) -> Result<()> {
        wait((device, stream), self.first)
    }

    /// Whether the stream hears of the memory for the first time.
    fn note(&self, queue: Queue) -> bool {
        if queue == self.first {
            return false;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !told.contains(&queue);
        if is_new {
            told.push(queue);
        }
        is_new
    }

    /// Puts what comes next in the first stream after the work of all streams that were told, or waits for it if the host is
    /// next. `false` if that cannot be done while work is being recorded as a graph: try again later.
    #[must_use]
    pub(crate) fn settle(&self) -> bool {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = told.iter().chain([&self.first]);
        if all.any(|(device, stream)| is_capturing(*device, *stream).unwrap_or(false)) {
            return false;
        }
        for queue in told.iter() {
            let done = if self.by_host { finish(*queue) } else { wait(self.first, *queue) };
            // A stream that is gone has no order any more, but its work may still be under way.
            if done.is_err() && everything(queue.0).is_err() {
                return false;
            }
        }
        if self.by_host { finish(self.first).is_ok() || everything(self.first.0).is_ok() } else { true }
    }
}

/// Waits for a stream.
fn finish((device, stream): Queue) -> Result<()> {
    let _entered = enter(device)?;
    // SAFETY: the driver looks the handle up.
    Ok(check(device, "cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(raw(stream)) })?)
}

/// Waits for all work of a device.
fn everything(device: Device) -> Result<(), DeviceError> {
    let _entered = enter(device)?;
    // SAFETY: nothing is asked of it.
    check(device, "cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
}

/// Puts what comes next in the stream `later` after what was asked of `earlier` so far.
pub(crate) fn wait(later: Queue, earlier: Queue) -> Result<()> {
    if later == earlier {
        return Ok(());
    }
    let mut event = std::ptr::null_mut();
    // SAFETY: an event of the device whose stream it is recorded in, and a default stream is that of the device that was
    // entered. The driver keeps an event that is waited for.
    unsafe {
        let device = earlier.0;
        let entered = enter(device)?;
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        check(device, "cuEventCreate", sys::cuEventCreate(&raw mut event, flags))?;
        let recorded = check(device, "cuEventRecord", sys::cuEventRecord(event, raw(earlier.1)));
        drop(entered);
        let waited = recorded.and_then(|()| {
            let _entered = enter(later.0)?;
            check(later.0, "cuStreamWaitEvent", sys::cuStreamWaitEvent(raw(later.1), event, 0))
        });
        let _ = sys::cuEventDestroy_v2(event);
        Ok(waited?)
    }
}
