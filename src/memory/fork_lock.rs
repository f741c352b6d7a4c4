//! A lock that a child of `fork` does not wait for in vain.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::first_process::FirstProcess;

/// The process that first used a lock. Compared only while waiting: to ask for it takes as long as an allocation.
static PROCESS: FirstProcess = FirstProcess::new();

/// How long a child of `fork` waits for a value that may be lost; a thread uses it for microseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// A value that one thread at a time uses. A child of `fork` whose parent was using it gives it up, as that thread is not there
/// to finish.
pub(crate) struct ForkLock<T> {
    value: Mutex<T>,
    is_lost: AtomicBool,
}

impl<T> ForkLock<T> {
    pub(crate) const fn new(value: T) -> ForkLock<T> {
        ForkLock { value: Mutex::new(value), is_lost: AtomicBool::new(false) }
    }

    /// Runs `work` on the value; `None` once it is given up.
    #[inline]
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        PROCESS.note();
        let mut value = match self.attempt() {
            Some(value) => value,
            None => self.wait(&PROCESS, PATIENCE)?,
        };
        // Given up while its user was only slow.
        if self.is_lost.load(Ordering::Relaxed) { None } else { Some(work(&mut value)) }
    }

    fn attempt(&self) -> Option<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(value)) => Some(value.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// As [`ForkLock::with`]; `None` also while another thread uses the value.
    #[inline]
    pub(crate) fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        PROCESS.note();
        self.attempt().map(|mut value| work(&mut value))
    }

    /// Waits for the value; a process other than `first` gives it up after `patience`.
    #[cold]
    fn wait(&self, first: &FirstProcess, patience: Duration) -> Option<MutexGuard<'_, T>> {
        if !self.is_lost.load(Ordering::Relaxed) && first.is_this() {
            return Some(self.value.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let since = Instant::now();
        while !self.is_lost.load(Ordering::Relaxed) {
            if let Some(value) = self.attempt() {
                return Some(value);
            }
            if since.elapsed() > patience {
                self.is_lost.store(true, Ordering::Relaxed);
            }
            std::thread::yield_now();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Runs `work` while another thread uses the lock, which does so until `work` drops the sender.
    fn while_used<R>(lock: &ForkLock<i32>, work: impl FnOnce(std::sync::mpsc::Sender<()>) -> R) -> R {
        let ((end, ended), (begin, begun)) = (channel::<()>(), channel());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                lock.with(|value| {
                    *value += 1;
                    begin.send(()).expect("the test waits");
                    // An error: the sender is dropped.
                    let _ = ended.recv();
                })
            });
            begun.recv().expect("the thread uses the lock");
            work(end)
        })
    }

    #[test]
    fn a_thread_waits_for_another_one() {
        let lock = ForkLock::new(0);
        let seen = while_used(&lock, |end| {
            assert_eq!(lock.try_with(|value| *value), None);
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| lock.with(|value| *value));
                drop(end);
                waiting.join().expect("no panic")
            })
        });
        assert_eq!((seen, lock.try_with(|value| *value)), (Some(1), Some(1)));
    }

    #[test]
    fn a_child_of_fork_gives_up_what_a_thread_of_its_parent_uses() {
        let lock = ForkLock::new(0);
        assert_eq!(lock.with(|value| *value), Some(0));
        // As if another process had used it first.
        while_used(&lock, |end| {
            assert!(lock.wait(&FirstProcess::another(), Duration::from_millis(10)).is_none());
            drop(end);
        });
        assert_eq!(lock.with(|value| *value), None);
    }

    #[test]
    fn a_child_of_fork_waits_for_its_own_threads() {
        let lock = ForkLock::new(0);
        let seen = while_used(&lock, |end| {
            drop(end);
            lock.wait(&FirstProcess::another(), Duration::from_secs(60)).map(|value| *value)
        });
        assert_eq!((seen, lock.with(|value| *value)), (Some(1), Some(1)));
    }
}
