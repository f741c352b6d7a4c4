//! The entries of the ledger of borrowed memory: what an argument borrows, and what keeps that alive.

use std::cell::UnsafeCell;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::python::from_py::shared_list::Listed;
use crate::python::from_py::threads::ThreadId;
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
pub(super) struct Holding {
    pub(super) object: Option<Py<PyAny>>,
    /// The owner that the producer passed, if any; held for its drop.
    pub(super) owner: Option<Owner>,
    pub(super) source: BorrowSource,
    /// The borrow in the list of another extension, if there is such a list, and the memory is that of a NumPy array.
    pub(super) listed: Option<Arc<Listed>>,
}

impl Holding {
    pub(super) const NOTHING: Holding = Holding { object: None, owner: None, source: BorrowSource::None, listed: None };

    /// The array whose memory may move, if there is one.
    #[inline]
    pub(super) fn array(&self) -> Option<&Py<PyAny>> {
        match &self.source {
            BorrowSource::None => None,
            BorrowSource::Argument => self.object.as_ref(),
            BorrowSource::Inside(array) => Some(array),
        }
    }

    /// Gives everything back. It may run foreign code.
    #[inline]
    pub(super) fn release(self, py: Python<'_>) {
        let Holding { object, owner, source, listed } = self;
        if let Some(listed) = listed.and_then(Arc::into_inner) {
            listed.release(py);
        }
        drop(owner);
        if let BorrowSource::Inside(array) = source {
            drop(array.into_bound(py));
        }
        drop(object.map(|object| object.into_bound(py)));
    }
}

/// Checks the elements in place.
///
/// # Safety
/// - Elements that the host can reach are readable.
pub(super) type CheckValues = unsafe fn(&Descriptor) -> Result<()>;

/// An entry of the ledger: one argument, or one array of rust-numpy.
pub(super) struct Entry {
    /// Written by the argument before its memory is borrowed; read by all after that.
    pub(super) descriptor: UnsafeCell<Descriptor>,
    /// As the descriptor; taken by the ledger when the entry becomes free.
    pub(super) holding: UnsafeCell<Holding>,
    /// Accessed through the ledger only.
    pub(super) access: BorrowAccess,
    /// Accessed through the ledger only. Set while the memory is borrowed and has no view yet: the check to repeat after
    /// Python code has run.
    pub(super) values: Option<CheckValues>,
    /// Written through the ledger, for the argument: whether the memory has had a view. From then on no other code may read
    /// it, so it is not checked any more.
    pub(super) viewed: bool,
    /// Accessed through the ledger only: whether rust-numpy has borrowed the memory.
    pub(super) by_rust_numpy: bool,
    /// Accessed through the ledger only: the thread in which the entry was opened.
    pub(super) thread: ThreadId,
    /// Accessed through the ledger only: the position of the entry in the list.
    pub(super) place: usize,
}
