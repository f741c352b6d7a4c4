//! Blocks of memory, of the host or of a device.

use super::counters::{Counter, Totals};
use super::cuda::ipc::Exported;
use super::cuda::{CudaMemory, StreamUses};
use super::host::mappings::MAPPINGS;
use super::host::{HostMemory, small};
use crate::device::{Device, unsupported};
use crate::dtype::DType;
use crate::error::{MemoryError, Result};

/// Contents of fresh memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Any bytes.
    Undefined,
    /// Zeros; for large blocks the operating system supplies them when a page is first touched.
    Zeros,
}

impl Contents {
    /// Contents of a new tensor without given elements: zeros where not every byte is an element, as Rust has no bools of
    /// other bytes than 0 and 1.
    pub fn of_new(dtype: DType) -> Contents {
        if dtype == DType::BOOL { Contents::Zeros } else { Contents::Undefined }
    }
}

/// The blocks that live, without small ones on the host, which are counted in their threads.
static LARGE: Counter = Counter::new();

/// Returns the small blocks that live, the others, and the bytes of freed ones that are kept for reuse. Other threads may change
/// them meanwhile.
pub(crate) fn counted() -> (Totals, Totals, usize) {
    let (small, kept) = small::counted();
    (small, LARGE.read(), kept + MAPPINGS.bytes())
}

/// One block of memory. Dropping it frees the memory, on any thread.
#[derive(Debug)]
pub struct Block {
    memory: Memory,
    bytes: usize,
}

#[derive(Debug)]
enum Memory {
    Host(HostMemory),
    /// In a box: the owners of host memory, which are many, are smaller.
    Cuda(Box<CudaMemory>),
}

impl Block {
    /// Allocates `bytes` (at least one) at a multiple of `alignment` bytes (0 means 1). CUDA memory is allocated and freed in
    /// the order of `stream`; host memory ignores it.
    ///
    /// # Errors
    /// [`DeviceError`](crate::DeviceError) for a device that is neither the host nor CUDA's, or cannot be used; [`MemoryError`].
    ///
    /// # Example
    /// ```
    /// use dlfield::Device;
    /// use dlfield::testing::{Block, Contents};
    /// let block = Block::allocate(Device::CPU, 100, 64, Contents::Zeros).unwrap();
    /// assert!(block.as_ptr().addr().is_multiple_of(64));
    /// assert_eq!((block.len(), block.is_empty()), (100, false));
    /// ```
    pub fn allocate(device: Device, bytes: usize, alignment: usize, contents: Contents) -> Result<Block> {
        let alignment = alignment.max(1);
        let memory = if device == Device::CPU {
            let memory = HostMemory::allocate(bytes, alignment, contents);
            Memory::Host(memory.ok_or_else(|| out_of_memory(bytes, alignment, device))?)
        } else if device.is_of_cuda() {
            Memory::Cuda(Box::new(CudaMemory::allocate(device, bytes, alignment, contents)?))
        } else {
            return Err(unsupported(device).into());
        };
        Ok(Block::new(memory, bytes))
    }

    /// Allocates `bytes` of zeros on a CUDA device that other processes may open, which lock `file` meanwhile: see
    /// [`Block::is_alone`].
    ///
    /// # Errors
    /// As for [`Block::allocate`].
    pub(crate) fn allocate_exported(device: Device, bytes: usize, file: i32) -> Result<Block> {
        if !device.is_cuda() {
            return Err(unsupported(device).into());
        }
        let memory = Memory::Cuda(Box::new(CudaMemory::allocate_exported(device, bytes, file)?));
        Ok(Block::new(memory, bytes))
    }

    /// Returns what another process needs to open the memory; `None` for memory that was not allocated for that.
    pub(crate) fn exported(&self) -> Option<Result<Exported>> {
        match &self.memory {
            Memory::Host(_) => None,
            Memory::Cuda(memory) => memory.exported(),
        }
    }

    /// Returns whether the memory may be freed: no other process has it open, nor can open it any more.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        match &self.memory {
            Memory::Host(_) => true,
            Memory::Cuda(memory) => memory.is_alone(),
        }
    }

    fn new(memory: Memory, bytes: usize) -> Block {
        let block = Block { memory, bytes };
        if !block.is_small() {
            LARGE.add(bytes);
        }
        block
    }

    /// Returns whether the block is on the host, and has at most 64 KiB with the bytes for its alignment.
    #[inline]
    pub(crate) fn is_small(&self) -> bool {
        matches!(&self.memory, Memory::Host(memory) if memory.is_small())
    }

    /// Returns the address of the first byte.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        match &self.memory {
            Memory::Host(memory) => memory.as_ptr(),
            Memory::Cuda(memory) => memory.as_ptr(),
        }
    }

    /// Returns the streams that use the block, which is freed after their work; `None` for memory that no device uses.
    pub(crate) fn stream_uses(&self) -> Option<Box<StreamUses>> {
        match &self.memory {
            Memory::Host(_) => None,
            Memory::Cuda(memory) => Some(memory.stream_uses()),
        }
    }

    /// Returns where the driver's allocation starts, if it is device memory.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda_base(&self) -> Option<usize> {
        match &self.memory {
            Memory::Host(_) => None,
            Memory::Cuda(memory) => memory.base(),
        }
    }

    /// Leaves the memory to other code, which will free it.
    pub(crate) fn forget(self) {
        LARGE.remove(self.bytes);
        std::mem::forget(self);
    }

    /// Returns the number of bytes requested.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns whether no bytes were requested.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if !self.is_small() {
            LARGE.remove(self.bytes);
        }
    }
}

/// Returns the error for memory that cannot be allocated.
#[cold]
pub(crate) fn out_of_memory(bytes: usize, alignment: usize, device: Device) -> MemoryError {
    let sentence =
        format_args!("{bytes} bytes, aligned to {alignment} bytes, cannot be allocated on {device}: out of memory");
    MemoryError::from_sentence("shape", &sentence)
}
