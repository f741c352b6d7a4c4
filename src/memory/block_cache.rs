//! Freed host blocks are cached for reuse: programs allocate fields of a few sizes again and again, and for the system to
//! clear fresh pages takes as long as most work on them.

use std::collections::VecDeque;

use memmap2::MmapMut;

use super::fork_lock::ForkLock;

/// Bytes of the longest mapping that is cached; the limit of the C library's allocator is the same.
const LONGEST: usize = 32 << 20;

/// Bytes of all cached mappings.
const CAPACITY: usize = 64 << 20;

/// The cache of the process.
pub(super) static CACHE: BlockCache = BlockCache::new();

/// Unused mappings, the oldest first.
///
/// To take and to put, no thread waits for another one: if the list is locked, a block is mapped or unmapped as if there were no cache.
pub(super) struct BlockCache(ForkLock<VecDeque<MmapMut>>);

impl BlockCache {
    const fn new() -> BlockCache {
        BlockCache(ForkLock::new(VecDeque::new()))
    }

    /// Takes out a mapping of this length, with undefined contents.
    pub(super) fn take(&self, len: usize) -> Option<MmapMut> {
        self.0.try_with(|list| list.remove(list.iter().rposition(|mapping| mapping.len() == len)?)).flatten()
    }

    /// Puts a mapping in, unless it is too long, and unmaps the oldest ones beyond the limit.
    pub(super) fn put(&self, mapping: MmapMut) {
        if mapping.len() > LONGEST {
            return;
        }
        self.0.try_with(|list| {
            list.push_back(mapping);
            while list.iter().map(|mapping| mapping.len()).sum::<usize>() > CAPACITY {
                list.pop_front();
            }
        });
    }

    /// Returns the bytes of all of them. Waits for other threads.
    pub(super) fn bytes(&self) -> usize {
        self.0.with(|list| list.iter().map(|mapping| mapping.len()).sum()).unwrap_or_default()
    }

    /// Unmaps all of them. Whether there was any.
    pub(super) fn release_all(&self) -> bool {
        self.0.try_with(|list| list.drain(..).count() > 0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use memmap2::MmapOptions;

    use super::*;

    fn mapping(len: usize) -> MmapMut {
        MmapOptions::new().len(len).map_anon().expect("small")
    }

    #[test]
    fn the_newest_of_a_length_comes_back() {
        let (cache, len) = (BlockCache::new(), 5 << 20);
        let (first, second) = (mapping(len), mapping(len));
        let newer = second.as_ptr();
        cache.put(first);
        cache.put(second);
        assert!(cache.take(len + 1).is_none());
        assert_eq!(cache.take(len).expect("cache").as_ptr(), newer);
        assert!(cache.take(len).is_some());
        assert!(cache.take(len).is_none());
    }

    #[test]
    fn not_too_much_is_kept() {
        let cache = BlockCache::new();
        cache.put(mapping(LONGEST + 1));
        assert!(!cache.release_all());
        cache.put(mapping(5 << 20));
        for _ in 0..20 {
            cache.put(mapping(LONGEST));
        }
        assert!(cache.take(5 << 20).is_none());
        assert_eq!((0..20).filter_map(|_| cache.take(LONGEST)).count(), CAPACITY / LONGEST);
        cache.put(mapping(5 << 20));
        assert!(cache.release_all());
        assert!(!cache.release_all());
    }
}
