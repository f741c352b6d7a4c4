//! The ledger of borrowed memory, which keeps a `&mut` from existing beside another reference.
//!
//! Each argument has an entry in the ledger, in which it is described, until the argument is dropped. So the description is
//! never moved, and later borrows are checked against it.

#![allow(unsafe_code, reason = "entries are reached through their addresses")]

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ptr::NonNull;
#[cfg(Py_GIL_DISABLED)]
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::protocol::ExchangeError;
use crate::python::convert::args;
use crate::python::import;
use crate::python::import::BorrowSource;
use crate::tensor::Owner;

/// What an argument's memory is borrowed for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BorrowAccess {
    /// Not borrowed: its description is not complete.
    None,
    Read,
    Write,
}

/// What keeps an argument's memory alive.
struct Holding {
    object: Option<Py<PyAny>>,
    /// The owner that the producer passed, if any; held for its drop.
    owner: Option<Owner>,
    source: BorrowSource,
}

impl Holding {
    const NOTHING: Holding = Holding { object: None, owner: None, source: BorrowSource::None };
}

/// Checks the elements in place.
///
/// # Safety
/// - Elements that the host can reach are readable.
pub(super) type CheckValues = unsafe fn(&Descriptor) -> Result<()>;

/// An entry of the ledger: one argument.
struct Entry {
    /// Written by the argument before its memory is borrowed; read by all after that.
    descriptor: UnsafeCell<Descriptor>,
    /// As the descriptor; taken by the ledger when the entry becomes free.
    holding: UnsafeCell<Holding>,
    /// Accessed through the ledger only.
    access: BorrowAccess,
    /// Accessed through the ledger only. Set while the memory is borrowed and has no view yet: the check to repeat after
    /// Python code has run.
    values: Option<CheckValues>,
    /// Written through the ledger, for the argument: whether the memory has had a view. From then on no other code may read
    /// it, so it is not checked any more.
    viewed: bool,
    /// Accessed through the ledger only: the position of the entry in the list.
    place: usize,
}

/// All live arguments: entries in use, then free ones. Entries are never deallocated; there are as many as there were live
/// arguments at one time.
struct Ledger {
    entries: Vec<NonNull<Entry>>,
    used: usize,
    writers: usize,
}

struct Shared(UnsafeCell<Ledger>);

// SAFETY: accessed only through `with`, by threads attached to the interpreter, one at a time: by the GIL, or else by the
// lock there.
unsafe impl Sync for Shared {}

static LEDGER: Shared = Shared(UnsafeCell::new(Ledger { entries: Vec::new(), used: 0, writers: 0 }));

/// Runs `body` with the ledger. It must not run foreign code.
#[inline]
fn with<R>(_: Python<'_>, body: impl FnOnce(&mut Ledger) -> R) -> R {
    #[cfg(Py_GIL_DISABLED)]
    static ONE: Mutex<()> = Mutex::new(());
    #[cfg(Py_GIL_DISABLED)]
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: one thread at a time is here, and `body` does not call this again.
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
            holding: UnsafeCell::new(Holding::NOTHING),
            access: BorrowAccess::None,
            values: None,
            viewed: false,
            place: self.used,
        };
        self.entries.push(NonNull::from(Box::leak(Box::new(entry))));
    }

    /// Frees an entry, and returns what it kept.
    #[inline]
    fn close(&mut self, entry: NonNull<Entry>) -> Holding {
        self.used -= 1;
        // SAFETY: entries live for the rest of the process; these fields are accessed through the ledger only; `holding`
        // is the argument's, which is gone.
        unsafe {
            let (place, last) = ((*entry.as_ptr()).place, self.entries[self.used]);
            self.writers -= usize::from((*entry.as_ptr()).access == BorrowAccess::Write);
            (*entry.as_ptr()).access = BorrowAccess::None;
            (*entry.as_ptr()).values = None;
            (*entry.as_ptr()).viewed = false;
            self.entries.swap(place, self.used);
            (*last.as_ptr()).place = place;
            (*entry.as_ptr()).place = self.used;
            std::mem::replace(&mut *(*entry.as_ptr()).holding.get(), Holding::NOTHING)
        }
    }

    /// The entries that are borrowed and have no view yet.
    fn waiting(&self) -> impl Iterator<Item = &Entry> {
        // SAFETY: entries live for the rest of the process, and once borrowed are written to only through the ledger.
        let entries = self.entries[..self.used].iter().map(|entry| unsafe { entry.as_ref() });
        entries.filter(|entry| entry.access != BorrowAccess::None && !entry.viewed)
    }

    /// What the memory is borrowed for already, if that conflicts.
    fn conflict(&self, entry: NonNull<Entry>, access: BorrowAccess) -> Option<BorrowAccess> {
        if access == BorrowAccess::Read && self.writers == 0 {
            return None;
        }
        // SAFETY: the descriptor is complete, and no longer changes while its entry is in use.
        let mine = unsafe { &*(*entry.as_ptr()).descriptor.get() };
        self.entries[..self.used].iter().find_map(|other| {
            // SAFETY: as above, for entries that are borrowed.
            let (held, descriptor) = unsafe { ((*other.as_ptr()).access, (*other.as_ptr()).descriptor.get()) };
            let matters = held == BorrowAccess::Write || held == BorrowAccess::Read && access == BorrowAccess::Write;
            // SAFETY: as above.
            (matters && mine.overlaps(unsafe { &*descriptor })).then_some(held)
        })
    }
}

/// An argument's entry, which becomes free when this is dropped.
pub(super) struct Loan<'py> {
    entry: NonNull<Entry>,
    /// Bound to an attached thread, as the object is.
    py: PhantomData<Bound<'py, PyAny>>,
}

impl<'py> Loan<'py> {
    /// Opens an entry that no other code reads yet. `fill` describes the object there, and returns what keeps the memory
    /// alive.
    #[inline]
    pub(super) fn open(
        object: &Bound<'py, PyAny>,
        fill: impl FnOnce(&mut Descriptor) -> PyResult<(Option<Owner>, BorrowSource)>,
    ) -> PyResult<Loan<'py>> {
        let loan = Loan { entry: with(object.py(), Ledger::open), py: PhantomData };
        // SAFETY: the entry is this loan's, and no other code reads these fields before the memory is borrowed.
        unsafe {
            let (owner, source) = fill(&mut *(*loan.entry.as_ptr()).descriptor.get())?;
            *(*loan.entry.as_ptr()).holding.get() = Holding { object: Some(object.clone().unbind()), owner, source };
        }
        Ok(loan)
    }

    /// Borrows the memory that has been described.
    ///
    /// # Errors
    /// [`ExchangeError::Borrowed`] if it overlaps memory that is borrowed already, and one of the two borrows writes.
    #[inline]
    pub(super) fn borrow(&mut self, access: BorrowAccess) -> Result<()> {
        let entry = self.entry;
        let held = with(self.py(), |ledger| {
            let held = ledger.conflict(entry, access);
            if held.is_none() {
                // SAFETY: this field is accessed through the ledger only.
                unsafe { (*entry.as_ptr()).access = access };
                ledger.writers += usize::from(access == BorrowAccess::Write);
            }
            held
        });
        match held {
            None => Ok(()),
            Some(held) => {
                let held = if held == BorrowAccess::Write { "writes" } else { "reads" };
                let wanted = if access == BorrowAccess::Write { "written" } else { "read" };
                Err(ExchangeError::Borrowed { held, wanted }.into())
            }
        }
    }

    /// Checks the elements of borrowed memory, now and whenever foreign code has run until they have a view.
    #[inline]
    pub(super) fn check_values(&mut self, values: Option<CheckValues>) -> Result<()> {
        let Some(check) = values else { return Ok(()) };
        let entry = self.entry;
        // SAFETY: this field is accessed through the ledger only.
        with(self.py(), |_| unsafe { (*entry.as_ptr()).values = values });
        // SAFETY: the object's protocol has described the memory, and the ledger rejects other writers.
        unsafe { check(self.descriptor()) }
    }

    /// Keeps the owner that the producer has passed since.
    pub(super) fn keep(&mut self, owner: Option<Owner>) {
        let entry = self.entry;
        // SAFETY: the entry is this loan's, and other code accesses what is kept through the ledger only.
        with(self.py(), |_| unsafe { (*(*entry.as_ptr()).holding.get()).owner = owner });
    }

    /// Checks all borrowed arguments against their descriptors, after foreign code has run that may have changed them.
    ///
    /// # Errors
    /// [`ExchangeError::Disturbed`] if memory was moved or has another description by now, or has invalid elements.
    #[cold]
    pub(super) fn check_undisturbed(&self) -> Result<()> {
        let py = self.py();
        let borrowed: Vec<_> = with(py, |ledger| {
            let entries = ledger.waiting().filter_map(|entry| {
                // SAFETY: both are complete, and no longer change while the entry is in use.
                let (found, holding) = unsafe { (&*entry.descriptor.get(), &*entry.holding.get()) };
                let source = match &holding.source {
                    BorrowSource::None => None,
                    BorrowSource::Argument => holding.object.as_ref(),
                    BorrowSource::Inside(array) => Some(array),
                };
                source.map(|source| (source.clone_ref(py).into_bound(py), found.clone(), entry.access))
            });
            entries.collect()
        });
        for (source, found, access) in &borrowed {
            let mut now = Descriptor::BLANK;
            let state = match import::reborrow(source, &mut now) {
                Ok(()) if is_same(found, &now, *access) => continue,
                Ok(()) => import::summary(&now),
                Err(error) => error.to_string(),
            };
            return Err(disturbed(args::shown(source.get_type().as_any()), import::summary(found), state));
        }
        // This memory is known to be in place. While the ledger is held no writer can start.
        with(py, |ledger| {
            ledger.waiting().try_for_each(|entry| {
                let Some(check) = entry.values else { return Ok(()) };
                // SAFETY: complete, and the memory is as readable as at the first check.
                let (found, checked) = unsafe { (&*entry.descriptor.get(), check(&*entry.descriptor.get())) };
                checked.map_err(|error| disturbed("an array".to_owned(), import::summary(found), error.to_string()))
            })
        })
    }

    /// Returns the descriptor to make a view of.
    #[inline]
    pub(super) fn viewed(&self) -> &Descriptor {
        let entry = self.entry;
        // SAFETY: only the ledger and this loan access this field, and it is written for this loan only.
        if !unsafe { (*entry.as_ptr()).viewed } {
            // SAFETY: as above, and other code reads it through the ledger.
            with(self.py(), |_| unsafe { (*entry.as_ptr()).viewed = true });
        }
        self.descriptor()
    }

    #[inline]
    pub(super) fn descriptor(&self) -> &Descriptor {
        // SAFETY: the entry is this loan's; other code only reads this.
        unsafe { &*(*self.entry.as_ptr()).descriptor.get() }
    }

    /// The object that was described.
    #[inline]
    pub(super) fn object(&self) -> &Bound<'py, PyAny> {
        // SAFETY: the entry is this loan's; other code only reads this field.
        match unsafe { &(*(*self.entry.as_ptr()).holding.get()).object } {
            Some(object) => object.bind(self.py()),
            None => unreachable!("a loan that is open has its object"),
        }
    }

    #[inline]
    fn py(&self) -> Python<'py> {
        // SAFETY: a loan belongs to an attached thread, as long as its lifetime lasts.
        unsafe { Python::assume_attached() }
    }
}

impl Drop for Loan<'_> {
    #[inline]
    fn drop(&mut self) {
        let Holding { object, owner, source } = with(self.py(), |ledger| ledger.close(self.entry));
        // Last, as it may run foreign code.
        drop(owner);
        let py = self.py();
        if let BorrowSource::Inside(array) = source {
            drop(array.into_bound(py));
        }
        drop(object.map(|object| object.into_bound(py)));
    }
}

/// Whether memory has the same place and description, and still allows the access.
fn is_same(found: &Descriptor, now: &Descriptor, access: BorrowAccess) -> bool {
    let parts = |field: &Descriptor| -> (usize, Device, DType) { (field.ptr().addr(), field.device(), field.dtype()) };
    let writable = access != BorrowAccess::Write || !now.is_readonly();
    writable && parts(found) == parts(now) && found.shape() == now.shape() && found.strides() == now.strides()
}

fn disturbed(object: String, was: String, found: String) -> crate::Error {
    ExchangeError::Disturbed { object, was, found }.into()
}
