//! Owners that may be found again, and keep nothing.

use std::fmt;
use std::sync::{Arc, Weak};

use super::{Owner, OwnerInner};

/// Finds an owner as long as there is one.
#[derive(Clone)]
pub(in crate::tensor) struct WeakOwner(Weak<OwnerInner>);

impl Owner {
    /// Returns what finds this owner, and does not keep it.
    pub(in crate::tensor) fn downgrade(&self) -> WeakOwner {
        WeakOwner(self.0.as_ref().map_or_else(Weak::new, Arc::downgrade))
    }
}

impl WeakOwner {
    /// Returns another clone of the owner; `None` if the last one is gone.
    pub(in crate::tensor) fn upgrade(&self) -> Option<Owner> {
        Some(Owner(Some(self.0.upgrade()?)))
    }
}

impl fmt::Debug for WeakOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakOwner")
    }
}
