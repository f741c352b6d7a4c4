//! Counts the blocks that live: what a report of the memory must add up to.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// The number of blocks.
    pub blocks: usize,
    /// Their bytes, as they were requested.
    pub bytes: usize,
}

/// Counts blocks. Both numbers are modulo 2^64: one counter may remove what another has added. Other threads may change both
/// between two reads.
#[derive(Default)]
pub(super) struct Counter {
    blocks: AtomicUsize,
    bytes: AtomicUsize,
}

impl Counter {
    pub(super) const fn new() -> Counter {
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

    /// As [`Counter::add`], in the only thread that changes the numbers.
    #[inline]
    pub(super) fn add_alone(&self, bytes: usize) {
        add_alone(&self.blocks, 1);
        add_alone(&self.bytes, bytes);
    }

    /// As [`Counter::remove`], in the only thread that changes the numbers.
    #[inline]
    pub(super) fn remove_alone(&self, bytes: usize) {
        add_alone(&self.blocks, 1usize.wrapping_neg());
        add_alone(&self.bytes, bytes.wrapping_neg());
    }

    pub(super) fn read(&self) -> Totals {
        Totals { blocks: self.blocks.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}

/// Adds to a number that no other thread changes, which takes less time than `fetch_add`.
#[inline]
fn add_alone(number: &AtomicUsize, amount: usize) {
    number.store(number.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}
