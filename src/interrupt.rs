//! Long work that can be interrupted: it asks from time to time whether to stop.

use std::cell::Cell;

use crate::error::{Error, Result};

thread_local! {
    /// What this thread asks.
    static ASKED: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
}

/// Runs `work`, of which long loops stop where `asked` returns true.
pub(crate) fn interruptible<R>(asked: fn() -> bool, work: impl FnOnce() -> R) -> R {
    /// Restores what was asked before, also if `work` panics.
    struct Restore(Option<fn() -> bool>);

    impl Drop for Restore {
        fn drop(&mut self) {
            ASKED.set(self.0);
        }
    }

    let _restore = Restore(ASKED.replace(Some(asked)));
    work()
}

/// Whether [`stop_if_asked`] may stop this thread's work.
pub(crate) fn is_interruptible() -> bool {
    ASKED.get().is_some()
}

/// Ends long work.
///
/// # Errors
/// [`Error::Interrupted`] if the work shall stop.
pub(crate) fn stop_if_asked() -> Result<()> {
    if ASKED.get().is_some_and(|asked| asked()) { Err(Error::Interrupted) } else { Ok(()) }
}
