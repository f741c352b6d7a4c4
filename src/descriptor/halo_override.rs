//! The metadata of a field whose halo was set after the field was made.
//!
//! Callers may hold slices of earlier metadata, so no entry is freed or moved before the descriptor is dropped. Equal metadata
//! shares an entry, so the list is as long as there are different values.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::metadata::Metadata;

/// The largest number of chunks. Each has twice the entries of the one before, so these suffice for any memory.
const CHUNKS: usize = 48;

/// Entries, each written once.
type Chunk = Box<[OnceLock<Arc<Metadata>>]>;

/// A list that only grows, with the index of its current entry.
#[derive(Debug)]
pub(super) struct HaloOverride {
    chunks: [OnceLock<Chunk>; CHUNKS],
    /// The index of the current entry, which always exists.
    current: AtomicUsize,
    /// The number of entries; locked while an entry is added.
    len: Mutex<usize>,
}

impl HaloOverride {
    pub(super) fn new(labels: Arc<Metadata>) -> HaloOverride {
        let halo_override = HaloOverride {
            chunks: [const { OnceLock::new() }; CHUNKS],
            current: AtomicUsize::new(0),
            len: Mutex::new(0),
        };
        halo_override.set(labels);
        halo_override
    }

    /// Returns the current entry.
    pub(super) fn current(&self) -> Option<&Arc<Metadata>> {
        self.entry(self.current.load(Ordering::Acquire))
    }

    /// Makes `labels` the current entry.
    pub(super) fn set(&self, labels: Arc<Metadata>) {
        let mut len = self.len.lock().unwrap_or_else(PoisonError::into_inner);
        let known = (0..*len).find(|place| self.entry(*place).is_some_and(|known| **known == *labels));
        let place = known.unwrap_or_else(|| {
            let (chunk, offset) = place_of(*len);
            let entries = self.chunks[chunk].get_or_init(|| (0..1 << chunk).map(|_| OnceLock::new()).collect());
            // The lock is held, and each entry is written once.
            let _ = entries[offset].set(labels);
            *len += 1;
            *len - 1
        });
        self.current.store(place, Ordering::Release);
    }

    fn entry(&self, place: usize) -> Option<&Arc<Metadata>> {
        let (chunk, offset) = place_of(place);
        self.chunks[chunk].get()?[offset].get()
    }
}

/// Returns the chunk of an entry and the offset in that chunk.
fn place_of(place: usize) -> (usize, usize) {
    let chunk = (place + 1).ilog2() as usize;
    (chunk, place + 1 - (1 << chunk))
}
