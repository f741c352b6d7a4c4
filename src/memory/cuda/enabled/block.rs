//! Memory of a device, pinned memory of the host, and memory that both can reach.

#![allow(unsafe_code, reason = "functions of the driver")]

use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUresult};

use super::context::{Entered, Relaxed, enter};
use super::driver::check;
use super::queue::Queue;
use super::stream_uses::StreamUses;
use super::streams::{is_capturing, raw};
use crate::device::{Device, DeviceError};
use crate::error::Result;
use crate::memory::cuda::Stream;
use crate::memory::{Contents, OutOfMemory};

/// What the driver's allocations are aligned to.
const ALIGNMENT: usize = 256;

/// An owned stretch of memory.
#[derive(Debug)]
pub(in crate::memory) struct CudaMemory {
    base: usize,
    start: usize,
    device: Device,
    /// Where it was had.
    queue: Queue,
    kind: Kind,
}

/// How the memory was had, and goes back.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// From the device's pool, in the order of the stream.
    Pooled,
    /// From the device, at once.
    Plain,
    Pinned,
    Managed,
}

impl CudaMemory {
    /// Allocates `bytes` at a multiple of `alignment`, for work of `stream`.
    ///
    /// # Errors
    /// [`OutOfMemory`], [`DeviceError::NoCuda`], [`DeviceError::Driver`].
    pub(in crate::memory) fn allocate(
        device: Device,
        bytes: usize,
        alignment: usize,
        contents: Contents,
        stream: Stream,
    ) -> Result<CudaMemory> {
        let out_of_memory = || OutOfMemory { bytes, alignment, device };
        let room = if ALIGNMENT.is_multiple_of(alignment) { 0 } else { alignment };
        let wanted = bytes.max(1).checked_add(room).ok_or_else(out_of_memory)?;
        // What is recorded as a graph is not done yet. Memory has to be there all the same, and stay there between the runs of
        // the graph, so it is had in another stream.
        let recorded = is_capturing(device, stream)?;
        let entered = enter(device)?;
        // Another stream may be recording, too.
        let _relaxed = Relaxed::new();
        let stream = if recorded { aside(device)? } else { stream };
        let (base, kind) = had(device, &entered, wanted, stream).map_err(|error| match error {
            DeviceError::Driver { code, .. } if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32 => {
                out_of_memory().into()
            }
            error => crate::Error::from(error),
        })?;
        let memory = CudaMemory {
            base,
            start: base.next_multiple_of(alignment),
            device,
            queue: Queue::of(device, stream),
            kind,
        };
        if contents == Contents::Zeros {
            memory.zero(wanted, stream)?;
        }
        if recorded {
            // SAFETY: a stream of our own that records nothing.
            check(device, "cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(raw(stream)) })?;
        }
        Ok(memory)
    }

    fn zero(&self, bytes: usize, stream: Stream) -> Result<()> {
        if matches!(self.kind, Kind::Pinned) {
            // SAFETY: the memory is fresh, and the host's.
            unsafe { std::ptr::with_exposed_provenance_mut::<u8>(self.base).write_bytes(0, bytes) };
            return Ok(());
        }
        // SAFETY: the memory is fresh, and of at least so many bytes.
        let result = unsafe { sys::cuMemsetD8Async(self.base as u64, 0, bytes, raw(stream)) };
        check(self.device, "cuMemsetD8Async", result)?;
        if self.device.is_host_readable() {
            // The host may read it at once.
            // SAFETY: the stream is not recorded.
            check(self.device, "cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(raw(stream)) })?;
        }
        Ok(())
    }

    pub(in crate::memory) fn as_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.start)
    }

    /// Where the allocation starts, if it is a device's.
    pub(in crate::memory) fn base(&self) -> Option<usize> {
        matches!(self.kind, Kind::Pooled | Kind::Plain).then_some(self.base)
    }

    /// The order of the work on the memory, of which there is none but what allocated it.
    pub(in crate::memory) fn stream_uses(&self) -> Box<StreamUses> {
        Box::new(StreamUses::at(self.device, self.queue))
    }
}

/// Memory of the kind that the device's name says.
fn had(device: Device, entered: &Entered, bytes: usize, stream: Stream) -> Result<(usize, Kind), DeviceError> {
    let (mut base, mut pinned) = (0u64, std::ptr::null_mut());
    // SAFETY: places for the addresses that the driver tells.
    let (result, function, kind) = unsafe {
        match device {
            Device::CUDA_HOST => {
                let result = sys::cuMemHostAlloc(&raw mut pinned, bytes, sys::CU_MEMHOSTALLOC_PORTABLE);
                (result, "cuMemHostAlloc", Kind::Pinned)
            }
            Device::CUDA_MANAGED => {
                let everybody = sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32;
                (sys::cuMemAllocManaged(&raw mut base, bytes, everybody), "cuMemAllocManaged", Kind::Managed)
            }
            _ if entered.has_pools => {
                (sys::cuMemAllocAsync(&raw mut base, bytes, raw(stream)), "cuMemAllocAsync", Kind::Pooled)
            }
            _ => (sys::cuMemAlloc_v2(&raw mut base, bytes), "cuMemAlloc", Kind::Plain),
        }
    };
    check(device, function, result)?;
    // Addresses of devices are as wide as those of the host.
    Ok((if pinned.is_null() { usize::try_from(base).unwrap_or(0) } else { pinned.expose_provenance() }, kind))
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        // Without a context the driver is shutting down, and the memory goes with it. Nobody else's call is told.
        let Ok(_entered) = enter(self.device) else { return };
        // To free memory is forbidden while any stream of the process is recorded, unless it is said to be harmless.
        let _relaxed = Relaxed::new();
        // SAFETY: what the driver gave goes back once, after the work on it: see `StreamUses`.
        unsafe {
            let _ = match self.kind {
                Kind::Pinned => sys::cuMemFreeHost(std::ptr::with_exposed_provenance_mut(self.base)),
                Kind::Pooled
                    if !self.queue.has_lost_handle()
                        && sys::cuMemFreeAsync(self.base as u64, self.queue.raw()) == CUresult::CUDA_SUCCESS =>
                {
                    return;
                }
                Kind::Pooled => {
                    // Its stream is gone. Of memory of a pool the driver takes it that nobody is at work on it any more; if
                    // nothing can be waited for, it is rather lost.
                    if self.queue.finish_or_all().is_err() {
                        return;
                    }
                    sys::cuMemFree_v2(self.base as u64)
                }
                Kind::Plain | Kind::Managed => sys::cuMemFree_v2(self.base as u64),
            };
        }
    }
}

/// A stream of a device that nothing but allocations while graphs are recorded goes to.
fn aside(device: Device) -> Result<Stream, DeviceError> {
    static STREAMS: OnceLock<Vec<OnceLock<Stream>>> = OnceLock::new();
    let count = super::device_count();
    let streams = STREAMS.get_or_init(|| (0..count).map(|_| OnceLock::new()).collect());
    let kept = usize::try_from(device.cuda_ordinal()).ok().and_then(|ordinal| streams.get(ordinal));
    if let Some(stream) = kept.and_then(OnceLock::get) {
        return Ok(*stream);
    }
    let mut made = std::ptr::null_mut();
    let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // SAFETY: a place for the handle; the device has been entered.
    check(device, "cuStreamCreate", unsafe { sys::cuStreamCreate(&raw mut made, flags) })?;
    let made = Stream::of_raw(made.addr() as u64);
    // Two threads may do this at once; the one stream too many costs nothing.
    Ok(kept.map_or(made, |kept| *kept.get_or_init(|| made)))
}
