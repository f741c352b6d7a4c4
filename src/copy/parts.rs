//! Work in parts, shared by the calling thread and threads of a pool.
//!
//! The caller takes parts too, and does not wait for a thread that has not begun when all parts are taken. So a copy is never
//! slower by the time in which a sleeping thread wakes up, as it is in a scope of rayon, and smaller copies are worth dividing.

use std::process::abort;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Thread, current, park};

use rayon::ThreadPool;

/// A caller that waits for the others' last parts looks this often before it sleeps: some microseconds.
const LOOKS: usize = 2000;

/// Parts of work that threads take one after the other.
struct Parts<F> {
    part: F,
    count: usize,
    /// The first part that nobody has taken; `count` or more if there is none.
    next: AtomicUsize,
    /// Parts that are not done.
    left: AtomicUsize,
    caller: Thread,
}

/// Calls `part` with every number below `count`, in up to `threads` threads: this one and those of the pool. Returns when all of
/// these calls have returned. Until then other threads may call `part`, and afterwards they may only drop it. A panic of `part`
/// ends the process: other threads may still be at work.
pub(super) fn each<F: Fn(usize) + Send + Sync + 'static>(pool: &ThreadPool, threads: usize, count: usize, part: F) {
    let (next, left) = (AtomicUsize::new(0), AtomicUsize::new(count));
    let parts = Arc::new(Parts { part, count, next, left, caller: current() });
    for _ in 1..threads.min(count) {
        let parts = Arc::clone(&parts);
        pool.spawn(move || parts.take());
    }
    parts.take();
    let is_done = || parts.left.load(Ordering::Acquire) == 0;
    for _ in 0..LOOKS {
        if is_done() {
            return;
        }
        std::hint::spin_loop();
    }
    while !is_done() {
        park();
    }
}

impl<F: Fn(usize)> Parts<F> {
    /// Does parts until there are none to take.
    fn take(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                return;
            }
            let panicked = AbortIfDropped;
            (self.part)(number);
            std::mem::forget(panicked);
            // The caller reads what all parts have written when it sees the last one done.
            if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.caller.unpark();
            }
        }
    }
}

struct AbortIfDropped;

impl Drop for AbortIfDropped {
    fn drop(&mut self) {
        abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use rayon::ThreadPoolBuilder;

    use super::*;

    fn pool() -> ThreadPool {
        ThreadPoolBuilder::new().num_threads(3).build().expect("three threads")
    }

    #[test]
    fn every_part_is_done_once_before_the_call_returns() {
        let pool = pool();
        for count in [0, 1, 2, 7, 1000] {
            let done = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&done);
            each(&pool, 3, count, move |number| {
                if number % 5 == 1 {
                    // Longer than the caller looks before it sleeps.
                    std::thread::sleep(Duration::from_millis(u64::from(count < 10)));
                }
                seen.lock().expect("no panic").push(number);
            });
            let mut done = std::mem::take(&mut *done.lock().expect("no panic"));
            done.sort_unstable();
            assert_eq!(done, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn threads_that_never_begin_are_not_waited_for() {
        let pool = pool();
        let (free, busy) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)));
        let held = free.lock().expect("no panic");
        for _ in 0..3 {
            let (free, busy) = (Arc::clone(&free), Arc::clone(&busy));
            pool.spawn(move || {
                busy.fetch_add(1, Ordering::Relaxed);
                drop(free.lock());
            });
        }
        while busy.load(Ordering::Relaxed) < 3 {
            std::thread::yield_now();
        }
        let done = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&done);
        each(&pool, 3, 10, move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.load(Ordering::Relaxed), 10);
        drop(held);
    }
}
