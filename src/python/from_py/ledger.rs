//! The ledger of borrowed memory, which keeps a `&mut` from existing together with another reference to the same bytes.
//!
//! 1. **Borrowed before read.** An argument is described and checked, then entered here, and only then are its elements read. It stays
//!    entered until it is dropped, so longer than each of its views.
//! 2. **No overlap with a writer.** Two borrows that are entered at the same time, of which one writes, have no byte in common. The
//!    comparison is exact. A few are compared one by one, many are found by their addresses ([`Spans`]).
//! 3. **Entries stay in place.** An argument is described in its entry, which is neither moved nor changed while it is borrowed, and
//!    never deallocated: it is used again.
//! 4. **One thread at a time**, by the GIL, or else by a lock. No code of others runs while the ledger is held, and a borrow may
//!    end in any attached thread.
//! 5. **A forgotten argument stays borrowed**, as with `RefCell`; so do, in a child of `os.fork`, those of the parent's other threads.
//! 6. **NumPy arrays are seen by all.** rust-numpy's types, and other extensions, each with its own copy of this crate, borrow NumPy
//!    arrays from this ledger, or this extension enters its own in their list too: see `rust_numpy`.

#![allow(unsafe_code, reason = "entries are reached through their addresses")]

use std::cell::{Cell, UnsafeCell};
use std::collections::HashMap;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, Ordering};
#[cfg(Py_GIL_DISABLED)]
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use rustc_hash::FxBuildHasher;

use crate::descriptor::{Descriptor, Spans};
use crate::dims::Dims;
use crate::error::Result;
use crate::python::from_py::other_list::{BORROWS, Held};
use crate::tensor::Owner;

/// As many borrows are compared one by one in less time than they are ordered.
const FEW: usize = 32;

/// Checks the elements in place.
///
/// # Safety
/// - Elements that the host can reach are readable.
pub(super) type CheckValues = unsafe fn(&Descriptor) -> Result<()>;

/// The array that memory is borrowed from. Python code may move its memory or change its shape at any time.
pub(super) enum BorrowSource {
    /// No array that can move: memory of our own tensor, memory with an owner, or describing it again would run Python code.
    None,
    /// The described object.
    Argument,
    /// The array inside the described object.
    Inside(Py<PyAny>),
}

/// One argument, or one array that rust-numpy has borrowed: its user writes it before it is entered, and all read it after that.
pub(super) struct Entry {
    pub(super) descriptor: Descriptor,
    /// Of an argument whose axes go by label: the same in the order of the labels, with dims, origin and halo. Of others without meaning.
    pub(super) ordered: Descriptor,
    /// The labels of such an argument in its own order, if it has any.
    pub(super) dims: Option<Dims>,
    pub(super) writes: bool,
    /// The object that was passed; `None` for an array that rust-numpy has borrowed, which rust-numpy keeps.
    pub(super) object: Option<Py<PyAny>>,
    pub(super) source: BorrowSource,
    /// The owner that the producer passed, if any; held for its drop, and accessed by the user only.
    pub(super) owner: Option<Owner>,
    pub(super) values: Option<CheckValues>,
    pub(super) state: AtomicU8,
    /// The ledger's: the lowest address, and one past the highest; twice that of the start without elements.
    pub(super) range: (usize, usize),
    /// The ledger's: the position in the list.
    place: Cell<usize>,
    /// Accessed while the ledger is held: the borrow in the list of another extension, if there is one. Several entries share one
    /// with the GIL only.
    pub(super) held: Cell<Option<Rc<Held>>>,
}

/// The states of an entry: its elements were not checked; they were, and are checked again after code of others has run; there was a
/// view, so no other code may read the memory.
pub(super) const NEW: u8 = 0;
pub(super) const CHECKED: u8 = 1;
pub(super) const VIEWED: u8 = 2;

impl Entry {
    /// The array whose memory may move, if there is one.
    #[inline]
    pub(super) fn array(&self) -> Option<&Py<PyAny>> {
        match &self.source {
            BorrowSource::None => None,
            BorrowSource::Argument => self.object.as_ref(),
            BorrowSource::Inside(array) => Some(array),
        }
    }

    #[inline]
    pub(super) fn has_state(&self, state: u8) -> bool {
        self.state.load(Ordering::Relaxed) == state
    }
}

pub(super) struct Ledger {
    pub(super) borrows: Vec<NonNull<Entry>>,
    unused: Vec<NonNull<Entry>>,
    writers: usize,
    /// The borrows by address, from when there are many until there are none.
    spans: Option<Box<Spans<NonNull<Entry>>>>,
    /// The arrays that rust-numpy has borrowed, by address, and how often: more than once only to read.
    pub(super) arrays: HashMap<usize, (NonNull<Entry>, usize), FxBuildHasher>,
}

struct Shared(UnsafeCell<Ledger>);

// SAFETY: accessed only through `with_ledger`, by threads attached to the interpreter, one at a time: by the GIL, or else by the
// lock there.
unsafe impl Sync for Shared {}

static LEDGER: Shared = Shared(UnsafeCell::new(Ledger {
    borrows: Vec::new(),
    unused: Vec::new(),
    writers: 0,
    spans: None,
    arrays: HashMap::with_hasher(FxBuildHasher),
}));

/// Runs `body` with the ledger. It must not run code of others.
#[inline]
pub(super) fn with_ledger<R>(_: Python<'_>, body: impl FnOnce(&mut Ledger) -> R) -> R {
    #[cfg(Py_GIL_DISABLED)]
    static ONE: Mutex<()> = Mutex::new(());
    #[cfg(Py_GIL_DISABLED)]
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: one thread at a time is here, and `body` does not call this again.
    body(unsafe { &mut *LEDGER.0.get() })
}

impl Ledger {
    /// Returns an entry that is not entered, for the caller alone.
    #[inline]
    pub(super) fn unused(&mut self) -> NonNull<Entry> {
        self.unused.pop().unwrap_or_else(new_entry)
    }

    /// Takes back an entry.
    ///
    /// # Safety
    /// - It is not entered, and the caller does not access it after that, except for taking out what it keeps, before the ledger is
    ///   released.
    #[inline]
    pub(super) unsafe fn put_back(&mut self, entry: NonNull<Entry>) {
        // SAFETY: passed on from the caller.
        unsafe { *(*entry.as_ptr()).state.get_mut() = NEW };
        self.unused.push(entry);
    }

    /// Enters an entry, unless another one conflicts; then returns what the memory is borrowed for.
    ///
    /// # Safety
    /// - An unused entry, which is complete, and which the caller no longer changes until it leaves.
    #[inline]
    pub(super) unsafe fn enter(&mut self, entry: NonNull<Entry>) -> Option<&'static str> {
        // SAFETY: passed on from the caller.
        unsafe {
            let memory = &(*entry.as_ptr()).descriptor;
            let start = memory.ptr().addr();
            (*entry.as_ptr()).range = if memory.shape().contains(&0) { (start, start) } else { memory.reach() };
            let found = self.conflict(entry.as_ref());
            if found.is_none() {
                entry.as_ref().place.set(self.borrows.len());
                self.writers += usize::from(entry.as_ref().writes);
                self.borrows.push(entry);
                self.index(entry);
            }
            found
        }
    }

    /// Removes an entry.
    ///
    /// # Safety
    /// - It is entered, and has no view.
    #[inline]
    pub(super) unsafe fn leave(&mut self, entry: NonNull<Entry>) {
        // SAFETY: passed on from the caller; entries that are entered stay in place.
        unsafe {
            let (place, writes) = (entry.as_ref().place.get(), entry.as_ref().writes);
            self.borrows.swap_remove(place);
            if let Some(moved) = self.borrows.get(place) {
                moved.as_ref().place.set(place);
            }
            self.writers -= usize::from(writes);
            if let Some(spans) = &mut self.spans {
                spans.remove(entry.as_ref().range, writes, entry.addr().get());
            }
        }
        if self.borrows.is_empty() {
            self.spans = None;
        }
    }

    /// Puts an entry where it is found by its address, if there are many.
    #[inline]
    fn index(&mut self, entry: NonNull<Entry>) {
        if let Some(spans) = &mut self.spans {
            // SAFETY: the entry is borrowed, and only the ledger writes its range.
            let (range, writes) = unsafe { (entry.as_ref().range, entry.as_ref().writes) };
            spans.insert(range, writes, entry.addr().get(), entry);
        }
    }

    /// What the memory is borrowed for already, if that conflicts.
    #[inline]
    fn conflict(&mut self, new: &Entry) -> Option<&'static str> {
        if !new.writes && self.writers == 0 {
            return None;
        }
        if self.borrows.len() >= FEW || self.spans.is_some() {
            return self.conflict_near(new);
        }
        self.borrows.iter().find_map(|other| conflict_of(new, *other))
    }

    /// As [`Ledger::conflict`], among many borrows, which are found by their addresses.
    #[inline(never)]
    fn conflict_near(&mut self, new: &Entry) -> Option<&'static str> {
        if self.spans.is_none() {
            self.spans = Some(Box::new(Spans::new()));
            (0..self.borrows.len()).for_each(|place| self.index(self.borrows[place]));
        }
        let spans = self.spans.as_ref()?;
        let readers = new.writes.then(|| spans.near(new.range, false)).into_iter().flatten();
        spans.near(new.range, true).chain(readers).find_map(|other| conflict_of(new, other))
    }
}

#[cold]
fn new_entry() -> NonNull<Entry> {
    NonNull::from(Box::leak(Box::new(Entry {
        descriptor: Descriptor::BLANK,
        ordered: Descriptor::BLANK,
        dims: None,
        writes: false,
        object: None,
        source: BorrowSource::None,
        owner: None,
        values: None,
        state: AtomicU8::new(NEW),
        range: (0, 0),
        place: Cell::new(0),
        held: Cell::new(None),
    })))
}

/// What the memory is borrowed for already by another entry, if that conflicts.
#[inline]
fn conflict_of(new: &Entry, other: NonNull<Entry>) -> Option<&'static str> {
    // SAFETY: borrowed entries stay as they are; the ledger, which is held, writes its own fields only.
    let other = unsafe { other.as_ref() };
    let is_near = new.range.0 < other.range.1 && other.range.0 < new.range.1;
    if !(is_near && (new.writes || other.writes) && new.descriptor.overlaps(&other.descriptor)) {
        return None;
    }
    Some(match (&other.object, other.writes) {
        (None, _) => BORROWS,
        (_, true) => "writes",
        (_, false) => "reads",
    })
}
