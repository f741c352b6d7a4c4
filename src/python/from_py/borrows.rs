//! Arguments whose memory is borrowed: each has an entry in the [ledger](crate::python::from_py::ledger) until it is dropped.

#![allow(unsafe_code, reason = "entries are reached through their addresses")]

use std::marker::PhantomData;
use std::panic::{panic_any, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::dims::Dims;
use crate::error::{Error, ExchangeError, ExchangeErrorKind, Result};
use crate::python::convert::repr;
use crate::python::from_py::axes::Axes;
use crate::python::from_py::ledger::{BorrowSource, CHECKED, CheckValues, Entry, VIEWED, with_ledger};
use crate::python::from_py::rust_numpy;
use crate::python::import;
use crate::tensor::Owner;

/// An argument's entry, which is used again when this is dropped.
pub(super) struct Loan<'py> {
    entry: NonNull<Entry>,
    is_borrowed: bool,
    /// Bound to an attached thread, as the object is.
    py: PhantomData<Bound<'py, PyAny>>,
}

impl<'py> Loan<'py> {
    /// Takes an entry for an object, to be described there.
    #[inline]
    pub(super) fn new(object: &Bound<'py, PyAny>) -> Loan<'py> {
        let entry = with_ledger(object.py(), |ledger| ledger.unused());
        // SAFETY: no other code reads an unused entry.
        unsafe { (*entry.as_ptr()).object = Some(object.clone().unbind()) };
        Loan { entry, is_borrowed: false, py: PhantomData }
    }

    /// The description to fill in, before the memory is borrowed.
    #[inline]
    pub(super) fn descriptor_mut(&mut self) -> &mut Descriptor {
        assert!(!self.is_borrowed, "other code reads the entry");
        // SAFETY: the entry is this loan's alone until it is entered.
        unsafe { &mut (*self.entry.as_ptr()).descriptor }
    }

    /// Borrows the memory that has been described, which `owner` keeps, or else the `source`. Checks the other arguments if code of
    /// others `ran`, and last the elements by `values`; they are checked again whenever such code has run until they have a view.
    ///
    /// # Errors
    /// [`ExchangeError`] if it overlaps memory that is borrowed already, and one of the two borrows writes; those of the checks.
    #[inline]
    pub(super) fn borrow(
        &mut self,
        writes: bool,
        values: Option<CheckValues>,
        owner: Option<Owner>,
        source: BorrowSource,
        ran: bool,
    ) -> Result<()> {
        let (py, entry) = (self.py(), self.entry);
        // SAFETY: as in `descriptor_mut`; from then on the entry stays as it is until `drop`.
        let found = with_ledger(py, |ledger| unsafe {
            let new = &mut *entry.as_ptr();
            (new.writes, new.values, new.owner, new.source) = (writes, values, owner, source);
            ledger.enter(entry)
        });
        self.is_borrowed = found.is_none();
        if let Some(held) = found.or_else(|| rust_numpy::hold(py, entry)) {
            let (use_of, fix) = match writes {
                true => ("written", "pass another array, or wait for the call that uses it"),
                false => ("read", "pass a copy of it"),
            };
            let sentence = format_args!(
                "this array would be {use_of}, but another argument or a running call {held} memory of it"
            );
            return Err(ExchangeError::from_sentence("overlap", &sentence)
                .with_fix(&fix)
                .with_kind(ExchangeErrorKind::Borrowed)
                .into());
        }
        if ran {
            check_undisturbed(py)?;
        }
        let Some(check) = values else { return Ok(()) };
        self.entry().state.store(CHECKED, Ordering::Relaxed);
        // SAFETY: the object's protocol has described the memory, and the ledger rejects other writers.
        unsafe { check(&self.entry().descriptor) }
    }

    /// Keeps the owner that the producer has passed since.
    pub(super) fn keep(&mut self, owner: Option<Owner>) {
        // SAFETY: no other code accesses this field.
        unsafe { (*self.entry.as_ptr()).owner = owner };
    }

    /// Sets what an argument whose axes go by label is in their order, and the labels in its own order.
    pub(super) fn order(&mut self, ordered: Descriptor, dims: Option<Dims>) {
        // SAFETY: no other code accesses these fields.
        unsafe { ((*self.entry.as_ptr()).ordered, (*self.entry.as_ptr()).dims) = (ordered, dims) };
    }

    /// Returns the descriptor to make a view of. The first time it looks at the memory again: what PyO3 has converted after this
    /// argument, such as a number with a `__float__`, may have run any code. After that the memory is not checked any more.
    /// `check` then looks at the descriptor, and may read the elements.
    ///
    /// # Errors
    /// [`ExchangeError`] as for [`check_undisturbed`], and the errors of `check`.
    #[inline]
    pub(super) fn descriptor_for_view<D: Axes>(
        &self,
        check: impl FnOnce(&Descriptor) -> Result<()>,
    ) -> Result<&Descriptor> {
        let entry = self.entry();
        let is_first = !entry.has_state(VIEWED);
        if is_first {
            if let Some(array) = entry.array() {
                check_in_place(array.bind(self.py()), &entry.descriptor, entry.writes)?;
            }
            check_values_again(entry)?;
        }
        let field = self.descriptor::<D>();
        check(field)?;
        if is_first {
            entry.state.store(VIEWED, Ordering::Relaxed);
        }
        Ok(field)
    }

    /// As [`Loan::descriptor_for_view`], for functions that return no error: it unwinds to PyO3, which raises its
    /// `PanicException` with the message.
    #[inline]
    pub(super) fn descriptor_or_unwind<D: Axes>(&self) -> &Descriptor {
        self.descriptor_for_view::<D>(|_| Ok(())).unwrap_or_else(|error| unwind(&error))
    }

    /// Returns the descriptor with its dimensions in the order of the axes.
    #[inline]
    pub(super) fn descriptor<D: Axes>(&self) -> &Descriptor {
        let entry = self.entry();
        if D::LABELS.is_some() { &entry.ordered } else { &entry.descriptor }
    }

    /// The object that was described.
    #[inline]
    pub(super) fn object(&self) -> &Bound<'py, PyAny> {
        match &self.entry().object {
            Some(object) => object.bind(self.py()),
            None => unreachable!("a loan that is open has its object"),
        }
    }

    #[inline]
    pub(super) fn entry(&self) -> &Entry {
        // SAFETY: the entry is this loan's; other code only reads it, but for fields that are not read through this.
        unsafe { self.entry.as_ref() }
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
        let (py, entry) = (self.py(), self.entry);
        // SAFETY: the entry is entered if it is borrowed, and no view of it is left; then it is this loan's alone.
        let (object, source, owner, held) = with_ledger(py, |ledger| unsafe {
            if self.is_borrowed {
                ledger.leave(entry);
            }
            ledger.put_back(entry);
            let entry = &mut *entry.as_ptr();
            let source = std::mem::replace(&mut entry.source, BorrowSource::None);
            (entry.object.take(), source, entry.owner.take(), entry.held.take())
        });
        // Each may run any code.
        drop(held);
        drop(owner);
        if let BorrowSource::Inside(array) = source {
            drop(array.into_bound(py));
        }
        drop(object.map(|object| object.into_bound(py)));
    }
}

/// Checks all borrowed arguments that have no view yet, after code of others has run that may have changed them.
///
/// # Errors
/// [`ExchangeError`] if memory was moved or has another description by now, or has invalid elements.
#[cold]
pub(super) fn check_undisturbed(py: Python<'_>) -> Result<()> {
    let waiting = |entry: &NonNull<Entry>| {
        // SAFETY: borrowed entries only change in fields that are not read here.
        let entry = unsafe { entry.as_ref() };
        (!entry.has_state(VIEWED)).then_some(entry)
    };
    let arrays: Vec<_> = with_ledger(py, |ledger| {
        let entries = ledger.borrows.iter().filter_map(waiting);
        let array = |entry: &Entry| Some((entry.array()?.clone_ref(py), entry.descriptor.clone(), entry.writes));
        entries.filter_map(array).collect()
    });
    for (array, found, writes) in arrays {
        check_in_place(&array.into_bound(py), &found, writes)?;
    }
    // What can be looked at again is in place; other memory is there as long as its protocol promises. While the ledger is held
    // no writer can start.
    with_ledger(py, |ledger| ledger.borrows.iter().filter_map(waiting).try_for_each(check_values_again))
}

/// Checks that an array still has the memory that was described, and may still be written if it is to be.
#[inline]
fn check_in_place(array: &Bound<'_, PyAny>, found: &Descriptor, writes: bool) -> Result<()> {
    if import::is_as_described(array, found) {
        return Ok(());
    }
    let parts = |field: &Descriptor| (field.ptr().addr(), field.device(), field.dtype());
    let is_same = |now: &Descriptor| {
        parts(found) == parts(now)
            && (found.shape(), found.strides()) == (now.shape(), now.strides())
            && !(writes && now.is_readonly())
    };
    match import::changed(array, found, is_same) {
        Some([was, now]) => Err(disturbed(repr::of_class(&array.get_type()), was, now)),
        None => Ok(()),
    }
}

/// Checks the elements, if they were checked before. The memory must be in place.
fn check_values_again(entry: &Entry) -> Result<()> {
    let Some(check) = entry.values.filter(|_| entry.has_state(CHECKED)) else { return Ok(()) };
    // SAFETY: memory that can be looked at again is in place, and as readable as at the first check; that of other objects is
    // there as long as their protocol promises. The borrow keeps others from writing it.
    let checked = unsafe { check(&entry.descriptor) };
    checked.map_err(|error| disturbed("an array".to_owned(), import::summary(&entry.descriptor), error.to_string()))
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

#[cold]
fn disturbed(object: String, was: String, found: String) -> Error {
    let sentence = format_args!(
        "converting an argument, or reading its labels, ran code that changed an argument, {object}: it was {was}, now it is {found}"
    );
    ExchangeError::from_sentence("moved", &sentence).with_fix(&"pass a copy").with_kind(ExchangeErrorKind::Moved).into()
}
