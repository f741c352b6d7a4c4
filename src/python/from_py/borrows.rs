//! The ledger of borrowed memory, which keeps a `&mut` from existing beside another reference.
//!
//! Each argument has an entry in the ledger, in which it is described, until the argument is dropped. So the description is
//! never moved, and later borrows are checked against it.

#![allow(unsafe_code, reason = "entries are reached through their addresses")]

use std::marker::PhantomData;
use std::panic::{panic_any, resume_unwind};
use std::ptr::NonNull;

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::error::{Error, Result};
use crate::protocol::ExchangeError;
use crate::python::convert::repr;
pub(super) use crate::python::from_py::entry::{BorrowAccess, CheckValues};
use crate::python::from_py::entry::{Entry, Holding};
use crate::python::from_py::ledger::{self, is_same_memory, with_ledger};
use crate::python::from_py::{rust_numpy, threads};
use crate::python::import;
use crate::python::import::BorrowSource;
use crate::tensor::Owner;

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
        let (py, thread) = (object.py(), threads::this_thread(object.py()));
        let loan = Loan { entry: with_ledger(py, |ledger| ledger.open(thread)), py: PhantomData };
        // SAFETY: the entry is this loan's, and no other code reads these fields before the memory is borrowed.
        unsafe {
            let (owner, source) = fill(&mut *(*loan.entry.as_ptr()).descriptor.get())?;
            *(*loan.entry.as_ptr()).holding.get() =
                Holding { object: Some(object.clone().unbind()), owner, source, listed: None };
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
        if let Some(held) = with_ledger(self.py(), |ledger| ledger.borrow(entry, access)) {
            self.borrow_reclaimed(access, held)?;
        }
        if rust_numpy::may_have_other_list() { self.enter_other_list(access) } else { Ok(()) }
    }

    /// As [`Loan::borrow`], after the borrows that threads have left behind are removed.
    #[cold]
    fn borrow_reclaimed(&mut self, access: BorrowAccess, held: &'static str) -> Result<()> {
        let (py, entry) = (self.py(), self.entry);
        ledger::reclaim(py);
        if with_ledger(py, |ledger| ledger.borrow(entry, access)).is_some() {
            let wanted = if access == BorrowAccess::Write { "written" } else { "read" };
            return Err(ExchangeError::Borrowed { held, wanted }.into());
        }
        let left = with_ledger(py, |ledger| ledger.take_left());
        if left.is_empty() {
            return Ok(());
        }
        // Any code may run.
        left.into_iter().for_each(|holding| holding.release(py));
        self.check_undisturbed()
    }

    /// Enters a NumPy array in the list of another extension, if there is one.
    #[cold]
    fn enter_other_list(&mut self, access: BorrowAccess) -> Result<()> {
        let (py, entry) = (self.py(), self.entry);
        let object = match &self.holding().source {
            BorrowSource::Inside(array) => array.bind(py),
            _ => self.object(),
        };
        let listed = rust_numpy::enter(object, self.descriptor().ptr(), access)?;
        // SAFETY: as for `keep`.
        with_ledger(py, |_| unsafe { (*(*entry.as_ptr()).holding.get()).listed = listed });
        Ok(())
    }

    /// Checks the elements of borrowed memory, now and whenever foreign code has run until they have a view.
    #[inline]
    pub(super) fn check_values(&mut self, values: Option<CheckValues>) -> Result<()> {
        let Some(check) = values else { return Ok(()) };
        let entry = self.entry;
        // SAFETY: this field is accessed through the ledger only.
        with_ledger(self.py(), |_| unsafe { (*entry.as_ptr()).values = values });
        // SAFETY: the object's protocol has described the memory, and the ledger rejects other writers.
        unsafe { check(self.descriptor()) }
    }

    /// Keeps the owner that the producer has passed since.
    pub(super) fn keep(&mut self, owner: Option<Owner>) {
        let entry = self.entry;
        // SAFETY: the entry is this loan's, and other code accesses what is kept through the ledger only.
        with_ledger(self.py(), |_| unsafe { (*(*entry.as_ptr()).holding.get()).owner = owner });
    }

    /// Checks all borrowed arguments against their descriptors, after foreign code has run that may have changed them.
    ///
    /// # Errors
    /// [`ExchangeError::Disturbed`] if memory was moved or has another description by now, or has invalid elements.
    #[cold]
    pub(super) fn check_undisturbed(&self) -> Result<()> {
        let py = self.py();
        let borrowed: Vec<_> = with_ledger(py, |ledger| {
            let entries = ledger.waiting().filter_map(|entry| {
                // SAFETY: both are complete, and no longer change while the entry is in use.
                let (found, holding) = unsafe { (&*entry.descriptor.get(), &*entry.holding.get()) };
                let array = holding.array()?;
                Some((array.clone_ref(py).into_bound(py), found.clone(), entry.access))
            });
            entries.collect()
        });
        for (source, found, access) in &borrowed {
            check_source(source, found, *access)?;
        }
        // What can be looked at again is in place; other memory is there as long as its protocol promises. While the ledger is held
        // no writer can start.
        with_ledger(py, |ledger| {
            ledger.waiting().try_for_each(|entry| {
                let Some(check) = entry.values else { return Ok(()) };
                // SAFETY: complete, and the memory is as readable as at the first check.
                let (found, checked) = unsafe { (&*entry.descriptor.get(), check(&*entry.descriptor.get())) };
                checked.map_err(|error| bad_values(found, &error))
            })
        })
    }

    /// Returns the descriptor to make a view of. The first time it looks at the memory again: what PyO3 has converted after this
    /// argument, such as a number with a `__float__`, may have run any code. After that the memory is not checked any more.
    /// `check` then looks at the descriptor, and may read the elements.
    ///
    /// # Errors
    /// [`ExchangeError::Disturbed`], as for [`Loan::check_undisturbed`], and those of `check`.
    #[inline]
    pub(super) fn descriptor_for_view(&self, check: impl FnOnce(&Descriptor) -> Result<()>) -> Result<&Descriptor> {
        let entry = self.entry;
        // SAFETY: only the ledger and this loan access this field, and it is written for this loan only.
        let viewed = unsafe { (*entry.as_ptr()).viewed };
        if !viewed {
            self.check_in_place()?;
        }
        check(self.descriptor())?;
        if !viewed {
            // SAFETY: as above, and other code reads it through the ledger.
            with_ledger(self.py(), |_| unsafe { (*entry.as_ptr()).viewed = true });
        }
        Ok(self.descriptor())
    }

    /// As [`Loan::descriptor_for_view`], for functions that return no error: it unwinds to PyO3, which raises its
    /// `PanicException` with the message.
    #[inline]
    pub(super) fn descriptor_or_unwind(&self) -> &Descriptor {
        self.descriptor_for_view(|_| Ok(())).unwrap_or_else(|error| unwind(&error))
    }

    /// As [`Loan::check_undisturbed`], for this argument alone.
    #[inline]
    fn check_in_place(&self) -> Result<()> {
        let (found, entry) = (self.descriptor(), self.entry.as_ptr());
        // SAFETY: these fields are written for this loan only. Memory that can be looked at again is in place, and as readable as at
        // the first check; that of other objects is there as long as their protocol promises. The loan keeps others from borrowing
        // it to write.
        let checked = unsafe {
            if let Some(source) = self.holding().array() {
                check_source(source.bind(self.py()), found, (*entry).access)?;
            }
            (*entry).values.map_or(Ok(()), |check| check(found))
        };
        checked.map_err(|error| bad_values(found, &error))
    }

    #[inline]
    pub(super) fn descriptor(&self) -> &Descriptor {
        // SAFETY: the entry is this loan's; other code only reads this.
        unsafe { &*(*self.entry.as_ptr()).descriptor.get() }
    }

    /// The object that was described.
    #[inline]
    pub(super) fn object(&self) -> &Bound<'py, PyAny> {
        match &self.holding().object {
            Some(object) => object.bind(self.py()),
            None => unreachable!("a loan that is open has its object"),
        }
    }

    /// What keeps the memory alive.
    #[inline]
    fn holding(&self) -> &Holding {
        // SAFETY: the entry is this loan's; other code only reads this field.
        unsafe { &*(*self.entry.as_ptr()).holding.get() }
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
        let holding = with_ledger(self.py(), |ledger| ledger.close(self.entry));
        holding.release(self.py());
    }
}

/// Whether memory has the same place and description, and still allows the access.
fn is_same(found: &Descriptor, now: &Descriptor, access: BorrowAccess) -> bool {
    let writable = access != BorrowAccess::Write || !now.is_readonly();
    writable && is_same_memory(found, now)
}

/// Checks that an array still has the memory that was described.
#[inline]
fn check_source(source: &Bound<'_, PyAny>, found: &Descriptor, access: BorrowAccess) -> Result<()> {
    if import::is_as_described(source, found) {
        return Ok(());
    }
    let mut now = Descriptor::BLANK;
    let state = match import::reborrow(source, &mut now) {
        Ok(()) if is_same(found, &now, access) => return Ok(()),
        Ok(()) => import::summary(&now),
        Err(error) => error.value(source.py()).to_string(),
    };
    Err(disturbed(repr::of_class(&source.get_type()), import::summary(found), state))
}

#[cold]
fn bad_values(found: &Descriptor, error: &Error) -> Error {
    disturbed("an array".to_owned(), import::summary(found), error.to_string())
}

/// Unwinds to PyO3 without a panic's message on standard error, which only a program that ends by it needs.
#[cold]
#[expect(
    clippy::panic,
    reason = "a view of memory that was moved would be undefined behaviour, and `array` returns no error"
)]
fn unwind(error: &Error) -> ! {
    if cfg!(panic = "unwind") { resume_unwind(Box::new(error.to_string())) } else { panic_any(error.to_string()) }
}

fn disturbed(object: String, was: String, found: String) -> Error {
    ExchangeError::Disturbed { object, was, found }.into()
}
