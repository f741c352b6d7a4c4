//! Memory that has one owner only: it may be written to, and moved out.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::{Owner, OwnerKind};
use super::{OwnerInner, deferred_drop, registry};
use crate::error::{ExchangeError, ExchangeErrorKind};
use crate::memory::Block;
use crate::memory::cuda::StreamUses;

/// The content of an owner that was the only one.
pub(crate) enum ExclusiveOwner {
    /// An allocation of this crate.
    Block(Block),
    /// A container of elements.
    Elements(Box<dyn Any + Send + Sync>),
}

impl Owner {
    /// Returns the owner of what [`Owner::into_exclusive`] took out.
    pub(crate) fn from_exclusive(exclusive: ExclusiveOwner, uses: Option<Box<StreamUses>>) -> Owner {
        Owner(OwnerInner::with_stream_uses(
            match exclusive {
                ExclusiveOwner::Block(block) => OwnerKind::Block(block),
                ExclusiveOwner::Elements(elements) => OwnerKind::Elements(elements),
            },
            uses.into(),
        ))
    }

    /// Returns the content, with the streams that use it. Returns `None` and drops the owner if others share it, or another
    /// library made the memory.
    pub(crate) fn into_exclusive(mut self) -> Option<(ExclusiveOwner, Option<Box<StreamUses>>)> {
        let mut inner = ManuallyDrop::new(registry::into_inner(self.0.take()?)?);
        let uses = inner.uses.take();
        // SAFETY: taken once: `inner`, whose drop would take it too, is not dropped.
        #[allow(unsafe_code, reason = "the value leaves a struct that is not dropped")]
        match unsafe { ManuallyDrop::take(&mut inner.kind) } {
            OwnerKind::Block(block) => Some((ExclusiveOwner::Block(block), uses)),
            OwnerKind::Elements(elements) => Some((ExclusiveOwner::Elements(elements), uses)),
            other => {
                match uses {
                    Some(uses) => deferred_drop::after_work(uses, other),
                    None => deferred_drop::now(other),
                }
                None
            }
        }
    }

    /// Returns whether no other owner shares the memory; false for memory of other libraries.
    pub(crate) fn is_exclusive(&mut self) -> bool {
        self.find_others().is_none()
    }

    /// Rejects memory that another owner shares, or that is not known to have no other.
    pub(crate) fn check_exclusive(&mut self) -> Result<(), ExchangeError> {
        let others = self.find_others();
        // Then a copy is an error, too.
        let is_exported = self.check_not_exported().is_err();
        let (sentence, expected, fix) = match others {
            None => return Ok(()),
            Some(Others::Owners) if is_exported => (
                SHARED,
                SOLE,
                "drop its views, clones and exports; to write to an argument, take Out instead of Tensor",
            ),
            Some(Others::Owners) => return Err(shared()),
            Some(Others::Unknown) => (
                "memory that is not this crate's, and may be used by other code",
                "an allocation of this crate, or memory of an array or a Vec, also one that came back from DLPack",
                if is_exported {
                    "to write to an argument, take Out instead of Tensor"
                } else {
                    "write to a copy of it: Tensor::copy"
                },
            ),
            Some(Others::Streams) => (
                "memory that came back from DLPack and is used by streams that its first owner does not know, as it came back \
                 during a graph capture, through a library that names its own stream, or after an error of the driver",
                "memory that came back otherwise",
                "end the capture before, pass the tensor itself, or take a copy",
            ),
        };
        Err(ExchangeError::new("owner", &expected, &sentence).with_fix(&fix).with_kind(ExchangeErrorKind::Shared))
    }

    /// Returns who may use the memory besides this owner.
    fn find_others(&mut self) -> Option<Others> {
        let Some(inner) = self.0.as_mut() else { return Some(Others::Unknown) };
        let is_kept_by_others =
            !matches!(&*inner.kind, OwnerKind::Block(_) | OwnerKind::Elements(_) | OwnerKind::Returned(_));
        let Some(inner) = Arc::get_mut(inner).filter(|_| !is_kept_by_others) else {
            return Some(if is_kept_by_others { Others::Unknown } else { Others::Owners });
        };
        let OwnerKind::Returned(exported) = &mut *inner.kind else { return None };
        if let Some(others) = exported.find_others() {
            return Some(others);
        }
        if inner.uses.own().is_some() {
            // The memory may not be released before the work of these streams.
            return Some(Others::Streams);
        }
        // The wrapper is dropped, and owns nothing any more.
        *self = std::mem::replace(exported, Owner::NONE);
        None
    }

    /// Removes the export mark if this is the only owner left; never for memory of other libraries.
    pub(crate) fn clear_exported(&mut self) {
        if self.is_exclusive()
            && let Some(inner) = self.0.as_mut().and_then(Arc::get_mut)
        {
            *inner.exported.get_mut() = false;
        }
    }

    /// Takes out the owned vector if its elements begin at `start` and have this type, and no other owner shares it.
    pub(crate) fn take_elements<T: 'static>(&mut self, start: *const T) -> Option<Vec<T>> {
        let OwnerKind::Elements(elements) = &mut *Arc::get_mut(self.0.as_mut()?)?.kind else { return None };
        let elements = elements.downcast_mut::<Vec<T>>().filter(|elements| elements.as_ptr() == start)?;
        Some(std::mem::take(elements))
    }
}

/// Who may use memory besides its owner.
enum Others {
    /// Other owners of an allocation of this crate.
    Owners,
    /// Code that is not known, as another library keeps the memory.
    Unknown,
    /// Streams that the first owner does not know.
    Streams,
}

/// The words for memory with several owners.
const SOLE: &str = "a tensor that is the only owner of its memory";
const SHARED: &str = "one that shares it";

/// Returns the error for memory that has other owners.
#[cold]
pub(crate) fn shared() -> ExchangeError {
    ExchangeError::new("owner", &SOLE, &SHARED)
        .with_fix(&"drop its views and clones, or write to a copy of it: Tensor::copy")
        .with_kind(ExchangeErrorKind::Shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_another_value_keeps_too_is_not_exclusive() {
        let mut owner = Owner::elements(vec![1.0f64]);
        assert!(owner.is_exclusive());
        assert!(!owner.with(()).is_exclusive());
    }
}
