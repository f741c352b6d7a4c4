//! Counts the blocks that live, by their size: what a report of the memory must add up to.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// The number of blocks.
    pub blocks: usize,
    /// Their bytes, as they were requested.
    pub bytes: usize,
}

/// Live blocks of one kind. Other threads may change both numbers between two reads.
pub(crate) struct Counter {
    blocks: AtomicUsize,
    bytes: AtomicUsize,
}

/// Host blocks that are small enough to be kept for reuse, those that are kept included.
pub(crate) static SMALL: Counter = Counter::new();

/// All other blocks.
pub(crate) static LARGE: Counter = Counter::new();

impl Counter {
    pub(crate) const fn new() -> Counter {
        Counter { blocks: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }

    pub(super) fn add(&self, bytes: usize) {
        self.blocks.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn remove(&self, bytes: usize) {
        self.blocks.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Replaces both numbers. Only one thread does so: that takes less time than to add to them.
    #[inline]
    pub(crate) fn set(&self, totals: Totals) {
        self.blocks.store(totals.blocks, Ordering::Relaxed);
        self.bytes.store(totals.bytes, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Totals {
        Totals { blocks: self.blocks.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}
