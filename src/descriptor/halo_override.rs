//! The metadata of a field whose halo was set after the field was made.

use std::sync::atomic::{AtomicUsize, Ordering};

use elsa::sync::FrozenVec;

use crate::layout::Metadata;

/// All metadata set so far, and which of it is in effect. Callers may hold slices of any entry, so none is removed. Equal
/// metadata shares an entry, so the list is as long as there are different values.
#[derive(Debug)]
pub(super) struct HaloOverride {
    entries: FrozenVec<Box<Metadata>>,
    /// The index of the current entry, which always exists.
    current: AtomicUsize,
}

impl HaloOverride {
    pub(super) fn new(metadata: Metadata) -> HaloOverride {
        HaloOverride { entries: vec![Box::new(metadata)].into(), current: AtomicUsize::new(0) }
    }

    /// Returns the current entry.
    pub(super) fn current(&self) -> Option<&Metadata> {
        self.entries.get(self.current.load(Ordering::Acquire))
    }

    /// Makes `metadata` the current entry.
    pub(super) fn set(&self, metadata: Metadata) {
        let known = self.entries.iter().position(|known| *known == metadata);
        let index = known.unwrap_or_else(|| self.entries.push_get_index(Box::new(metadata)));
        self.current.store(index, Ordering::Release);
    }
}
