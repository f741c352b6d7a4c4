//! Guards, which keep memory from being exported while its elements are read.

use std::sync::atomic::Ordering;

use super::{Owner, OwnerInner};
use crate::error::{ExchangeError, ExchangeErrorKind};

/// What a guard adds to the count of readers. An export waits for readers, which soon return, and is rejected while a guard
/// lives: its holder may be the one who exports. Readers are counted in the lower half of the bits: at most
/// one for each thread.
const GUARD: usize = 1 << (usize::BITS / 2);

/// The largest count to which another guard may be added. The rest is room for threads that are about to fail.
const MOST: usize = usize::MAX / 2;

/// Counts one guard while it lives.
pub(crate) struct Guard<'o>(Option<&'o OwnerInner>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Some(inner) = self.0 {
            inner.readers.fetch_sub(GUARD, Ordering::Release);
        }
    }
}

impl OwnerInner {
    /// Returns whether a guard lives.
    pub(super) fn is_guarded(&self) -> bool {
        self.readers.load(Ordering::SeqCst) >= GUARD
    }
}

impl Owner {
    /// Marks the memory as exported, once no safe function reads it. In a race with a guard both may fail, and the mark stays:
    /// another export may have relied on it.
    ///
    /// # Errors
    /// [`ExchangeError`] while a guard reads the memory.
    pub(crate) fn export(&self) -> Result<(), ExchangeError> {
        while !self.mark_exported() {
            if self.0.as_ref().is_some_and(|inner| inner.is_guarded()) {
                let got = "memory that a guard of Tensor::read reads, to which the consumer of an export may write";
                return Err(ExchangeError::new("owner", &"memory without guards", &got)
                    .with_fix(&"drop the guard before the export")
                    .with_kind(ExchangeErrorKind::Borrowed));
            }
            self.wait_for_readers();
        }
        Ok(())
    }

    /// Keeps the memory from being exported while the guard lives.
    ///
    /// # Errors
    /// [`ExchangeError`] if it was exported already, or if so many guards live, or were forgotten, that the count would overflow.
    pub(crate) fn guard(&self) -> Result<Guard<'_>, ExchangeError> {
        let Some(inner) = &self.0 else { return Ok(Guard(None)) };
        self.check_not_exported()?;
        let before = inner.readers.fetch_add(GUARD, Ordering::SeqCst);
        let guard = Guard(Some(inner));
        if before > MOST {
            let expected = format_args!("at most {} guards of Tensor::read", (MOST / GUARD) + 1);
            return Err(ExchangeError::new("owner", &expected, &"one more")
                .with_fix(&"drop guards instead of forgetting them")
                .with_kind(ExchangeErrorKind::Borrowed));
        }
        self.check_not_exported()?;
        Ok(guard)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn too_many_guards_are_an_error_and_leave_the_others() {
        let owner = Owner::foreign(());
        let readers = &owner.0.as_ref().unwrap().readers;
        // As after the last guard that is allowed, all of them forgotten.
        readers.store(MOST / GUARD * GUARD, Ordering::SeqCst);
        std::mem::forget(owner.guard().unwrap());
        let full = readers.load(Ordering::SeqCst);
        for _ in 0..3 {
            let refused = owner.guard().map(|_| ()).unwrap_err();
            assert_eq!(refused.kind(), ExchangeErrorKind::Borrowed, "{refused}");
            assert!(refused.to_string().contains(&format!("at most {} guards", full / GUARD)), "{refused}");
            assert_eq!(readers.load(Ordering::SeqCst), full);
        }
        assert!(owner.export().is_err_and(|error| error.kind() == ExchangeErrorKind::Borrowed));
        readers.store(0, Ordering::SeqCst);
        assert!(owner.guard().is_ok());
    }
}
