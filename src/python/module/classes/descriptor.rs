//! `dlfield.Descriptor`.

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::python::ffi::attach::release_deferred;
use crate::python::module::classes::freelist::{self, Freelist, HasFreelist};
use crate::tensor::Owner;

/// The validated description of an array of any library: what `describe` returns.
///
/// Strides are in bytes. `dims`, `origin` and `halo` are None if unknown. Keeps the array alive.
///
/// >>> import dlfield as dl, numpy as np
/// >>> seen = dl.describe(np.ones((2, 3), "int16"), dims="JI")
/// >>> seen.strides, seen.dims, seen.readonly, str(seen.device)
/// ((6, 2), ('J', 'I'), False, 'cpu')
#[pyclass(name = "Descriptor", module = "dlfield", frozen, weakref)]
pub(crate) struct PyDescriptor {
    pub(crate) descriptor: Descriptor,
    /// Absent only before the description is complete.
    pub(crate) object: Option<Py<PyAny>>,
    /// The owner that the producer passed for this description, if any.
    pub(crate) owner: Option<Owner>,
    /// Whether the owner keeps the memory only as long as the object lives.
    pub(crate) owner_needs_object: bool,
    pub(crate) protocol: &'static str,
}

impl PyDescriptor {
    /// Sets the described object, whose memory has no other owner, and the protocol.
    pub(crate) fn set(&mut self, object: Bound<'_, PyAny>, protocol: &'static str) {
        self.set_owned(object, None, false, protocol);
    }

    /// Sets the described object, the owner of its memory, whether that owner needs the object, and the protocol.
    pub(crate) fn set_owned(
        &mut self,
        object: Bound<'_, PyAny>,
        owner: Option<Owner>,
        owner_needs_object: bool,
        protocol: &'static str,
    ) {
        (self.object, self.owner, self.protocol) = (Some(object.unbind()), owner, protocol);
        self.owner_needs_object = owner_needs_object;
    }

    pub(crate) fn descriptor_mut(&mut self) -> &mut Descriptor {
        &mut self.descriptor
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    pub(crate) fn object<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.object.as_ref().map_or_else(|| py.None(), |object| object.clone_ref(py)).into_bound(py)
    }

    /// Returns the description of the same object with the dimensions in reverse order.
    pub(crate) fn reversed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDescriptor>> {
        freelist::create(py, |reversed: &mut PyDescriptor| {
            reversed.descriptor = self.descriptor.reversed();
            reversed.set_owned(self.object(py), self.owner.clone(), self.owner_needs_object, self.protocol);
            Ok(())
        })
    }
}

static FREED: Freelist = Freelist::new();

impl HasFreelist for PyDescriptor {
    /// A call has one for each field: with fewer, each of 1,024 fields takes twice as long in `bind` as each of 16.
    const KEPT: usize = 1024;

    fn freelist() -> &'static Freelist {
        &FREED
    }

    fn blank() -> PyDescriptor {
        PyDescriptor {
            descriptor: Descriptor::BLANK,
            object: None,
            owner: None,
            owner_needs_object: false,
            protocol: "",
        }
    }

    fn release(&mut self, py: Python<'_>) {
        match self.owner.take() {
            // The host may have to wait for the device before the memory is freed.
            Some(owner) if owner.stream_uses().is_some() => py.detach(|| drop(owner)),
            owner => drop(owner),
        }
        release_deferred(py);
        self.descriptor.clear();
        drop(self.object.take().map(|object| object.into_bound(py)));
    }
}

impl Drop for PyDescriptor {
    fn drop(&mut self) {
        freelist::drop_value(self);
    }
}
