//! Freed small host blocks are cached for reuse: the C library's allocator keeps blocks of up to 1 KiB at hand, and takes
//! several times as long as the rest of an allocation to merge and to split larger ones.
//!
//! Each thread has a cache of its own, which needs no lock; it ends with its thread.

use std::cell::RefCell;

use super::allocator_block::AllocatorBlock;

/// Bytes of the smallest block that is cached: the C library is fast with smaller ones.
const SMALLEST: usize = 1 << 10;

/// Bytes of the largest block that is cached.
const LARGEST: usize = 64 << 10;

/// Bytes of all blocks in the cache of a thread.
const CAPACITY: usize = 512 << 10;

/// Blocks of one size in the cache of a thread.
const DEPTH: usize = 16;

/// Lists in the cache of a thread, a prime number. Blocks of two sizes that share a list displace each other.
const LISTS: usize = 31;

thread_local! {
    static CACHE: RefCell<SmallBlocks> = const { RefCell::new(SmallBlocks::new()) };
}

/// Unused blocks of a thread.
struct SmallBlocks {
    lists: [List; LISTS],
    /// Bytes of all of them.
    bytes: usize,
}

/// Unused blocks of one size, the newest last: its memory is still in the processor's caches.
struct List {
    bytes: usize,
    blocks: Vec<AllocatorBlock>,
}

/// Takes a block of exactly this size, with undefined contents, out of the cache of this thread.
pub(super) fn take(bytes: usize) -> Option<AllocatorBlock> {
    if !(SMALLEST..=LARGEST).contains(&bytes) {
        return None;
    }
    // A thread that is about to end has no cache any more.
    CACHE.try_with(|cache| cache.try_borrow_mut().ok()?.take(bytes)).ok().flatten()
}

/// Puts a block into the cache of this thread, or frees it.
pub(super) fn put(block: AllocatorBlock) {
    if (SMALLEST..=LARGEST).contains(&block.bytes()) {
        let _ = CACHE.try_with(|cache| cache.try_borrow_mut().map(|mut cache| cache.put(block)));
    }
}

impl SmallBlocks {
    const fn new() -> SmallBlocks {
        SmallBlocks { lists: [const { List { bytes: 0, blocks: Vec::new() } }; LISTS], bytes: 0 }
    }

    /// Returns the list of blocks of this size, which may have blocks of another one.
    fn list(&mut self, bytes: usize) -> &mut List {
        // Sizes differ by the size of an element at least, and blocks of most sizes are multiples of 64 bytes.
        &mut self.lists[(bytes / 8 + bytes / 512) % LISTS]
    }

    fn take(&mut self, bytes: usize) -> Option<AllocatorBlock> {
        let list = self.list(bytes);
        if list.bytes != bytes {
            return None;
        }
        let block = list.blocks.pop()?;
        self.bytes -= bytes;
        Some(block)
    }

    fn put(&mut self, block: AllocatorBlock) {
        let bytes = block.bytes();
        if self.list(bytes).bytes != bytes {
            self.empty_list_for(bytes);
        }
        if self.bytes + bytes <= CAPACITY && self.list(bytes).blocks.len() < DEPTH {
            self.list(bytes).blocks.push(block);
            self.bytes += bytes;
        }
    }

    /// Frees the blocks of another size whose list is that of `bytes`.
    #[cold]
    fn empty_list_for(&mut self, bytes: usize) {
        let list = self.list(bytes);
        let freed = list.bytes * list.blocks.len();
        list.blocks.clear();
        list.bytes = bytes;
        self.bytes -= freed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Stream;
    use crate::device::Device;
    use crate::memory::{Block, Contents};

    /// Whether every byte of all lists is counted, and none holds too much.
    fn is_consistent(cache: &SmallBlocks) -> bool {
        let bytes: usize = cache.lists.iter().map(|list| list.bytes * list.blocks.len()).sum();
        let of_one_size = |list: &List| list.blocks.iter().all(|block| block.bytes() == list.bytes);
        let short = |list: &List| list.blocks.len() <= DEPTH;
        bytes == cache.bytes && bytes <= CAPACITY && cache.lists.iter().all(|list| of_one_size(list) && short(list))
    }

    /// A block of 4 KiB of elements, which comes from the cache if it has one.
    fn cached() -> Block {
        Block::allocate(Device::CPU, 4096, 64, Contents::Zeros, Stream::LEGACY).expect("small")
    }

    fn block(bytes: usize) -> AllocatorBlock {
        AllocatorBlock::allocate(bytes, Contents::Undefined).expect("small")
    }

    #[test]
    fn the_newest_block_of_a_size_comes_back() {
        let mut cache = SmallBlocks::new();
        assert!(cache.take(4096).is_none());
        let blocks = [block(4096), block(4096)];
        let newest = blocks[1].base();
        blocks.into_iter().for_each(|block| cache.put(block));
        assert!(cache.take(4104).is_none());
        assert_eq!(cache.take(4096).map(|block| block.base()), Some(newest));
        assert!(is_consistent(&cache) && cache.take(4096).is_some() && cache.take(4096).is_none());
        assert_eq!(cache.bytes, 0);
    }

    #[test]
    fn little_is_kept_of_any_sizes() {
        let mut cache = SmallBlocks::new();
        for round in 0..4 * DEPTH {
            for bytes in (SMALLEST..=LARGEST).step_by(1000 + round) {
                cache.put(block(bytes));
                assert!(is_consistent(&cache), "{bytes} bytes in round {round}");
            }
        }
        for _ in 0..2 * DEPTH {
            cache.put(block(LARGEST));
        }
        assert!(is_consistent(&cache));
    }

    #[test]
    fn usual_sizes_do_not_displace_each_other() {
        let mut cache = SmallBlocks::new();
        // Cubes of 8 and 16 elements with elements of 4 and 8 bytes, and the bytes for their alignment.
        let sizes = [8 * 8 * 8 * 4 + 64, 8 * 8 * 8 * 8 + 64, 16 * 16 * 16 * 4 + 64, 16 * 16 * 16 * 8 + 64];
        sizes.iter().for_each(|bytes| cache.put(block(*bytes)));
        assert!(sizes.iter().all(|bytes| cache.take(*bytes).is_some()));
    }

    #[test]
    fn a_thread_that_ends_frees_its_blocks_and_may_still_allocate() {
        /// Allocates and frees while the variables of the thread are dropped.
        struct Late;

        impl Drop for Late {
            fn drop(&mut self) {
                drop(cached());
            }
        }

        thread_local! {
            static LATE: Late = const { Late };
        }
        std::thread::spawn(|| {
            LATE.with(|_| ());
            drop(cached());
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_block_may_be_freed_in_another_thread() {
        let memory = cached();
        std::thread::spawn(|| drop(memory)).join().expect("no panic");
    }
}
