//! Freed small host blocks are cached for reuse: the C library's allocator keeps blocks of up to 1 KiB at hand, and takes
//! several times as long as the rest of an allocation to merge and to split larger ones.
//!
//! Each thread has a cache of its own, which needs no lock; it ends with its thread.

use std::cell::RefCell;

use super::host::AllocatorBlock;

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
