//! Host memory: small blocks from the allocator, large ones as mappings with huge pages.

#![allow(unsafe_code, reason = "raw allocation has no safe interface")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use memmap2::{MmapMut, MmapOptions};

use super::Contents;
use super::block_cache::CACHE;

/// Bytes from which on a block is a mapping of its own, which starts at a huge page and is zero until touched.
const MMAP_MIN_BYTES: usize = 4 << 20;

/// Bytes of a huge page, and its alignment, on the machines that this runs on; another size does no harm.
const HUGE_PAGE: usize = 2 << 20;

/// The largest alignment in bytes that a small block gets by over-allocation; beyond it a mapping costs no more memory.
const SPARED_FOR: usize = 4096;

/// The allocator's default alignment in bytes. Asking it for more takes a slower path than asking for more bytes.
const ALLOCATOR_ALIGNMENT: usize = 16;

/// An owned block of host memory.
#[derive(Debug)]
pub(super) struct HostMemory {
    start: NonNull<u8>,
    backing: Backing,
}

#[derive(Debug)]
enum Backing {
    /// Start and layout of the allocator's block.
    Allocator(NonNull<u8>, Layout),
    /// `Some` until dropped; never read through this field.
    Mapping(Option<MmapMut>),
}

// SAFETY: this value alone owns the memory, and neither the allocator nor a mapping is bound to a thread.
unsafe impl Send for HostMemory {}
// SAFETY: shared access only returns the address.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Allocates `bytes` (at least 1) at a multiple of `alignment`; `None` if there is not enough memory.
    pub(super) fn allocate(bytes: usize, alignment: usize, contents: Contents) -> Option<HostMemory> {
        if bytes < MMAP_MIN_BYTES && alignment <= SPARED_FOR {
            HostMemory::from_allocator(bytes.max(1), alignment, contents)
        } else {
            HostMemory::from_mapping(bytes.max(1), alignment, contents)
        }
    }

    fn from_allocator(bytes: usize, alignment: usize, contents: Contents) -> Option<HostMemory> {
        let layout = Layout::from_size_align(bytes.checked_add(alignment)?, ALLOCATOR_ALIGNMENT).ok()?;
        // SAFETY: the layout's size is not zero.
        let base = NonNull::new(unsafe {
            match contents {
                Contents::Undefined => alloc(layout),
                Contents::Zeros => alloc_zeroed(layout),
            }
        })?;
        // SAFETY: the block has `alignment` bytes more than needed.
        Some(HostMemory { start: unsafe { align_up(base, alignment) }, backing: Backing::Allocator(base, layout) })
    }

    /// Maps fresh zero pages, or takes a cached block if the contents may be undefined. Untouched pages cost nothing, so the
    /// extra bytes for the alignment are address space only.
    fn from_mapping(bytes: usize, alignment: usize, contents: Contents) -> Option<HostMemory> {
        let huge = bytes >= MMAP_MIN_BYTES;
        // Of two power-of-two alignments the larger one satisfies both; another alignment is not combined with huge pages.
        let alignment = if huge && alignment.is_power_of_two() { alignment.max(HUGE_PAGE) } else { alignment };
        let len = bytes.checked_add(alignment)?;
        let cached = if contents == Contents::Undefined { CACHE.take(len) } else { None };
        let mut mapping = match cached {
            Some(mapping) => mapping,
            None => map(len, huge).or_else(|| if CACHE.release_all() { map(len, huge) } else { None })?,
        };
        let base = NonNull::new(mapping.as_mut_ptr())?;
        // SAFETY: the mapping has `alignment` bytes more than needed.
        Some(HostMemory { start: unsafe { align_up(base, alignment) }, backing: Backing::Mapping(Some(mapping)) })
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        match &mut self.backing {
            // SAFETY: `base` came from the allocator with this layout and is freed here only.
            Backing::Allocator(base, layout) => unsafe { dealloc(base.as_ptr(), *layout) },
            Backing::Mapping(mapping) => {
                if let Some(mapping) = mapping.take() {
                    CACHE.put(mapping);
                }
            }
        }
    }
}

/// Maps fresh pages, huge ones if there are any.
fn map(len: usize, huge: bool) -> Option<MmapMut> {
    let mapping = MmapOptions::new().len(len).map_anon().ok()?;
    #[cfg(target_os = "linux")]
    if huge {
        // Kernels without huge pages return an error; the memory is usable all the same.
        let _ = mapping.advise(memmap2::Advice::HugePage);
    }
    Some(mapping)
}

/// Returns the first multiple of `alignment` at or after `base`.
///
/// # Safety
/// - `alignment` bytes from `base` on are part of one allocation.
unsafe fn align_up(base: NonNull<u8>, alignment: usize) -> NonNull<u8> {
    let address = base.addr().get();
    // SAFETY: the step is smaller than `alignment`.
    unsafe { base.add(address.next_multiple_of(alignment) - address) }
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
    fn large_blocks_start_at_a_huge_page() {
        let memory = HostMemory::allocate(MMAP_MIN_BYTES, 64, Contents::Undefined).expect("small");
        assert_eq!(memory.as_ptr().addr() % HUGE_PAGE, 0);
    }

    #[test]
    fn impossible_sizes_are_none() {
        assert!(HostMemory::allocate(usize::MAX, 64, Contents::Undefined).is_none());
        assert!(HostMemory::allocate(1 << 62, 64, Contents::Zeros).is_none());
    }
}
