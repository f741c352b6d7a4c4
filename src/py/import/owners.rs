//! Owners by way of this library's own objects: a tensor's owner is shared, not wrapped.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::py::descriptor::PyDescriptor;
use crate::py::fastcall;
use crate::py::numpy_type::{base, is_exact};
use crate::py::py_owner::PyOwner;
use crate::py::tensor::PyTensor;
use crate::tensor::Owner;

/// An owner that keeps the object too, for as long as what was handed over for a description: that is not all that keeps
/// the memory, as a description keeps its object by itself.
pub(super) fn with(owner: Owner, object: &Bound<'_, PyAny>) -> Owner {
    Owner::foreign((owner, PyOwner::new(object)))
}

/// The object to keep: not a description, but what it describes and keeps. Descriptions of descriptions would be a chain.
#[inline]
pub(super) fn kept<'py>(object: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    match object.cast_exact::<PyDescriptor>() {
        Ok(described) => described.get().object(object.py()),
        Err(_) => object.clone(),
    }
}

/// The owner of our own tensor, described or not.
pub(super) fn owner(object: &Bound<'_, PyAny>) -> Option<Owner> {
    Some(kept(object).cast_exact::<PyTensor>().ok()?.get().0.owner().clone())
}

/// The owner of the tensor of ours that an array's base, or a memoryview, has its memory from.
///
/// To own the array instead would make a chain that grows with every way there and back: `numpy.asarray` makes an array
/// on a memoryview of the tensor, and a view of that array is one step more.
pub(super) fn behind(object: &Bound<'_, PyAny>) -> Option<Owner> {
    let mut object = object.clone();
    // NumPy leaves out what is in between, so there are few steps to where the memory comes from.
    for _ in 0..4 {
        if let Ok(tensor) = object.cast_exact::<PyTensor>() {
            return Some(tensor.get().0.owner().clone());
        }
        object = if is_exact(&object) {
            base(&object)?
        } else if object.is_exact_instance_of::<PyMemoryView>() {
            // One that was released has none to tell.
            match object.getattr(intern!(object.py(), "obj")) {
                Ok(exporter) => exporter,
                Err(error) => {
                    drop(error);
                    fastcall::drop_deferred_references();
                    return None;
                }
            }
        } else {
            return None;
        };
    }
    None
}
