//! Blocks of the allocator.

#![allow(unsafe_code, reason = "raw allocation has no safe interface")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use super::Contents;

/// The allocator's default alignment in bytes. Asking it for more takes a slower path than asking for more bytes.
const ALLOCATOR_ALIGNMENT: usize = 16;

/// A block of the allocator.
#[derive(Debug)]
pub(super) struct AllocatorBlock {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: this value alone owns the memory, and the allocator is not bound to a thread.
unsafe impl Send for AllocatorBlock {}
// SAFETY: shared access only returns the address.
unsafe impl Sync for AllocatorBlock {}

impl AllocatorBlock {
    /// Allocates `bytes`, at least 1.
    pub(super) fn allocate(bytes: usize, contents: Contents) -> Option<AllocatorBlock> {
        let layout = Layout::from_size_align(bytes, ALLOCATOR_ALIGNMENT).ok()?;
        // SAFETY: the layout's size is not zero.
        let base = NonNull::new(unsafe {
            match contents {
                Contents::Undefined => alloc(layout),
                Contents::Zeros => alloc_zeroed(layout),
            }
        })?;
        Some(AllocatorBlock { base, layout })
    }

    /// Address of the block.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for AllocatorBlock {
    fn drop(&mut self) {
        // SAFETY: `base` came from the allocator with this layout and is freed here only.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}
