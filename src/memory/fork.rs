//! What a child of `fork` must know: that it is one, and which locks it would wait for in vain.
//!
//! A child has one thread, the one that called `fork`. What another thread of its parent was using stays as it was, for ever. So
//! a lock names the process of the thread that uses its value: threads of one process wait for each other, and a value that is
//! in use by another process is given up. The number of the process is found once and again in each child, before other code runs
//! there; to ask the system each time takes as long as an allocation.

#![cfg_attr(unix, allow(unsafe_code, reason = "a function of the C library is called"))]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, TryLockError};
use std::thread;

/// The number of no process.
const NONE: u32 = 0;

/// Returns the number of this process.
#[cfg(all(unix, not(miri)))]
#[inline]
pub(crate) fn this_process() -> u32 {
    static THIS: AtomicU32 = AtomicU32::new(NONE);

    extern "C" fn find() {
        THIS.store(std::process::id(), Ordering::Relaxed);
    }

    #[cold]
    fn first() -> u32 {
        // SAFETY: `find` may run in a child of `fork`: it makes one system call and stores a number.
        if unsafe { libc::pthread_atfork(None, None, Some(find)) } == 0 {
            find();
        }
        std::process::id()
    }

    match THIS.load(Ordering::Relaxed) {
        NONE => first(),
        this => this,
    }
}

/// Returns a number for this process, which cannot fork.
#[cfg(not(all(unix, not(miri))))]
pub(crate) fn this_process() -> u32 {
    1
}

/// A value that one thread at a time uses. A child of `fork` whose parent was using it gives it up.
pub(crate) struct ForkLock<T> {
    /// The process of the thread that uses the value.
    process: AtomicU32,
    value: Mutex<T>,
}

impl<T> ForkLock<T> {
    pub(crate) const fn new(value: T) -> ForkLock<T> {
        ForkLock { process: AtomicU32::new(NONE), value: Mutex::new(value) }
    }

    /// Runs `work` on the value, after other threads; `None` once it is given up.
    #[inline]
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.with_in(this_process(), work)
    }

    fn with_in<R>(&self, this: u32, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        while let Err(user) = self.process.compare_exchange(NONE, this, Ordering::Acquire, Ordering::Relaxed) {
            if user != this {
                return None;
            }
            thread::yield_now();
        }
        let _in_use = InUse(&self.process);
        match self.value.try_lock() {
            Ok(mut value) => Some(work(&mut value)),
            Err(TryLockError::Poisoned(value)) => Some(work(&mut value.into_inner())),
            // Nobody locks it without being the process's user of it.
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Ends the use of a value, also if it panics.
struct InUse<'l>(&'l AtomicU32);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.store(NONE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_thread_waits_for_another_one() {
        let lock = ForkLock::new((0, 0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        lock.with(|(one, other)| {
                            assert_eq!(one, other);
                            *one += 1;
                            thread::sleep(Duration::from_micros(1));
                            *other += 1;
                        });
                    }
                });
            }
        });
        assert_eq!(lock.with(|value| *value), Some((400, 400)));
    }

    #[test]
    fn a_value_that_another_process_uses_is_given_up() {
        let lock = ForkLock::new(0);
        let inside = lock.with(|_| lock.with_in(this_process() + 1, |value| *value));
        assert_eq!((inside, lock.with(|value| *value)), (Some(None), Some(0)));
    }

    #[test]
    fn a_panic_ends_the_use() {
        let lock = ForkLock::new(0);
        assert!(catch_unwind(AssertUnwindSafe(|| lock.with(|_| std::panic::resume_unwind(Box::new(()))))).is_err());
        assert_eq!(lock.with(|value| *value), Some(0));
    }
}
