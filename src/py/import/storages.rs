//! Storages of PyTorch that refuse to be resized, by the addresses of their memory: whoever owns memory in there keeps the
//! storage, which need not be asked for again. To ask for it and what it is takes twice as long as to describe a tensor.

use std::cell::RefCell;
use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::descriptor::Descriptor;
use crate::device::Device;

/// One storage: while it lives, this is its memory.
struct Entry {
    storage: Py<PyWeakrefReference>,
    memory: Range<usize>,
}

const ENTRIES: usize = 64;

thread_local! {
    /// A place per address of a first element; fields that meet in one place take turns.
    static KNOWN: RefCell<[Option<Entry>; ENTRIES]> = const { RefCell::new([const { None }; ENTRIES]) };
}

fn place(field: &Descriptor) -> usize {
    (field.ptr().addr() >> 6 ^ field.ptr().addr() >> 12) % ENTRIES
}

/// The storage whose memory the field's elements are in, if it is known.
#[inline]
pub(super) fn holder<'py>(py: Python<'py>, field: &Descriptor) -> Option<Bound<'py, PyAny>> {
    if field.device() != Device::CPU {
        return None;
    }
    KNOWN.with(|known| {
        let known = known.try_borrow().ok()?;
        let entry = known[place(field)].as_ref()?;
        let (low, high) = field.reach();
        if entry.memory.start <= low && high <= entry.memory.end { entry.storage.bind(py).upgrade() } else { None }
    })
}

/// Remembers a storage that keeps the memory at these addresses for as long as it lives.
pub(super) fn remember(storage: &Bound<'_, PyAny>, field: &Descriptor, memory: Range<usize>) -> PyResult<()> {
    let entry = Entry { storage: PyWeakrefReference::new(storage)?.unbind(), memory };
    // What goes in its place goes later: to drop it may run any code.
    let old = KNOWN.with(|known| known.try_borrow_mut().ok().and_then(|mut known| known[place(field)].replace(entry)));
    drop(old);
    Ok(())
}
