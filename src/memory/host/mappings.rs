//! Mappings of freed large blocks, kept for reuse: programs allocate fields of a few sizes again and again, and for the system to
//! clear fresh pages takes as long as most work on them.
//!
//! No thread waits for another one: while the list is in use, and in a child of `fork` whose parent was using it, blocks are
//! mapped and unmapped as if nothing were kept.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use memmap2::MmapMut;

/// Bytes of the longest mapping that is kept; the limit of the C library's allocator is the same.
const LONGEST: usize = 32 << 20;

/// Bytes of all mappings that are kept.
const CAPACITY: usize = 64 << 20;

/// The mappings that the process keeps.
pub(in crate::memory) static MAPPINGS: Mappings = Mappings::new();

/// Unused mappings, the oldest first.
pub(in crate::memory) struct Mappings {
    list: Mutex<VecDeque<MmapMut>>,
    bytes: AtomicUsize,
}

impl Mappings {
    const fn new() -> Mappings {
        Mappings { list: Mutex::new(VecDeque::new()), bytes: AtomicUsize::new(0) }
    }

    /// Takes out a mapping of this length, with undefined contents.
    pub(super) fn take(&self, len: usize) -> Option<MmapMut> {
        self.change(|list| list.remove(list.iter().rposition(|mapping| mapping.len() == len)?))?
    }

    /// Keeps a mapping, unless it is too long, and unmaps the oldest ones beyond the limit.
    pub(super) fn keep(&self, mapping: MmapMut) {
        if mapping.len() <= LONGEST {
            self.change(|list| {
                list.push_back(mapping);
                while bytes(list) > CAPACITY {
                    list.pop_front();
                }
            });
        }
    }

    /// Unmaps all of them. Returns whether there was any.
    pub(super) fn release_all(&self) -> bool {
        self.change(|list| list.drain(..).count() > 0).unwrap_or_default()
    }

    /// Returns the bytes of all of them.
    pub(in crate::memory) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn change<R>(&self, change: impl FnOnce(&mut VecDeque<MmapMut>) -> R) -> Option<R> {
        let mut list = self.list.try_lock().ok()?;
        let changed = change(&mut list);
        self.bytes.store(bytes(&list), Ordering::Relaxed);
        Some(changed)
    }
}

fn bytes(list: &VecDeque<MmapMut>) -> usize {
    list.iter().map(|mapping| mapping.len()).sum()
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
        let (mappings, len) = (Mappings::new(), 5 << 20);
        let (first, second) = (mapping(len), mapping(len));
        let newer = second.as_ptr();
        mappings.keep(first);
        mappings.keep(second);
        assert_eq!(mappings.bytes(), 2 * len);
        assert!(mappings.take(len + 1).is_none());
        assert_eq!(mappings.take(len).expect("kept").as_ptr(), newer);
        assert!(mappings.take(len).is_some());
        assert!(mappings.take(len).is_none());
        assert_eq!(mappings.bytes(), 0);
    }

    #[test]
    fn not_too_much_is_kept() {
        let mappings = Mappings::new();
        mappings.keep(mapping(LONGEST + 1));
        assert!(!mappings.release_all());
        mappings.keep(mapping(5 << 20));
        for _ in 0..20 {
            mappings.keep(mapping(LONGEST));
        }
        assert!(mappings.take(5 << 20).is_none());
        assert_eq!((0..20).filter_map(|_| mappings.take(LONGEST)).count(), CAPACITY / LONGEST);
        mappings.keep(mapping(5 << 20));
        assert!(mappings.release_all());
        assert!(!mappings.release_all());
    }

    #[test]
    fn nobody_waits_for_a_thread_that_uses_the_list() {
        let mappings = Mappings::new();
        let _in_use = mappings.list.lock().expect("no panic");
        mappings.keep(mapping(5 << 20));
        assert!(mappings.take(5 << 20).is_none() && !mappings.release_all() && mappings.bytes() == 0);
    }
}
