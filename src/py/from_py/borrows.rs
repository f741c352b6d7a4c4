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

use super::super::import::BorrowSource;
use super::super::{args, import};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
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
struct Holding {
    object: Option<Py<PyAny>>,
    /// What the producer handed over, if it did; held for its drop.
    owner: Option<Owner>,
    source: BorrowSource,
}

impl Holding {
    const NOTHING: Holding = Holding { object: None, owner: None, source: BorrowSource::None };
}

/// Looks at the elements where they lie.
///
/// # Safety
/// - Elements that the host can reach are readable.
pub(super) type CheckValues = unsafe fn(&Descriptor) -> Result<()>;

/// A line: one argument.
struct Entry {
    /// Written by the argument before its memory is borrowed, and then read by all.
    descriptor: UnsafeCell<Descriptor>,
    /// As the description; taken by the ledger when the line becomes free.
    kept: UnsafeCell<Holding>,
    /// The ledger's.
    access: Access,
    /// The ledger's, while the memory is borrowed and until there is a view of it: what Python code may undo.
    values: Option<CheckValues>,
    /// The ledger's, written for the argument: whether there has been a view of the memory. From then on nobody else may look at it, and nothing
    /// is saved by finding it changed.
    viewed: bool,
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
            kept: UnsafeCell::new(Holding::NOTHING),
            access: Access::None,
            values: None,
            viewed: false,
            place: self.used,
        };
        self.entries.push(NonNull::from(Box::leak(Box::new(entry))));
    }

    /// Frees a line, and returns what was kept.
    #[inline]
    fn close(&mut self, entry: NonNull<Entry>) -> Holding {
        self.used -= 1;
        // SAFETY: entries live for the rest of the process; only the ledger looks at these fields, and only here at what
        // is kept, as the argument is gone.
        unsafe {
            let (place, last) = ((*entry.as_ptr()).place, self.entries[self.used]);
            self.writers -= usize::from((*entry.as_ptr()).access == Access::Write);
            (*entry.as_ptr()).access = Access::None;
            (*entry.as_ptr()).values = None;
            (*entry.as_ptr()).viewed = false;
            self.entries.swap(place, self.used);
            (*last.as_ptr()).place = place;
            (*entry.as_ptr()).place = self.used;
            std::mem::replace(&mut *(*entry.as_ptr()).kept.get(), Holding::NOTHING)
        }
    }

    /// The lines that are borrowed, and of whose memory there is no view yet.
    fn waiting(&self) -> impl Iterator<Item = &Entry> {
        // SAFETY: entries live for the rest of the process, and are written to through the ledger only once they are
        // borrowed.
        let lines = self.entries[..self.used].iter().map(|entry| unsafe { entry.as_ref() });
        lines.filter(|line| line.access != Access::None && !line.viewed)
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
    /// A line of its own, whose description nobody looks at yet. `fill` describes the object there, and says who keeps the
    /// memory.
    #[inline]
    pub(super) fn open(
        object: &Bound<'py, PyAny>,
        fill: impl FnOnce(&mut Descriptor) -> PyResult<(Option<Owner>, BorrowSource)>,
    ) -> PyResult<Loan<'py>> {
        let loan = Loan { entry: with(object.py(), Ledger::open), py: PhantomData };
        // SAFETY: the line is this loan's, and nobody else looks at these before the memory is borrowed.
        unsafe {
            let (owner, source) = fill(&mut *(*loan.entry.as_ptr()).descriptor.get())?;
            *(*loan.entry.as_ptr()).kept.get() = Holding { object: Some(object.clone().unbind()), owner, source };
        }
        Ok(loan)
    }

    /// Borrows the memory that has been described.
    ///
    /// # Errors
    /// [`ExchangeError::Borrowed`] if it overlaps memory that is borrowed already, and one of the two is to be written.
    #[inline]
    pub(super) fn borrow(&mut self, access: Access) -> Result<()> {
        let entry = self.entry;
        let held = with(self.py(), |ledger| {
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
                let wanted = if access == Access::Write { "written" } else { "read" };
                Err(ExchangeError::Borrowed { held, wanted }.into())
            }
        }
    }

    /// Looks at the elements, once the memory is borrowed, and whenever code has run until there is a view of them.
    #[inline]
    pub(super) fn check_values(&mut self, values: Option<CheckValues>) -> Result<()> {
        let Some(check) = values else { return Ok(()) };
        let entry = self.entry;
        // SAFETY: only the ledger looks at this field.
        with(self.py(), |_| unsafe { (*entry.as_ptr()).values = values });
        // SAFETY: the object has said through its protocol that the memory is there, and nobody else writes to it.
        unsafe { check(self.descriptor()) }
    }

    /// Keeps what the producer has handed over since.
    pub(super) fn keep(&mut self, owner: Option<Owner>) {
        let entry = self.entry;
        // SAFETY: the line is this loan's, and others look at what is kept through the ledger only.
        with(self.py(), |_| unsafe { (*(*entry.as_ptr()).kept.get()).owner = owner });
    }

    /// Holds the arguments there are against what was found when each was read, after code has run that may have done
    /// anything to them.
    ///
    /// # Errors
    /// [`ExchangeError::Disturbed`] if memory is elsewhere or otherwise by now, or has other values than its elements can
    /// have.
    #[cold]
    pub(super) fn check_undisturbed(&self) -> Result<()> {
        let py = self.py();
        let lent: Vec<_> = with(py, |ledger| {
            let lines = ledger.waiting().filter_map(|line| {
                // SAFETY: both are complete, and change no more while the line is in use.
                let (found, kept) = unsafe { (&*line.descriptor.get(), &*line.kept.get()) };
                let source = match &kept.source {
                    BorrowSource::None => None,
                    BorrowSource::Argument => kept.object.as_ref(),
                    BorrowSource::Inside(array) => Some(array),
                };
                source.map(|source| (source.clone_ref(py).into_bound(py), found.clone(), line.access))
            });
            lines.collect()
        });
        for (source, found, access) in &lent {
            let mut now = Descriptor::BLANK;
            let state = match import::reborrow(source, &mut now) {
                Ok(()) if is_same(found, &now, *access) => continue,
                Ok(()) => import::summary(&now),
                Err(error) => error.to_string(),
            };
            return Err(disturbed(args::shown(source.get_type().as_any()), import::summary(found), state));
        }
        // Memory that is known to be where it was. While the ledger is held nobody begins to write there.
        with(py, |ledger| {
            ledger.waiting().try_for_each(|line| {
                let Some(check) = line.values else { return Ok(()) };
                // SAFETY: complete, and the memory is readable as when it was first looked at.
                let (found, checked) = unsafe { (&*line.descriptor.get(), check(&*line.descriptor.get())) };
                checked.map_err(|error| disturbed("an array".to_owned(), import::summary(found), error.to_string()))
            })
        })
    }

    /// The description, to make a view of.
    #[inline]
    pub(super) fn viewed(&self) -> &Descriptor {
        let entry = self.entry;
        // SAFETY: only the ledger and this loan look at this field, and it is written for this loan only.
        if !unsafe { (*entry.as_ptr()).viewed } {
            // SAFETY: as above, and others look at it through the ledger.
            with(self.py(), |_| unsafe { (*entry.as_ptr()).viewed = true });
        }
        self.descriptor()
    }

    #[inline]
    pub(super) fn descriptor(&self) -> &Descriptor {
        // SAFETY: the line is this loan's; others only read this.
        unsafe { &*(*self.entry.as_ptr()).descriptor.get() }
    }

    /// The object that was described.
    #[inline]
    pub(super) fn object(&self) -> &Bound<'py, PyAny> {
        // SAFETY: the line is this loan's; others only read this field.
        match unsafe { &(*(*self.entry.as_ptr()).kept.get()).object } {
            Some(object) => object.bind(self.py()),
            None => unreachable!("a loan that is open has its object"),
        }
    }

    #[inline]
    fn py(&self) -> Python<'py> {
        // SAFETY: a loan belongs to a thread that is attached, for as long as its lifetime says.
        unsafe { Python::assume_attached() }
    }
}

impl Drop for Loan<'_> {
    #[inline]
    fn drop(&mut self) {
        let Holding { object, owner, source } = with(self.py(), |ledger| ledger.close(self.entry));
        // Last, as it may run anybody's code.
        drop(owner);
        let py = self.py();
        if let BorrowSource::Inside(array) = source {
            drop(array.into_bound(py));
        }
        drop(object.map(|object| object.into_bound(py)));
    }
}

/// Whether memory is where it was found, and may be used as it was to be.
fn is_same(found: &Descriptor, now: &Descriptor, access: Access) -> bool {
    let parts = |field: &Descriptor| -> (usize, Device, DType) { (field.ptr().addr(), field.device(), field.dtype()) };
    let writable = access != Access::Write || !now.is_readonly();
    writable && parts(found) == parts(now) && found.shape() == now.shape() && found.strides() == now.strides()
}

fn disturbed(object: String, was: String, found: String) -> crate::Error {
    ExchangeError::Disturbed { object, was, found }.into()
}
