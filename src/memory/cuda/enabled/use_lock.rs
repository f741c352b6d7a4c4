//! The lock that says whether other processes have memory open.
//!
//! Each process that has it open holds a shared lock on one file, and it is freed when an exclusive lock can be had. The system
//! takes back the lock of a process that ends in any way.

#![allow(unsafe_code, reason = "functions of the system")]

use crate::error::Result;

#[cfg(unix)]
mod twin {
    use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

    use super::Result;
    use crate::error::ExchangeError;

    /// A file whose locks belong to everybody who has a duplicate of it.
    #[derive(Debug)]
    pub(in super::super) struct UseLock {
        file: OwnedFd,
        /// A child of `fork` has a duplicate, but not the memory.
        process: u32,
    }

    impl UseLock {
        /// Duplicates an open file.
        pub(in super::super) fn of(file: i32) -> Result<UseLock> {
            // SAFETY: nothing but the duplicate is made of the number; of one that is not an open file the system makes none.
            let file = (file >= 0).then(|| unsafe { BorrowedFd::borrow_raw(file) }.try_clone_to_owned());
            match file {
                Some(Ok(file)) => Ok(UseLock { file, process: std::process::id() }),
                failed => {
                    let got = failed
                        .and_then(std::result::Result::err)
                        .map_or_else(|| "a negative number".to_owned(), |error| error.to_string());
                    let expected = "an open file, with room for one more";
                    Err(ExchangeError::new("file", &expected, &got).with_fix(&"see `ulimit -n`").into())
                }
            }
        }

        /// Returns whether no other process has the memory open, nor can open it any more.
        pub(in super::super) fn is_alone(&self) -> bool {
            // SAFETY: a file that this owns; the call does not wait.
            self.process == std::process::id()
                && unsafe { libc::flock(self.number(), libc::LOCK_EX | libc::LOCK_NB) } == 0
        }

        /// Returns the number of the file in this process.
        pub(in super::super) fn number(&self) -> i32 {
            self.file.as_raw_fd()
        }
    }
}

#[cfg(not(unix))]
mod twin {
    use super::Result;
    use crate::device::{Device, unsupported};

    /// No file: none can be locked.
    #[derive(Debug)]
    pub(in super::super) enum UseLock {}

    impl UseLock {
        pub(in super::super) fn of(_: i32) -> Result<UseLock> {
            Err(unsupported(Device::cuda(0)).into())
        }

        pub(in super::super) fn is_alone(&self) -> bool {
            match *self {}
        }

        pub(in super::super) fn number(&self) -> i32 {
            match *self {}
        }
    }
}

pub(super) use twin::UseLock;
