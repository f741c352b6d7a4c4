//! Caches pinned PyTorch storages by the address of their memory: owners of memory in a storage keep that storage.
//!
//! A pinned storage is non-resizable. Getting a tensor's storage and its memory takes twice as long as describing the tensor.

use std::cell::RefCell;
use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::python::py_owner;

/// A storage, and the addresses of its memory while it lives.
struct Entry {
    storage: Py<PyWeakrefReference>,
    memory: Range<usize>,
}

const ENTRIES: usize = 64;

thread_local! {
    /// A direct-mapped cache by the address of a field's first element; fields with the same slot replace each other.
    static KNOWN: RefCell<[Option<Entry>; ENTRIES]> = const { RefCell::new([const { None }; ENTRIES]) };
}

fn place(field: &Descriptor) -> usize {
    (field.ptr().addr() >> 6 ^ field.ptr().addr() >> 12) % ENTRIES
}

/// Returns the storage whose memory has the field's elements, if it is cached.
#[inline]
pub(super) fn holder<'py>(py: Python<'py>, field: &Descriptor) -> Option<Bound<'py, PyAny>> {
    if field.device() != Device::CPU {
        return None;
    }
    let found = KNOWN.with(|known| {
        let known = known.try_borrow().ok()?;
        let entry = known[place(field)].as_ref()?;
        let (low, high) = field.reach();
        if entry.memory.start <= low && high <= entry.memory.end {
            entry.storage.bind(py).upgrade().map(|storage| (storage, entry.memory.start))
        } else {
            None
        }
    });
    // `share_memory_` gives a storage other memory, pinned or not; its size stays.
    found
        .filter(|(storage, start)| py_owner::start_of(storage).is_ok_and(|now| now == *start))
        .map(|(storage, _)| storage)
}

/// Caches a storage that keeps the memory at these addresses for as long as it lives.
pub(super) fn remember(storage: &Bound<'_, PyAny>, field: &Descriptor, memory: Range<usize>) -> PyResult<()> {
    let entry = Entry { storage: PyWeakrefReference::new(storage)?.unbind(), memory };
    // The replaced entry is dropped outside the borrow: its drop may run Python code.
    let old = KNOWN.with(|known| known.try_borrow_mut().ok().and_then(|mut known| known[place(field)].replace(entry)));
    drop(old);
    Ok(())
}
