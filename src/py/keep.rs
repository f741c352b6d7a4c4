//! Python objects as owners of memory.

use pyo3::prelude::*;

/// Keeps a Python object for as long as the memory it owns is in use; may be dropped on any thread, and after the
/// interpreter has ended (the object is gone with it then).
pub(super) struct Keep(Option<Py<PyAny>>);

impl Keep {
    pub(super) fn new(object: &Bound<'_, PyAny>) -> Keep {
        Keep(Some(object.clone().unbind()))
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        let mut object = self.0.take();
        // Attaching first makes the release immediate; without, it would wait for the next call into this module.
        Python::try_attach(|_| drop(object.take()));
        std::mem::forget(object);
    }
}
