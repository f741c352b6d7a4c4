//! Blocks of the allocator.

#![allow(unsafe_code, reason = "raw allocation has no safe interface")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::memory::Contents;

/// The allocator's default alignment in bytes. Asking it for more takes a slower path than asking for more bytes.
const ALLOCATOR_ALIGNMENT: usize = 16;

/// Whether [`freeze`] does what it says. Miri has no assembly, and in WebAssembly it is unstable: there undefined contents are
/// zeros.
const FREEZES: bool = cfg!(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")));

/// A block of the allocator. To the compiler all its bytes have been written, regardless of its contents.
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
                Contents::Undefined if FREEZES => alloc(layout),
                _ => alloc_zeroed(layout),
            }
        })?;
        freeze(base.as_ptr());
        Some(AllocatorBlock { base, layout })
    }

    /// Returns the address of the block.
    #[inline]
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns its bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for AllocatorBlock {
    fn drop(&mut self) {
        // SAFETY: `base` came from the allocator with this layout and is freed here only.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

/// Makes the undefined bytes of a new block plain bytes of unknown value. Copies, casts and views read elements as numbers, also
/// those that a program has not written, and for Rust that is undefined behaviour, though any bytes are good numbers. The
/// compiler must assume that this assembly has written them: Rust's planned `freeze` will replace it. Nobody else has the block
/// yet, so no other thread can be reading what it seems to write. Mappings come from the system, with bytes that are defined.
#[inline]
fn freeze(start: *mut u8) {
    #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
    // SAFETY: the assembly does nothing.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) start, options(nostack, preserves_flags));
    }
    let _ = start;
}
