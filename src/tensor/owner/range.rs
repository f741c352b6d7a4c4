//! The memory of an allocation, by its owner.

use super::OwnerInner;
use super::{Owner, OwnerKind};

/// Memory that belongs to one field, padding included, in what another owner keeps.
pub(super) struct Range {
    start: *mut u8,
    bytes: usize,
    #[allow(dead_code, reason = "held for its drop")]
    pub(super) owner: Owner,
}

// SAFETY: the address is only returned; an owner may be dropped on any thread.
#[allow(unsafe_code, reason = "an address may travel between threads")]
unsafe impl Send for Range {}
// SAFETY: the address is only returned; an owner may be dropped on any thread.
#[allow(unsafe_code, reason = "an address may travel between threads")]
unsafe impl Sync for Range {}

impl Owner {
    /// Returns the address and the bytes of the allocation that this owns, or of the memory that was given to a field as one;
    /// `None` for other memory.
    pub(in crate::tensor) fn block(&self) -> Option<(*mut u8, usize)> {
        match &*self.0.as_deref()?.kind {
            OwnerKind::Block(block) => Some((block.as_ptr(), block.len())),
            OwnerKind::Returned(exported) => exported.block(),
            OwnerKind::Range(range) => Some((range.start, range.bytes)),
            _ => None,
        }
    }

    /// Returns the owner in a range of whose memory this is.
    fn outer(&self) -> Option<&Owner> {
        match self.0.as_deref() {
            Some(inner) if inner.uses.own().is_none() => match &*inner.kind {
                OwnerKind::Range(range) => Some(&range.owner),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether dlfield allocated the memory.
    pub(in crate::tensor) fn is_allocated(&self) -> bool {
        match self.0.as_deref().map(|inner| &*inner.kind) {
            Some(OwnerKind::Block(_)) => true,
            Some(OwnerKind::Returned(exported)) => exported.is_allocated(),
            _ => false,
        }
    }

    /// Returns an owner whose block is this range of the memory that `self` keeps; `self` if it is that already.
    pub(in crate::tensor) fn with_block(self, start: *mut u8, bytes: usize) -> Owner {
        if self.0.is_none() || self.block() == Some((start, bytes)) {
            return self;
        }
        // Ranges in ranges would be a chain, with fields that are laid into fields.
        let owner = self.outer().cloned().unwrap_or(self);
        let uses = owner.uses_from_outside();
        Owner(OwnerInner::with_stream_uses(OwnerKind::Range(Box::new(Range { start, bytes, owner })), uses))
    }
}
