//! Work in parts, shared by the calling thread and threads of a pool.
//!
//! The caller takes parts too, and does not wait for a thread that has not begun when all parts are taken. So a copy is never
//! slower by the time in which a sleeping thread wakes up, and smaller copies are worth dividing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Thread;

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
/// these calls have returned. Until then other threads may call `part`, and afterwards they may only drop it.
pub(super) fn each<F: Fn(usize) + Send + Sync + 'static>(pool: &ThreadPool, threads: usize, count: usize, part: F) {
    let caller = std::thread::current();
    let parts = Parts { part, count, next: AtomicUsize::new(0), left: AtomicUsize::new(count), caller };
    let parts = Arc::new(parts);
    for _ in 1..threads.min(count) {
        let parts = Arc::clone(&parts);
        pool.spawn(move || parts.take());
    }
    let _wait = Wait(&parts);
    parts.take();
}

impl<F: Fn(usize)> Parts<F> {
    /// Does parts until there are none to take.
    fn take(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                return;
            }
            let _done = Done(self);
            (self.part)(number);
        }
    }

    /// Notes that parts are done or will not be.
    fn finish(&self, count: usize) {
        // The caller reads what all parts have written when it sees the last one done.
        if count > 0 && self.left.fetch_sub(count, Ordering::AcqRel) == count {
            self.caller.unpark();
        }
    }
}

/// Counts a part as done, also if it panics.
struct Done<'a, F: Fn(usize)>(&'a Parts<F>);

impl<F: Fn(usize)> Drop for Done<'_, F> {
    fn drop(&mut self) {
        self.0.finish(1);
    }
}

/// Waits for the parts that other threads have taken, also if one of the caller's panics.
struct Wait<'a, F: Fn(usize)>(&'a Parts<F>);

impl<F: Fn(usize)> Drop for Wait<'_, F> {
    fn drop(&mut self) {
        let parts = self.0;
        let taken = parts.next.swap(parts.count, Ordering::Relaxed);
        parts.finish(parts.count.saturating_sub(taken));
        let done = || parts.left.load(Ordering::Acquire) == 0;
        for _ in 0..LOOKS {
            if done() {
                return;
            }
            std::hint::spin_loop();
        }
        while !done() {
            std::thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
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

    #[test]
    fn a_panic_of_the_caller_waits_for_the_other_threads() {
        let pool = pool();
        let (running, caller) = (Arc::new(AtomicUsize::new(0)), std::thread::current().id());
        let counted = Arc::clone(&running);
        let failed = catch_unwind(AssertUnwindSafe(|| {
            each(&pool, 3, 100, move |_| {
                assert_ne!(std::thread::current().id(), caller, "the caller's part");
                counted.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(5));
                counted.fetch_sub(1, Ordering::SeqCst);
            });
        }));
        assert!(failed.is_err());
        assert_eq!(running.load(Ordering::SeqCst), 0);
    }
}
