//! Device memory that several processes use, as fields of bytes.

use super::owner::WeakOwner;
use super::{Owner, Tensor};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Promise;
use crate::memory::cuda::OpenedMemory;
use crate::memory::cuda::ipc::Exported;

/// A block of device memory that other processes use too. It does not keep the memory.
#[derive(Clone, Debug)]
pub struct SharedBlock {
    owner: WeakOwner,
    bytes: Descriptor,
}

impl SharedBlock {
    /// Allocates the block for a copy of a field on a CUDA device, for processes that lock `file` while they have it open.
    /// Returns its bytes too, and what another process needs to open them. The memory is freed when nobody has it any more.
    ///
    /// # Errors
    /// As for [`Tensor::empty`]; [`crate::DeviceError`].
    pub fn allocate(like: &Tensor, file: i32) -> Result<(SharedBlock, Tensor, Exported)> {
        let place = like.spec().place()?;
        let (owner, start, exported) = Owner::allocate_exported(place.device, place.block_bytes, file)?;
        owner.describe_block(like.descriptor.nbytes(), like.descriptor.dims());
        let (block, bytes) = SharedBlock::of(owner, start, place.device, place.block_bytes)?;
        Ok((block, bytes, exported))
    }

    /// Opens a block of another process, of which a shared lock on `file` is held; returns its bytes too.
    ///
    /// # Errors
    /// As for [`OpenedMemory::open`].
    pub fn open(device: Device, handle: [u8; 64], bytes: usize, file: i32) -> Result<(SharedBlock, Tensor)> {
        let memory = OpenedMemory::open(device, handle, bytes, file)?;
        let (start, uses) = (memory.as_ptr(), memory.stream_uses()?);
        SharedBlock::of(Owner::foreign(memory).freed_after(uses), start, device, bytes)
    }

    fn of(owner: Owner, start: *mut u8, device: Device, bytes: usize) -> Result<(SharedBlock, Tensor)> {
        let size = i64::try_from(bytes).unwrap_or(i64::MAX);
        let bytes = Descriptor::new(start, device, DType::U8, false, &[size], &[1])?;
        let block = SharedBlock { owner: owner.downgrade(), bytes: bytes.clone() };
        // Other processes may write to it at any time. Nobody reads it yet.
        let _ = owner.mark_exported();
        // The bytes are those of the memory that the owner keeps.
        Ok((block, Tensor { descriptor: bytes, owner, promise: Promise::NONE, is_whole: false }))
    }

    /// Returns the bytes; `None` if the memory has no tensor in this process any more.
    pub fn bytes(&self) -> Option<Tensor> {
        let owner = self.owner.upgrade()?;
        // The bytes are those of the memory that the owner keeps.
        Some(Tensor { descriptor: self.bytes.clone(), owner, promise: Promise::NONE, is_whole: false })
    }
}
