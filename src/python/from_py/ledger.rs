//! The ledger of borrowed memory: all live arguments of the functions of this extension, and the arrays that rust-numpy has
//! borrowed while the ledger serves as its list.

#![allow(unsafe_code, reason = "entries are reached through their addresses")]

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ptr::NonNull;
#[cfg(not(Py_GIL_DISABLED))]
use std::sync::Arc;
#[cfg(Py_GIL_DISABLED)]
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use rustc_hash::FxBuildHasher;

use crate::descriptor::{Descriptor, Spans};
use crate::python::from_py::entry::{BorrowAccess, Entry, Holding};
use crate::python::from_py::shared_list;
#[cfg(not(Py_GIL_DISABLED))]
use crate::python::from_py::shared_list::Listed;
use crate::python::from_py::threads::{self, ThreadId};

/// As many borrows are compared one by one in less time than they are ordered.
const FEW: usize = 32;

/// All live arguments: entries in use, then free ones. Entries are never deallocated; there are as many as there were live
/// arguments at one time.
pub(super) struct Ledger {
    entries: Vec<NonNull<Entry>>,
    used: usize,
    writers: usize,
    /// The borrowed entries by address, from when there are many until all are free.
    spans: Option<Box<Spans<NonNull<Entry>>>>,
    /// The arrays that rust-numpy has borrowed, by address and thread: their entries, and how often each is borrowed. A borrow
    /// of rust-numpy ends in the thread in which it began.
    arrays: HashMap<(usize, ThreadId), (NonNull<Entry>, usize), FxBuildHasher>,
    /// What ended threads kept, to be released where the arguments can be checked after it.
    left: Vec<Holding>,
}

struct Shared(UnsafeCell<Ledger>);

// SAFETY: accessed only through `with_ledger`, by threads attached to the interpreter, one at a time: by the GIL, or else by the
// lock there.
unsafe impl Sync for Shared {}

static LEDGER: Shared = Shared(UnsafeCell::new(Ledger {
    entries: Vec::new(),
    used: 0,
    writers: 0,
    spans: None,
    arrays: HashMap::with_hasher(FxBuildHasher),
    left: Vec::new(),
}));

/// Runs `body` with the ledger. It must not run foreign code.
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
    #[inline]
    pub(super) fn open(&mut self, thread: ThreadId) -> NonNull<Entry> {
        if self.used == self.entries.len() {
            self.extend();
        }
        let entry = self.entries[self.used];
        self.used += 1;
        // SAFETY: entries live for the rest of the process; this field is accessed through the ledger only.
        unsafe { (*entry.as_ptr()).thread = thread };
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
            by_rust_numpy: false,
            thread: ThreadId::NONE,
            place: self.used,
        };
        self.entries.push(NonNull::from(Box::leak(Box::new(entry))));
    }

    /// Frees an entry, and returns what it kept.
    #[inline]
    pub(super) fn close(&mut self, entry: NonNull<Entry>) -> Holding {
        self.used -= 1;
        if self.spans.is_some() {
            self.leave_spans(entry);
        }
        // SAFETY: entries live for the rest of the process; these fields are accessed through the ledger only; `holding`
        // is the argument's, which is gone.
        unsafe {
            let (place, last) = ((*entry.as_ptr()).place, self.entries[self.used]);
            self.writers -= usize::from((*entry.as_ptr()).access == BorrowAccess::Write);
            (*entry.as_ptr()).access = BorrowAccess::None;
            (*entry.as_ptr()).values = None;
            (*entry.as_ptr()).viewed = false;
            (*entry.as_ptr()).by_rust_numpy = false;
            self.entries.swap(place, self.used);
            (*last.as_ptr()).place = place;
            (*entry.as_ptr()).place = self.used;
            std::mem::replace(&mut *(*entry.as_ptr()).holding.get(), Holding::NOTHING)
        }
    }

    /// The entries that are borrowed and have no view yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Entry> {
        // SAFETY: entries live for the rest of the process, and once borrowed are written to only through the ledger.
        let entries = self.entries[..self.used].iter().map(|entry| unsafe { entry.as_ref() });
        entries.filter(|entry| entry.access != BorrowAccess::None && !entry.viewed)
    }

    /// Borrows the memory of an entry, unless that conflicts; then returns what the memory is borrowed for.
    #[inline]
    pub(super) fn borrow(&mut self, entry: NonNull<Entry>, access: BorrowAccess) -> Option<&'static str> {
        let held = self.conflict(entry, access);
        if held.is_none() {
            // SAFETY: this field is accessed through the ledger only.
            unsafe { (*entry.as_ptr()).access = access };
            self.writers += usize::from(access == BorrowAccess::Write);
            if self.spans.is_some() {
                self.enter_spans(entry);
            }
        }
        held
    }

    /// Enters the memory of an entry, if it is borrowed, where it is found by its address.
    #[inline(never)]
    fn enter_spans(&mut self, entry: NonNull<Entry>) {
        let spans = self.spans.get_or_insert_with(|| Box::new(Spans::new()));
        // SAFETY: entries live for the rest of the process; the first field is accessed through the ledger only, and the descriptor
        // of a borrowed entry no longer changes.
        unsafe {
            let access = entry.as_ref().access;
            if access != BorrowAccess::None {
                let memory = &*entry.as_ref().descriptor.get();
                spans.insert(memory, access == BorrowAccess::Write, entry.addr().get(), entry);
            }
        }
    }

    /// Removes an entry that becomes free from where it is found by its address.
    #[inline(never)]
    fn leave_spans(&mut self, entry: NonNull<Entry>) {
        let Some(spans) = &mut self.spans else { return };
        // SAFETY: as for `enter_spans`.
        unsafe {
            let writes = entry.as_ref().access == BorrowAccess::Write;
            if entry.as_ref().access != BorrowAccess::None {
                spans.remove(&*entry.as_ref().descriptor.get(), writes, entry.addr().get());
            }
        }
        if self.used == 0 {
            self.spans = None;
        }
    }

    /// What the memory is borrowed for already, if that conflicts.
    fn conflict(&mut self, entry: NonNull<Entry>, access: BorrowAccess) -> Option<&'static str> {
        if access == BorrowAccess::Read && self.writers == 0 {
            return None;
        }
        if self.used > FEW || self.spans.is_some() {
            return self.conflict_near(entry, access);
        }
        self.entries[..self.used].iter().find_map(|other| conflict_of(entry, access, *other))
    }

    /// As [`Ledger::conflict`], among many borrows, which are found by their addresses.
    #[inline(never)]
    fn conflict_near(&mut self, entry: NonNull<Entry>, access: BorrowAccess) -> Option<&'static str> {
        if self.spans.is_none() {
            (0..self.used).for_each(|place| self.enter_spans(self.entries[place]));
        }
        // SAFETY: the descriptor is complete, and no longer changes while its entry is in use.
        let (spans, memory) = (self.spans.as_ref()?, unsafe { &*(*entry.as_ptr()).descriptor.get() });
        let readers = (access == BorrowAccess::Write).then(|| spans.near(memory, false)).into_iter().flatten();
        spans.near(memory, true).chain(readers).find_map(|other| conflict_of(entry, access, other))
    }

    /// The borrows of arguments in the list of another extension.
    #[cfg(not(Py_GIL_DISABLED))]
    pub(super) fn listed(&mut self) -> impl Iterator<Item = &mut Arc<Listed>> {
        // SAFETY: entries live for the rest of the process; this field is accessed through the ledger only, once the argument
        // has written it.
        let listed =
            self.entries[..self.used].iter().map(|entry| unsafe { &mut (*(*entry.as_ptr()).holding.get()).listed });
        listed.flatten()
    }

    /// Borrows an array for rust-numpy. `describe` writes its description, and returns whether that was possible. Returns
    /// whether no other borrow conflicts.
    pub(super) fn borrow_array(
        &mut self,
        array: usize,
        access: BorrowAccess,
        thread: ThreadId,
        describe: impl FnOnce(&mut Descriptor) -> bool,
    ) -> bool {
        let entry = self.open(thread);
        // SAFETY: no other code reads these fields before the memory is borrowed.
        let described = unsafe { describe(&mut *(*entry.as_ptr()).descriptor.get()) };
        if let Some((known, count)) = self.arrays.get_mut(&(array, thread)) {
            // SAFETY: both are complete, and `access` is accessed through the ledger only.
            let (again, was_read) = unsafe {
                let (mine, known) = (&*(*entry.as_ptr()).descriptor.get(), known.as_ref());
                let same = described && is_same_memory(mine, &*known.descriptor.get());
                (same, known.access == BorrowAccess::Read)
            };
            let allowed = again && was_read && access == BorrowAccess::Read;
            *count += usize::from(allowed);
            // An entry of rust-numpy holds nothing.
            self.close(entry);
            return allowed;
        }
        if !described || self.borrow(entry, access).is_some() {
            self.close(entry);
            return false;
        }
        // SAFETY: these fields are accessed through the ledger only. Only rust-numpy makes views of this memory.
        unsafe {
            (*entry.as_ptr()).viewed = true;
            (*entry.as_ptr()).by_rust_numpy = true;
        }
        self.arrays.insert((array, thread), (entry, 1));
        true
    }

    /// Ends one borrow of an array by rust-numpy, in the thread in which it began. An array that was changed meanwhile is
    /// released as another object with the description that it had: `describe` writes that.
    pub(super) fn release_array(
        &mut self,
        array: usize,
        thread: ThreadId,
        describe: impl FnOnce(&mut Descriptor) -> bool,
    ) {
        let mut key = (array, thread);
        if !self.arrays.contains_key(&key) {
            let mut released = Descriptor::BLANK;
            if !describe(&mut released) {
                return;
            }
            let found = self.arrays.iter().find(|((_, of), (entry, _))| {
                // SAFETY: the description of an entry in use is complete.
                *of == thread && unsafe { is_same_memory(&released, &*(*entry.as_ptr()).descriptor.get()) }
            });
            let Some((found, _)) = found else { return };
            key = *found;
        }
        let Some((entry, count)) = self.arrays.get_mut(&key) else { return };
        *count -= 1;
        if *count == 0 {
            let entry = *entry;
            self.arrays.remove(&key);
            self.close(entry);
        }
    }

    /// Frees the entries of threads that have ended: arguments that were forgotten there, and in a child process the arguments
    /// of the threads that exist in the parent only. A view does not outlive the attachment of the thread that made it, which
    /// its lifetime ensures, and so not the thread's state either.
    fn close_ended(&mut self, alive: &[ThreadId]) {
        let ended = |entry: &&NonNull<Entry>| {
            // SAFETY: this field is accessed through the ledger only.
            !alive.contains(&unsafe { (*entry.as_ptr()).thread })
        };
        let ended: Vec<_> = self.entries[..self.used].iter().filter(ended).copied().collect();
        self.arrays.retain(|(_, thread), _| alive.contains(thread));
        for entry in ended {
            let holding = self.close(entry);
            self.left.push(holding);
        }
    }

    /// What ended threads kept.
    pub(super) fn take_left(&mut self) -> Vec<Holding> {
        std::mem::take(&mut self.left)
    }
}

/// What the memory of an entry is borrowed for already by another entry, if that conflicts.
#[inline]
fn conflict_of(entry: NonNull<Entry>, access: BorrowAccess, other: NonNull<Entry>) -> Option<&'static str> {
    // SAFETY: entries live for the rest of the process, and only the ledger, which is held, writes these fields. The descriptor of
    // this entry is complete, as is that of a borrowed one, and no longer changes while its entry is in use.
    let (held, by_rust_numpy) = unsafe {
        let (entry, other) = (entry.as_ref(), other.as_ref());
        let matters = match other.access {
            BorrowAccess::None => false,
            BorrowAccess::Read => access == BorrowAccess::Write,
            BorrowAccess::Write => true,
        };
        if !matters || !(*entry.descriptor.get()).overlaps(&*other.descriptor.get()) {
            return None;
        }
        (other.access, other.by_rust_numpy)
    };
    Some(match held {
        _ if by_rust_numpy => shared_list::BORROWS,
        BorrowAccess::Write => "writes",
        _ => "reads",
    })
}

/// Frees the entries of ended threads; [`Ledger::take_left`] returns what they kept.
#[cold]
pub(super) fn reclaim(py: Python<'_>) {
    if let Some(alive) = threads::alive(py) {
        with_ledger(py, |ledger| ledger.close_ended(&alive));
    }
}

/// Whether two descriptions are of the same elements.
pub(super) fn is_same_memory(one: &Descriptor, other: &Descriptor) -> bool {
    let parts = |field: &Descriptor| (field.ptr().addr(), field.device(), field.dtype());
    parts(one) == parts(other) && one.shape() == other.shape() && one.strides() == other.strides()
}
