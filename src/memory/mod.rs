//! The only code that allocates memory for elements.

mod host;

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

/// Memory that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "shape: {bytes} bytes at a multiple of {alignment} on {device} cannot be allocated, the system has not got them"
)]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub bytes: usize,
    /// Bytes whose multiple the start has to be.
    pub alignment: usize,
    /// Where.
    pub device: Device,
}

/// One block of memory, freed when dropped, on any thread.
#[derive(Debug)]
pub struct Block {
    memory: host::HostMemory,
    bytes: usize,
}

impl Block {
    /// Allocates `bytes`, or one if there are none, at a multiple of `alignment` (0 is as good as 1).
    ///
    /// # Errors
    /// [`DeviceError::NotSupported`] for a device other than the host, [`OutOfMemory`] if there is not enough.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Device, memory::Block, memory::Contents};
    /// let block = Block::allocate(Device::CPU, 100, 64, Contents::Zeros).unwrap();
    /// assert!(block.as_ptr().addr().is_multiple_of(64));
    /// assert_eq!((block.len(), block.is_empty()), (100, false));
    /// ```
    pub fn allocate(device: Device, bytes: usize, alignment: usize, contents: Contents) -> Result<Block> {
        if device != Device::CPU {
            return Err(DeviceError::NotSupported { device }.into());
        }
        let memory = host::HostMemory::allocate(bytes, alignment.max(1), contents).ok_or(OutOfMemory {
            bytes,
            alignment,
            device,
        })?;
        Ok(Block { memory, bytes })
    }

    /// Address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.memory.as_ptr()
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
