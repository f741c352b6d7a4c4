//! Safe functions that read memory, and its export to other libraries, which may write to it: each waits for the other.

use std::sync::atomic::Ordering;

use super::Owner;
use super::OwnerInner;
use crate::error::{ExchangeError, ExchangeErrorKind};

/// Counts one reader, also if it panics.
struct Reader<'i>(&'i OwnerInner);

impl Reader<'_> {
    fn of(inner: &OwnerInner) -> Reader<'_> {
        inner.readers.fetch_add(1, Ordering::SeqCst);
        Reader(inner)
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Release);
    }
}

impl Owner {
    /// Marks the memory as exported to another library: safe functions reject it from now on. Returns whether none of them is
    /// still reading it; if not, [`Owner::wait_for_readers`] returns once this should be called again. Memory with a guard is
    /// not marked.
    ///
    /// A reader increments the count before it checks the mark, and an exporter sets the mark before it checks the count. All
    /// four are sequentially consistent, so at least one of the two sees the other.
    #[inline]
    #[must_use]
    pub(crate) fn mark_exported(&self) -> bool {
        let Some(inner) = &self.0 else { return true };
        if !inner.exported.load(Ordering::SeqCst) {
            if inner.is_guarded() {
                return false;
            }
            inner.exported.store(true, Ordering::SeqCst);
        }
        inner.readers.load(Ordering::SeqCst) == 0
    }

    /// Waits until no safe function reads memory that is marked as exported; new ones are rejected. Does not wait for guards.
    /// A thread attached to Python must detach first: a reader may wait for a device, whose callbacks may need the GIL.
    #[cold]
    pub(super) fn wait_for_readers(&self) {
        let Some(inner) = &self.0 else { return };
        while inner.readers.load(Ordering::SeqCst) > 0 && !inner.is_guarded() {
            std::thread::yield_now();
        }
    }

    /// Rejects memory that was exported: the other library may write to it.
    pub(crate) fn check_not_exported(&self) -> Result<(), ExchangeError> {
        let exported = self.0.as_ref().is_some_and(|inner| inner.exported.load(Ordering::SeqCst));
        if exported { Err(exported_memory()) } else { Ok(()) }
    }

    /// Runs `read`, which reads the memory, unless it was exported: then only unsafe code can write to it meanwhile. An export
    /// waits for `read`, so `read` must neither allocate a tensor nor drop an owner: both may run code of other libraries, which may
    /// export the memory or wait for an export.
    pub(crate) fn read<R>(&self, read: impl FnOnce() -> R) -> Result<R, ExchangeError> {
        let Some(inner) = &self.0 else { return Ok(read()) };
        // Before counting, so that a rejected reader delays no export.
        self.check_not_exported()?;
        let _counted = Reader::of(inner);
        self.check_not_exported()?;
        Ok(read())
    }
}

/// Returns the error for memory that was exported to another library, or comes from Python, where others may write to it.
#[cold]
fn exported_memory() -> ExchangeError {
    let expected = "memory that only Rust uses";
    let got = "memory that was exported, or comes from Python, to which others may write";
    let fix = "to read an argument, take In instead of Tensor; else copy before the export, or drop what was exported and call \
               array_view_mut first";
    ExchangeError::new("owner", &expected, &got).with_fix(&fix).with_kind(ExchangeErrorKind::Exported)
}
