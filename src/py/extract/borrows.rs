//! Who has borrowed which memory: what keeps a `&mut` from meeting another reference.
//!
//! An argument is described in a line of the ledger, where it stays until the argument is dropped. So it is never moved,
//! and whoever borrows memory next can be held against it.

#![allow(unsafe_code, reason = "lines are reached through their addresses")]

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ptr::NonNull;
#[cfg(Py_GIL_DISABLED)]
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::protocol::ExchangeError;
use crate::tensor::Owner;

/// What an argument's memory is borrowed for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Nothing: its description is not complete.
    None,
    Read,
    Write,
}

/// Who keeps an argument's memory.
struct Kept {
    object: Option<Py<PyAny>>,
    /// What the producer handed over, if it did; held for its drop.
    owner: Option<Owner>,
}

/// A line: one argument.
struct Entry {
    /// Written by the argument before its memory is borrowed, and then read by all.
    descriptor: UnsafeCell<Descriptor>,
    /// The argument's.
    kept: UnsafeCell<Kept>,
    /// The ledger's.
    access: Access,
    /// The ledger's: where in the list the line stands.
    place: usize,
}

/// All arguments there are: lines in use, then those that are free. A line is never freed; there are as many as there were
/// arguments at a time.
struct Ledger {
    entries: Vec<NonNull<Entry>>,
    used: usize,
    writers: usize,
}

struct Shared(UnsafeCell<Ledger>);

// SAFETY: touched only through `with`, by threads that are attached to the interpreter. One at a time is: either the
// global lock sees to that, or the lock there.
unsafe impl Sync for Shared {}

static LEDGER: Shared = Shared(UnsafeCell::new(Ledger { entries: Vec::new(), used: 0, writers: 0 }));

/// Runs `body` with the ledger. It must not run anybody's code.
#[inline]
fn with<R>(_: Python<'_>, body: impl FnOnce(&mut Ledger) -> R) -> R {
    #[cfg(Py_GIL_DISABLED)]
    static ONE: Mutex<()> = Mutex::new(());
    #[cfg(Py_GIL_DISABLED)]
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: this thread alone is here, and `body` does not come here again.
    body(unsafe { &mut *LEDGER.0.get() })
}

impl Ledger {
    #[inline]
    fn open(&mut self) -> NonNull<Entry> {
        if self.used == self.entries.len() {
            self.extend();
        }
        let entry = self.entries[self.used];
        self.used += 1;
        entry
    }

    #[cold]
    fn extend(&mut self) {
        let entry = Entry {
            descriptor: UnsafeCell::new(Descriptor::BLANK),
            kept: UnsafeCell::new(Kept { object: None, owner: None }),
            access: Access::None,
            place: self.used,
        };
        self.entries.push(NonNull::from(Box::leak(Box::new(entry))));
    }

    #[inline]
    fn close(&mut self, entry: NonNull<Entry>) {
        self.used -= 1;
        // SAFETY: entries live for the rest of the process, and only the ledger looks at these two fields.
        unsafe {
            let (place, last) = ((*entry.as_ptr()).place, self.entries[self.used]);
            self.writers -= usize::from((*entry.as_ptr()).access == Access::Write);
            (*entry.as_ptr()).access = Access::None;
            self.entries.swap(place, self.used);
            (*last.as_ptr()).place = place;
            (*entry.as_ptr()).place = self.used;
        }
    }

    /// What the memory is borrowed for already, if that is in the way.
    fn conflict(&self, entry: NonNull<Entry>, access: Access) -> Option<Access> {
        if access == Access::Read && self.writers == 0 {
            return None;
        }
        // SAFETY: the description is complete, and changes no more while its line is in use.
        let mine = unsafe { &*(*entry.as_ptr()).descriptor.get() };
        self.entries[..self.used].iter().find_map(|other| {
            // SAFETY: as above of lines that are borrowed for something.
            let (held, theirs) = unsafe { ((*other.as_ptr()).access, (*other.as_ptr()).descriptor.get()) };
            let matters = held == Access::Write || held == Access::Read && access == Access::Write;
            // SAFETY: as above.
            (matters && mine.overlaps(unsafe { &*theirs })).then_some(held)
        })
    }
}

/// An argument's line, which is free again when this is dropped.
pub(super) struct Loan<'py> {
    entry: NonNull<Entry>,
    /// Bound to a thread that is attached, as the object is.
    py: PhantomData<Bound<'py, PyAny>>,
}

impl<'py> Loan<'py> {
    /// A line of its own, whose description nobody looks at yet. `fill` describes the object there, and returns what the
    /// producer handed over.
    #[inline]
    pub(super) fn open(
        object: &Bound<'py, PyAny>,
        fill: impl FnOnce(&mut Descriptor) -> PyResult<Option<Owner>>,
    ) -> PyResult<Loan<'py>> {
        let mut loan = Loan { entry: with(object.py(), Ledger::open), py: PhantomData };
        let owner = fill(loan.descriptor_mut())?;
        *loan.kept_mut() = Kept { object: Some(object.clone().unbind()), owner };
        Ok(loan)
    }

    /// Borrows the memory that has been described.
    ///
    /// # Errors
    /// [`ExchangeError::Borrowed`] if it overlaps memory that is borrowed already, and one of the two is to be written.
    #[inline]
    pub(super) fn borrow(&mut self, access: Access) -> Result<(), ExchangeError> {
        let entry = self.entry;
        let held = with(self.object().py(), |ledger| {
            let held = ledger.conflict(entry, access);
            if held.is_none() {
                // SAFETY: only the ledger looks at this field.
                unsafe { (*entry.as_ptr()).access = access };
                ledger.writers += usize::from(access == Access::Write);
            }
            held
        });
        match held {
            None => Ok(()),
            Some(held) => {
                let held = if held == Access::Write { "writes" } else { "reads" };
                Err(ExchangeError::Borrowed { held, wanted: if access == Access::Write { "written" } else { "read" } })
            }
        }
    }

    /// Only before the memory is borrowed: nobody else looks at the description until then.
    #[inline]
    fn descriptor_mut(&mut self) -> &mut Descriptor {
        // SAFETY: the line is this loan's.
        unsafe { &mut *(*self.entry.as_ptr()).descriptor.get() }
    }

    #[inline]
    fn kept_mut(&mut self) -> &mut Kept {
        // SAFETY: the line is this loan's, and nobody else looks at this.
        unsafe { &mut *(*self.entry.as_ptr()).kept.get() }
    }

    #[inline]
    fn kept(&self) -> &Kept {
        // SAFETY: as above.
        unsafe { &*(*self.entry.as_ptr()).kept.get() }
    }

    #[inline]
    pub(super) fn descriptor(&self) -> &Descriptor {
        // SAFETY: the line is this loan's; others only read this.
        unsafe { &*(*self.entry.as_ptr()).descriptor.get() }
    }

    /// The object that was described.
    #[inline]
    pub(super) fn object(&self) -> &Bound<'py, PyAny> {
        match &self.kept().object {
            // SAFETY: a loan belongs to a thread that is attached, for as long as its lifetime says.
            Some(object) => object.bind(unsafe { Python::assume_attached() }),
            None => unreachable!("a loan that is open has its object"),
        }
    }
}

impl Drop for Loan<'_> {
    #[inline]
    fn drop(&mut self) {
        let kept = self.kept_mut();
        let (object, owner) = (kept.object.take(), kept.owner.take());
        // SAFETY: a loan belongs to a thread that is attached.
        let py = unsafe { Python::assume_attached() };
        with(py, |ledger| ledger.close(self.entry));
        // Last, as it may run anybody's code.
        drop(owner);
        drop(object.map(|object| object.into_bound(py)));
    }
}
