//! Labels that were stated of a field while others have it.
//!
//! Whoever has the field may hold slices of what was stated before, so nothing of it is freed, or moved, until the field's
//! description goes. What was stated once is used again: there is as much of it as there are different statements.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::labels::Labels;

/// Chunks there may be: each has twice the entries of the one before, so that they hold all that memory does.
const CHUNKS: usize = 48;

/// Entries, each written once.
type Chunk = Box<[OnceLock<Arc<Labels>>]>;

/// A list that grows at its end, and says which of its entries counts.
#[derive(Debug)]
pub(super) struct Restated {
    chunks: [OnceLock<Chunk>; CHUNKS],
    /// The place of the entry that counts, which is there.
    current: AtomicUsize,
    /// How many entries there are; held by whoever states another one.
    len: Mutex<usize>,
}

impl Restated {
    pub(super) fn new(labels: Arc<Labels>) -> Restated {
        let restated =
            Restated { chunks: [const { OnceLock::new() }; CHUNKS], current: AtomicUsize::new(0), len: Mutex::new(0) };
        restated.state(labels);
        restated
    }

    /// What counts.
    pub(super) fn current(&self) -> Option<&Arc<Labels>> {
        self.entry(self.current.load(Ordering::Acquire))
    }

    /// Has these labels count from now on.
    pub(super) fn state(&self, labels: Arc<Labels>) {
        let mut len = self.len.lock().unwrap_or_else(PoisonError::into_inner);
        let known = (0..*len).find(|place| self.entry(*place).is_some_and(|known| **known == *labels));
        let place = known.unwrap_or_else(|| {
            let (chunk, offset) = place_of(*len);
            let entries = self.chunks[chunk].get_or_init(|| (0..1 << chunk).map(|_| OnceLock::new()).collect());
            // Only whoever holds the lock writes, and to a place that nobody has written to.
            let _ = entries[offset].set(labels);
            *len += 1;
            *len - 1
        });
        self.current.store(place, Ordering::Release);
    }

    fn entry(&self, place: usize) -> Option<&Arc<Labels>> {
        let (chunk, offset) = place_of(place);
        self.chunks[chunk].get()?[offset].get()
    }
}

/// The chunk of an entry and its place there.
fn place_of(place: usize) -> (usize, usize) {
    let chunk = (place + 1).ilog2() as usize;
    (chunk, place + 1 - (1 << chunk))
}
