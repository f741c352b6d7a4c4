//! Device memory, pinned host memory, and managed memory, which both can reach.

#![allow(unsafe_code, reason = "functions of the driver")]

use cudarc::driver::sys::{self, CUresult};

use super::capture::raw;
use super::context::{Relaxed, enter, own_stream};
use super::driver::check;
use super::ipc;
use super::lent::UsedStream;
use super::order::order;
use super::stream_uses::StreamUses;
use super::streams::error_if_capturing;
use super::streams::is_capturing;
use super::use_lock::UseLock;
use crate::device::Device;
use crate::error::{MemoryError, Result};
use crate::memory::Contents;
use crate::memory::block::out_of_memory;
use crate::memory::cuda::ipc::Exported;
use crate::memory::cuda::{Stream, current_stream};

/// Alignment of the driver's allocations in bytes.
const ALIGNMENT: usize = 256;

/// Allocations of a multiple of this share no memory with others, as far as the driver maps it for other processes.
const PIECE: usize = 2 << 20;

/// An owned block of memory.
#[derive(Debug)]
pub(in crate::memory) struct CudaMemory {
    base: usize,
    start: usize,
    device: Device,
    /// The stream that it was allocated on.
    used: UsedStream,
    kind: BlockKind,
    /// Of memory that other processes may open. Given back after the memory is freed.
    lock: Option<UseLock>,
}

/// How the memory was allocated, and is freed.
#[derive(Clone, Copy, Debug)]
enum BlockKind {
    /// From the device's pool, in stream order.
    Pooled,
    /// From the device, synchronously.
    Plain,
    Pinned,
    Managed,
}

impl CudaMemory {
    /// Allocates `bytes` at a multiple of `alignment`, for work on the current stream.
    ///
    /// # Errors
    /// [`MemoryError`], [`DeviceError`](crate::DeviceError).
    pub(in crate::memory) fn allocate(
        device: Device,
        bytes: usize,
        alignment: usize,
        contents: Contents,
    ) -> Result<CudaMemory> {
        let out_of_memory = || out_of_memory(bytes, alignment, device);
        let room = if ALIGNMENT.is_multiple_of(alignment) { 0 } else { alignment };
        let wanted = bytes.max(1).checked_add(room).ok_or_else(out_of_memory)?;
        // During graph capture nothing runs yet. The memory has to exist all the same, and to stay allocated between the
        // launches of the graph, so it is allocated on another stream.
        let current = current_stream(device);
        let is_captured = is_capturing(device, current.stream())?;
        let entered = enter(device)?;
        // Another stream may be captured, too.
        let _relaxed = Relaxed::new();
        let (stream, used) = match is_captured {
            true => (own_stream(device)?, UsedStream::Own(device)),
            false => (current.stream(), current.used().clone()),
        };
        let (base, kind) = allocate_raw(device, entered.has_pools, wanted, stream, out_of_memory)?;
        let memory = CudaMemory { base, start: base.next_multiple_of(alignment), device, used, kind, lock: None };
        if contents == Contents::Zeros {
            memory.zero(wanted, stream)?;
        }
        if is_captured {
            // SAFETY: a stream of this crate, which is never captured.
            check(device, "cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(raw(stream)) })?;
        }
        Ok(memory)
    }

    /// Allocates `bytes` of zeros that other processes may open, which lock `file` meanwhile.
    ///
    /// CUDA has handles for memory of `cuMemAlloc` only, not for that of a pool. The driver may lay several of these allocations
    /// into one piece of memory, and shares all of that piece, so CUDA's programming guide ("Interprocess Communication")
    /// recommends sizes in multiples of 2 MiB, which have pieces of their own.
    ///
    /// # Errors
    /// As for [`CudaMemory::allocate`]; [`DeviceError`](crate::DeviceError) during a graph capture.
    pub(in crate::memory) fn allocate_exported(device: Device, bytes: usize, file: i32) -> Result<CudaMemory> {
        let out_of_memory = || out_of_memory(bytes, ALIGNMENT, device);
        let current = current_stream(device);
        let stream = current.stream();
        error_if_capturing(device, stream)?;
        let lock = UseLock::of(file)?;
        let _entered = enter(device)?;
        let _relaxed = Relaxed::new();
        let wanted = bytes.max(1).checked_next_multiple_of(PIECE).ok_or_else(out_of_memory)?;
        let (base, kind) = allocate_raw(device, false, wanted, stream, out_of_memory)?;
        let memory = CudaMemory { base, start: base, device, used: current.used().clone(), kind, lock: Some(lock) };
        // Other processes see what the field leaves out, too.
        memory.zero(wanted, stream)?;
        Ok(memory)
    }

    fn zero(&self, bytes: usize, stream: Stream<'_>) -> Result<()> {
        if matches!(self.kind, BlockKind::Pinned) {
            // SAFETY: fresh host memory of at least so many bytes.
            unsafe { std::ptr::with_exposed_provenance_mut::<u8>(self.base).write_bytes(0, bytes) };
            return Ok(());
        }
        // SAFETY: fresh memory of at least so many bytes.
        let result = unsafe { sys::cuMemsetD8Async(self.base as u64, 0, bytes, raw(stream)) };
        check(self.device, "cuMemsetD8Async", result)?;
        if self.device.is_host_readable() {
            // The host may read it at once.
            // SAFETY: the stream is not captured.
            check(self.device, "cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(raw(stream)) })?;
        }
        Ok(())
    }

    pub(in crate::memory) fn as_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.start)
    }

    /// Returns what another process needs to open the memory; `None` for memory that was not allocated for that.
    pub(in crate::memory) fn exported(&self) -> Option<Result<Exported>> {
        self.lock.as_ref().map(|lock| ipc::export(self.device, self.base, lock))
    }

    /// Returns whether no other process has the memory open, nor can open it any more.
    pub(in crate::memory) fn is_alone(&self) -> bool {
        if let Some(lock) = &self.lock {
            return lock.is_alone();
        }
        true
    }

    /// Returns where the allocation starts, if it is device memory that may be freed without asking other processes.
    pub(in crate::memory) fn base(&self) -> Option<usize> {
        if self.lock.is_some() {
            return None;
        }
        matches!(self.kind, BlockKind::Pooled | BlockKind::Plain).then_some(self.base)
    }

    /// Returns fresh stream uses: only the allocation itself has used the memory.
    pub(in crate::memory) fn stream_uses(&self) -> Box<StreamUses> {
        StreamUses::of_block(self.device, self.used.clone())
    }
}

/// Allocates memory of the kind that the device stands for; returns its address. The caller has entered the device.
fn allocate_raw(
    device: Device,
    from_pool: bool,
    bytes: usize,
    stream: Stream<'_>,
    out_of_memory: impl FnOnce() -> MemoryError,
) -> Result<(usize, BlockKind)> {
    let (mut base, mut pinned) = (0u64, std::ptr::null_mut());
    // SAFETY: the driver writes the addresses to live variables.
    let (result, function, kind) = unsafe {
        match device {
            Device::CUDA_HOST => {
                let result = sys::cuMemHostAlloc(&raw mut pinned, bytes, sys::CU_MEMHOSTALLOC_PORTABLE);
                (result, "cuMemHostAlloc", BlockKind::Pinned)
            }
            Device::CUDA_MANAGED => {
                let everybody = sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32;
                (sys::cuMemAllocManaged(&raw mut base, bytes, everybody), "cuMemAllocManaged", BlockKind::Managed)
            }
            _ if from_pool => {
                (sys::cuMemAllocAsync(&raw mut base, bytes, raw(stream)), "cuMemAllocAsync", BlockKind::Pooled)
            }
            _ => (sys::cuMemAlloc_v2(&raw mut base, bytes), "cuMemAlloc", BlockKind::Plain),
        }
    };
    if result == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return Err(out_of_memory().into());
    }
    check(device, function, result)?;
    // Device addresses are as wide as host addresses.
    Ok((if pinned.is_null() { usize::try_from(base).unwrap_or(0) } else { pinned.expose_provenance() }, kind))
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        // Without a context the driver is shutting down and frees the memory itself. An error here would concern no caller.
        let Ok(_entered) = enter(self.device) else { return };
        // Freeing memory is forbidden while any stream of the process is captured, unless the thread's capture mode is relaxed.
        let _relaxed = Relaxed::new();
        // SAFETY: memory of the driver is freed once, after the work on it: see `StreamUses`.
        unsafe {
            let _ = match self.kind {
                BlockKind::Pinned => sys::cuMemFreeHost(std::ptr::with_exposed_provenance_mut(self.base)),
                BlockKind::Pooled => {
                    let ordered = self.used.freeing_stream().and_then(|stream| {
                        order((self.device, stream), &self.used)?;
                        Ok(stream)
                    });
                    // Memory that may be in use is left allocated.
                    let Ok(stream) = ordered else { return };
                    if sys::cuMemFreeAsync(self.base as u64, raw(stream)) == CUresult::CUDA_SUCCESS
                        || sys::cuStreamSynchronize(raw(stream)) != CUresult::CUDA_SUCCESS
                    {
                        return;
                    }
                    sys::cuMemFree_v2(self.base as u64)
                }
                BlockKind::Plain | BlockKind::Managed => sys::cuMemFree_v2(self.base as u64),
            };
        }
    }
}
