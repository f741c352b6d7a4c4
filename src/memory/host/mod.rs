//! The pool of host memory: every block of it that dlfield allocates comes from here, and goes back here.
//!
//! | bytes, those for the alignment included | from | freed |
//! |---|---|---|
//! | to 64 KiB | the allocator, in size classes | kept by the thread: [`small`] |
//! | to 4 MiB | the allocator | given back |
//! | more, or alignments of more than a page | the system, in huge pages | kept by the process: [`mappings`] |
//!
//! A block is aligned by taking more bytes than requested. It is undefined or zero when it is allocated, whether it was used
//! before or not. Any thread may free it. A child of `fork` never waits for what a thread of its parent was doing here.

#![allow(unsafe_code, reason = "raw allocation has no safe interface")]
#![cfg_attr(
    not(any(unix, windows)),
    allow(clippy::absurd_extreme_comparisons, reason = "no block is large enough to be mapped")
)]

mod allocator_block;
pub(super) mod mappings;
pub(super) mod small;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use memmap2::{MmapMut, MmapOptions};

use super::Contents;
use allocator_block::AllocatorBlock;
use mappings::MAPPINGS;
use small::LARGEST as LARGEST_SMALL;

/// Whether the system maps memory; WebAssembly has only the allocator.
const CAN_MAP: bool = cfg!(any(unix, windows));

/// Bytes from which on a block is a mapping of its own, of huge pages if there are any.
const MMAP_MIN_BYTES: usize = if CAN_MAP { 4 << 20 } else { usize::MAX };

/// Bytes of a huge page, and its alignment, on the machines that this runs on; another size does no harm.
const HUGE_PAGE: usize = 2 << 20;

/// Large blocks start this many bytes apart, counted from a huge page, in turn. Blocks with equal offsets in their pages share
/// the sets of the caches, so that a stencil which reads several fields at one index would evict its own lines. The step moves
/// both the sets of a first-level cache (4 KiB) and those of a second-level cache (128 KiB and more).
const STAGGER_STEP: usize = (16 << 10) + 192;

/// The number of different starts; the last one is 243 KiB after the first.
const STAGGER_STARTS: usize = 16;

/// The number of the next start, modulo [`STAGGER_STARTS`].
static NEXT_START: AtomicUsize = AtomicUsize::new(0);

/// The largest alignment in bytes that a block of the allocator gets by over-allocation; beyond it a mapping costs no more memory.
const SPARED_FOR: usize = if CAN_MAP { 4096 } else { usize::MAX };

/// An owned block of host memory.
#[derive(Debug)]
pub(super) struct HostMemory {
    start: NonNull<u8>,
    /// Bytes from the start on.
    bytes: usize,
    /// `Some` until dropped; the memory is never reached through it.
    backing: Option<Backing>,
}

#[derive(Debug)]
enum Backing {
    Allocator(AllocatorBlock),
    Mapping(MmapMut),
}

// SAFETY: this value alone owns the memory, and neither the allocator nor a mapping is bound to a thread.
unsafe impl Send for HostMemory {}
// SAFETY: shared access only returns the address.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Allocates `bytes` (at least 1) at a multiple of `alignment`; `None` if there is not enough memory.
    #[inline]
    pub(super) fn allocate(bytes: usize, alignment: usize, contents: Contents) -> Option<HostMemory> {
        let all = bytes.max(1).checked_add(alignment)?;
        let (block, was_used) = if all <= LARGEST_SMALL {
            small::allocate(bytes, all, contents)?
        } else if bytes < MMAP_MIN_BYTES && alignment <= SPARED_FOR {
            (AllocatorBlock::allocate(all, contents)?, false)
        } else {
            return HostMemory::from_mapping(bytes.max(1), alignment, contents);
        };
        // SAFETY: the block has `alignment` bytes more than needed.
        let start = unsafe { align_up(block.base(), alignment) };
        let mut memory = HostMemory { start, bytes, backing: Some(Backing::Allocator(block)) };
        if was_used && contents == Contents::Zeros {
            memory.clear();
        }
        Some(memory)
    }

    /// Takes a kept mapping, and clears it if it must hold zeros, or maps fresh zero pages. Untouched pages cost nothing, so the
    /// extra bytes for alignment and stagger are address space only.
    fn from_mapping(bytes: usize, alignment: usize, contents: Contents) -> Option<HostMemory> {
        let huge = bytes >= MMAP_MIN_BYTES;
        let number = || NEXT_START.fetch_add(1, Ordering::Relaxed) % STAGGER_STARTS;
        let stagger = if huge { stagger(number(), alignment) } else { 0 };
        // Of two power-of-two alignments the larger one satisfies both; another alignment is not combined with huge pages.
        let alignment = if huge && alignment.is_power_of_two() { alignment.max(HUGE_PAGE) } else { alignment };
        let len = bytes.checked_add(alignment)?.checked_add(if huge { STAGGER_STARTS * STAGGER_STEP } else { 0 })?;
        let kept = MAPPINGS.take(len);
        let clear = kept.is_some() && contents == Contents::Zeros;
        let fresh = || map(len, bytes, huge);
        let mut mapping = match kept {
            Some(mapping) => mapping,
            None => fresh().or_else(|| if MAPPINGS.release_all() { fresh() } else { None })?,
        };
        let base = NonNull::new(mapping.as_mut_ptr())?;
        // SAFETY: the mapping has `alignment` bytes more than needed, and as many for the largest stagger.
        let start = unsafe { align_up(base, alignment).add(stagger) };
        let mut memory = HostMemory { start, bytes, backing: Some(Backing::Mapping(mapping)) };
        if clear {
            // Faster than fresh pages: the system would clear them as well, and map them.
            memory.clear();
        }
        Some(memory)
    }

    /// Returns whether the block is small: many are allocated, so they are only counted, in [`small`].
    #[inline]
    pub(super) fn is_small(&self) -> bool {
        matches!(&self.backing, Some(Backing::Allocator(block)) if block.len() <= LARGEST_SMALL)
    }

    /// Makes all bytes zero.
    fn clear(&mut self) {
        // SAFETY: `bytes` from the start on are in the block or mapping, which nobody else has.
        unsafe { self.start.write_bytes(0, self.bytes) };
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for HostMemory {
    #[inline]
    fn drop(&mut self) {
        match self.backing.take() {
            Some(Backing::Allocator(block)) if block.len() <= LARGEST_SMALL => small::free(self.bytes, block),
            Some(Backing::Mapping(mapping)) => MAPPINGS.keep(mapping),
            _ => {}
        }
    }
}

/// Returns the distance of a large block from its huge page, for one of [`STAGGER_STARTS`] numbers: a multiple of `alignment`.
fn stagger(number: usize, alignment: usize) -> usize {
    let distance = number * STAGGER_STEP;
    distance - distance % alignment
}

/// Maps fresh pages for a block of `bytes`, huge ones if there are any.
fn map(len: usize, bytes: usize, huge: bool) -> Option<MmapMut> {
    let mapping = MmapOptions::new().len(len).map_anon().ok()?;
    #[cfg(not(target_os = "linux"))]
    let _ = (bytes, huge);
    #[cfg(target_os = "linux")]
    if huge {
        // As many huge pages as the block would need without stagger: no further one is made for the few bytes behind them.
        let first = mapping.as_ptr().addr().next_multiple_of(HUGE_PAGE) - mapping.as_ptr().addr();
        let wanted = bytes.next_multiple_of(HUGE_PAGE).min(len.saturating_sub(first));
        // Kernels without huge pages return an error; the memory is usable all the same.
        let _ = mapping.advise_range(memmap2::Advice::HugePage, first, wanted);
    }
    Some(mapping)
}

/// Returns the first multiple of `alignment` at or after `base`.
///
/// # Safety
/// - `alignment` bytes from `base` on are part of one allocation.
unsafe fn align_up(base: NonNull<u8>, alignment: usize) -> NonNull<u8> {
    let address = base.addr().get();
    let step = if alignment.is_power_of_two() {
        // Without the division, which takes longer than the rest.
        address.wrapping_neg() & (alignment - 1)
    } else {
        address.next_multiple_of(alignment) - address
    };
    // SAFETY: the step is smaller than `alignment`.
    unsafe { base.add(step) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(memory: &HostMemory, len: usize) -> &[u8] {
        // SAFETY: `len` bytes were allocated and zeroed.
        unsafe { std::slice::from_raw_parts(memory.as_ptr(), len) }
    }

    #[test]
    fn blocks_are_aligned_and_zero() {
        for len in [1, 63, 4096, MMAP_MIN_BYTES - 1, MMAP_MIN_BYTES, MMAP_MIN_BYTES + 1] {
            for alignment in [64, 192, 1 << 16] {
                let memory = HostMemory::allocate(len, alignment, Contents::Zeros).expect("small");
                assert_eq!(memory.as_ptr().addr() % alignment, 0, "{len} bytes at {alignment}");
                assert!(bytes(&memory, len).iter().all(|byte| *byte == 0));
            }
        }
    }

    #[test]
    fn large_blocks_start_in_different_sets_of_the_caches() {
        for period in [4096, 128 << 10] {
            let mut sets: Vec<_> = (0..STAGGER_STARTS).map(|number| stagger(number, 64) % period / 64).collect();
            sets.sort_unstable();
            sets.dedup();
            assert_eq!(sets.len(), STAGGER_STARTS, "in a cache with {period} bytes in each way");
        }
        let memory = HostMemory::allocate(MMAP_MIN_BYTES, 64, Contents::Undefined).expect("small");
        assert!(memory.as_ptr().addr() % HUGE_PAGE < STAGGER_STARTS * STAGGER_STEP);
    }

    #[test]
    fn staggered_blocks_keep_their_alignment_and_their_end() {
        for alignment in [1, 64, 192, 4096, 24 << 10, 64 << 10, HUGE_PAGE, 2 * HUGE_PAGE] {
            for _ in 0..STAGGER_STARTS + 1 {
                let memory = HostMemory::allocate(MMAP_MIN_BYTES + 5, alignment, Contents::Zeros).expect("small");
                assert_eq!(memory.as_ptr().addr() % alignment, 0);
                let end = match &memory.backing {
                    Some(Backing::Mapping(mapping)) => mapping.as_ptr().addr() + mapping.len(),
                    _ => 0,
                };
                assert!(memory.as_ptr().addr() + MMAP_MIN_BYTES + 5 <= end);
            }
        }
    }

    #[test]
    fn zeros_are_zero_in_used_memory_too() {
        let len = MMAP_MIN_BYTES + (1 << 20) + 7;
        for _ in 0..2 * STAGGER_STARTS {
            let memory = HostMemory::allocate(len, 64, Contents::Zeros).expect("small");
            assert!(bytes(&memory, len).iter().all(|byte| *byte == 0));
            // SAFETY: `len` bytes were allocated.
            unsafe { memory.as_ptr().write_bytes(0xA5, len) };
        }
    }
}
