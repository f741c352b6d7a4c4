//! Copies in close succession, which count as one when it is decided whether to wake threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A thread of the pool that runs out of work looks for more for about 100 µs before it sleeps. A copy that begins this soon
/// after another one finds it awake.
const AWAKE: Duration = Duration::from_micros(50);

/// From this many bytes on, it pays to wake threads: the system call alone takes as long as copying half of them.
const WAKE_MIN_BYTES: usize = 1 << 20;

/// What copies of the whole process did last. Threads that copy at the same time may overwrite each other's notes; then threads
/// are woken too early or too late, which costs only time.
pub(super) struct Recent {
    /// Bytes moved by the copies that followed each other closely until now.
    bytes: AtomicUsize,
    /// When the last of them ended, in nanoseconds since the first call of [`now`].
    end: AtomicU64,
}

impl Recent {
    pub(super) const fn new() -> Recent {
        Recent { bytes: AtomicUsize::new(0), end: AtomicU64::new(0) }
    }

    /// Returns the bytes that a copy begun `now` moves together with those shortly before it.
    pub(super) fn with(&self, bytes: usize, now: Duration) -> usize {
        let pause = now.saturating_sub(Duration::from_nanos(self.end.load(Ordering::Relaxed)));
        if pause > AWAKE { bytes } else { self.bytes.load(Ordering::Relaxed).saturating_add(bytes) }
    }

    /// Notes that the last of copies of this many `bytes` ended `now`.
    pub(super) fn note(&self, bytes: usize, now: Duration) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.end.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Returns whether copies in close succession that move this many bytes are worth waking threads.
pub(super) fn pays(bytes: usize) -> bool {
    bytes >= WAKE_MIN_BYTES
}

/// Returns the time since the first call.
pub(super) fn now() -> Duration {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_in_close_succession_count_as_one() {
        let (recent, half, start) = (Recent::new(), WAKE_MIN_BYTES / 2, Duration::from_secs(1));
        let first = recent.with(half, start);
        assert!(!pays(first));
        recent.note(first, start);
        let second = recent.with(half, start + AWAKE);
        assert!(pays(second));
        recent.note(second, start + AWAKE);
        assert!(pays(recent.with(1, start + 2 * AWAKE)), "the threads are still awake");
    }

    #[test]
    fn a_copy_after_a_pause_counts_alone() {
        let recent = Recent::new();
        recent.note(100 * WAKE_MIN_BYTES, AWAKE);
        assert!(!pays(recent.with(WAKE_MIN_BYTES - 1, 3 * AWAKE)));
        assert!(pays(recent.with(WAKE_MIN_BYTES, 3 * AWAKE)));
    }

    #[test]
    fn sums_too_large_for_a_number_of_bytes_are_cut() {
        let recent = Recent::new();
        recent.note(usize::MAX, AWAKE);
        assert_eq!(recent.with(WAKE_MIN_BYTES, AWAKE), usize::MAX);
    }
}
