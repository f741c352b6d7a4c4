//! The only code that allocates memory for elements.

mod block_cache;
pub mod cuda;
mod error;
mod host;

use self::cuda::{CudaMemory, Stream, StreamUses};
pub use self::error::OutOfMemory;
use crate::device::{Device, DeviceError};
use crate::error::Result;

/// What fresh memory holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Whatever was there.
    Undefined,
    /// Zeros; for large blocks the operating system supplies them when a page is first touched.
    Zeros,
}

/// One block of memory, freed when dropped, on any thread.
#[derive(Debug)]
pub struct Block {
    memory: Memory,
    bytes: usize,
}

#[derive(Debug)]
enum Memory {
    Host(host::HostMemory),
    Cuda(CudaMemory),
}

impl Block {
    /// Allocates `bytes`, or one if there are none, at a multiple of `alignment` (0 is as good as 1). Memory that CUDA looks
    /// after is allocated, and freed, in the order of `stream`; for that of the host it means nothing.
    ///
    /// # Errors
    /// [`DeviceError::NotSupported`] for a device of neither kind, [`DeviceError::NoCuda`], [`OutOfMemory`] if there is not
    /// enough.
    ///
    /// # Example
    /// ```
    /// use dlfield::cuda::Stream;
    /// use dlfield::{Device, memory::Block, memory::Contents};
    /// let block = Block::allocate(Device::CPU, 100, 64, Contents::Zeros, Stream::LEGACY).unwrap();
    /// assert!(block.as_ptr().addr().is_multiple_of(64));
    /// assert_eq!((block.len(), block.is_empty()), (100, false));
    /// ```
    pub fn allocate(
        device: Device,
        bytes: usize,
        alignment: usize,
        contents: Contents,
        stream: Stream,
    ) -> Result<Block> {
        let alignment = alignment.max(1);
        let memory = if device == Device::CPU {
            let memory = host::HostMemory::allocate(bytes, alignment, contents);
            Memory::Host(memory.ok_or(OutOfMemory { bytes, alignment, device })?)
        } else if device.is_of_cuda() {
            Memory::Cuda(CudaMemory::allocate(device, bytes, alignment, contents, stream)?)
        } else {
            return Err(DeviceError::NotSupported { device }.into());
        };
        Ok(Block { memory, bytes })
    }

    /// Address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        match &self.memory {
            Memory::Host(memory) => memory.as_ptr(),
            Memory::Cuda(memory) => memory.as_ptr(),
        }
    }

    /// The streams that use the block, which is freed after their work; `None` for memory that no device uses.
    pub(crate) fn stream_uses(&self) -> Option<Box<StreamUses>> {
        match &self.memory {
            Memory::Host(_) => None,
            Memory::Cuda(memory) => Some(memory.stream_uses()),
        }
    }

    /// Where the driver's allocation starts, if it is a device's.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda_base(&self) -> Option<usize> {
        match &self.memory {
            Memory::Host(_) => None,
            Memory::Cuda(memory) => memory.base(),
        }
    }

    /// Number of bytes asked for.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether no bytes were asked for.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}
