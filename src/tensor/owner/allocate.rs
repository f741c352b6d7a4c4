//! Owners of memory that this crate allocates.

use super::{Owner, OwnerInner, OwnerKind, deferred_drop, registry};
use crate::device::Device;
use crate::device::unsupported;
use crate::error::{Error, Result};
use crate::memory::cuda::ipc::Exported;
use crate::memory::{Block, Contents};

impl Owner {
    /// Allocates memory and owns it; returns its address too. CUDA memory is allocated in the current stream.
    ///
    /// # Errors
    /// As for [`Block::allocate`].
    pub(in crate::tensor) fn allocate(
        device: Device,
        bytes: usize,
        alignment: usize,
        contents: Contents,
    ) -> Result<(Owner, *mut u8)> {
        Owner::of_block(device, || Block::allocate(device, bytes, alignment, contents))
    }

    /// Allocates zeros on a CUDA device that other processes may open, which lock `file` meanwhile, and owns them; returns
    /// their address and what such a process needs, too.
    ///
    /// # Errors
    /// As for [`Block::allocate`].
    pub(in crate::tensor) fn allocate_exported(
        device: Device,
        bytes: usize,
        file: i32,
    ) -> Result<(Owner, *mut u8, Exported)> {
        let (owner, start) = Owner::of_block(device, || Block::allocate_exported(device, bytes, file))?;
        let exported = match owner.0.as_deref().map(|inner| &*inner.kind) {
            Some(OwnerKind::Block(block)) => block.exported(),
            _ => None,
        };
        let exported = exported.ok_or_else(|| unsupported(device))??;
        Ok((owner, start, exported))
    }

    fn of_block(device: Device, had: impl Fn() -> Result<Block>) -> Result<(Owner, *mut u8)> {
        let block = match had() {
            // Memory whose release waited for the end of a graph capture, or for other processes, may be freed by now.
            Err(Error::Memory(_)) if deferred_drop::retry(usize::MAX) => had()?,
            had => had?,
        };
        let (start, uses, is_small) = (block.as_ptr(), block.stream_uses(), block.is_small());
        let owner = OwnerInner::with_stream_uses(OwnerKind::Block(block), uses.into());
        owner.iter().filter(|_| !is_small).for_each(|owner| registry::enter(owner, device));
        Ok((Owner(owner), start))
    }
}
