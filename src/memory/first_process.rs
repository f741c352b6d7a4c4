//! The process in which something was first used, as opposed to a child of `fork`.

use std::sync::atomic::{AtomicU32, Ordering};

/// Remembers a process. Not a `OnceLock`: a child forked while another thread writes that would wait for it without end.
pub(crate) struct FirstProcess(AtomicU32);

impl FirstProcess {
    /// No process has this number.
    const NONE: u32 = 0;

    pub(crate) const fn new() -> FirstProcess {
        FirstProcess(AtomicU32::new(FirstProcess::NONE))
    }

    /// Remembers this process, unless there is an earlier one.
    #[inline]
    pub(crate) fn note(&self) {
        if self.0.load(Ordering::Relaxed) == FirstProcess::NONE {
            let _ = self.0.compare_exchange(FirstProcess::NONE, this(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Remembers as [`FirstProcess::note`] does, and returns whether the remembered process is this one.
    pub(crate) fn is_this(&self) -> bool {
        self.note();
        self.0.load(Ordering::Relaxed) == this()
    }
}

#[cfg(test)]
impl FirstProcess {
    /// As if another process had come first.
    pub(super) fn another() -> FirstProcess {
        FirstProcess(AtomicU32::new(this() + 1))
    }
}

/// Returns the number of this process; WebAssembly has none, and panics if asked.
fn this() -> u32 {
    if cfg!(target_family = "wasm") { FirstProcess::NONE } else { std::process::id() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_process_is_remembered() {
        let used = FirstProcess::new();
        assert!(used.is_this());
        used.note();
        assert!(used.is_this());
        let inherited = FirstProcess::another();
        inherited.note();
        assert!(!inherited.is_this());
    }
}
