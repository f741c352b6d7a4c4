//! Blocks of memory, of the host or of a device.

use super::cuda::ipc::Exported;
use super::cuda::{CudaMemory, StreamUses};
use super::host::HostMemory;
use super::{LARGEST_SMALL, OutOfMemory, counters};
use crate::device::{Device, DeviceError};
use crate::dtype::DType;
use crate::error::Result;

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

/// One block of memory. Dropping it frees the memory, on any thread.
#[derive(Debug)]
pub struct Block {
    memory: Memory,
    bytes: usize,
    alignment: usize,
}

#[derive(Debug)]
enum Memory {
    Host(HostMemory),
    Cuda(CudaMemory),
}

impl Block {
    /// Allocates `bytes` (at least one) at a multiple of `alignment` bytes (0 means 1). CUDA memory is allocated and freed in
    /// the order of `stream`; host memory ignores it.
    ///
    /// # Errors
    /// [`DeviceError::NotSupported`] for a device that is neither the host nor CUDA's, [`DeviceError::NoCuda`],
    /// [`OutOfMemory`].
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
            Memory::Host(memory.ok_or(OutOfMemory { bytes, alignment, device })?)
        } else if device.is_of_cuda() {
            Memory::Cuda(CudaMemory::allocate(device, bytes, alignment, contents)?)
        } else {
            return Err(DeviceError::NotSupported { device }.into());
        };
        let block = Block { memory, bytes, alignment };
        block.counter().add(bytes);
        Ok(block)
    }

    /// Allocates `bytes` of zeros on a CUDA device that other processes may open, which lock `file` meanwhile: see
    /// [`Block::is_alone`].
    ///
    /// # Errors
    /// As for [`Block::allocate`].
    pub(crate) fn allocate_exported(device: Device, bytes: usize, file: i32) -> Result<Block> {
        if !device.is_cuda() {
            return Err(DeviceError::NotSupported { device }.into());
        }
        let memory = Memory::Cuda(CudaMemory::allocate_exported(device, bytes, file)?);
        let block = Block { memory, bytes, alignment: 1 };
        block.counter().add(bytes);
        Ok(block)
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

    /// Returns whether this is host memory.
    #[inline]
    pub(crate) fn is_on_host(&self) -> bool {
        matches!(self.memory, Memory::Host(_))
    }

    /// Returns whether a freed block of this size may be kept for reuse with its owner: it is on the host, and short with the
    /// bytes for its alignment.
    #[inline]
    pub(crate) fn is_small(&self) -> bool {
        self.is_on_host() && self.bytes.saturating_add(self.alignment) <= LARGEST_SMALL
    }

    fn counter(&self) -> &'static counters::Counter {
        if self.is_small() { &counters::SMALL } else { &counters::LARGE }
    }

    /// Returns the alignment in bytes that was requested.
    #[inline]
    pub(crate) fn alignment(&self) -> usize {
        self.alignment
    }

    /// Makes all bytes of host memory zero.
    #[inline]
    pub(crate) fn clear_host(&mut self) {
        if let Memory::Host(memory) = &mut self.memory {
            memory.clear();
        }
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
        self.counter().remove(self.bytes);
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
        self.counter().remove(self.bytes);
    }
}
