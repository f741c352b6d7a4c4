//! Finds the owner of memory that came from a `Tensor`: it is shared, not wrapped, so that no chain of owners grows.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::python::ffi::numpy_api::{self, base, is_array};
use crate::python::own_classes;
use crate::python::py_owner::{self, PyOwner};
use crate::tensor::Owner;

/// Returns the owner of a `Tensor`, or of the `Tensor` that a `Descriptor` describes.
pub fn owner(object: &Bound<'_, PyAny>) -> Option<Owner> {
    Some(own_classes::tensor(&own_classes::object_to_keep(object))?.owner().clone())
}

/// Returns the owner of the `Tensor` whose memory an array's base, or a memoryview, exports.
///
/// Owning the array instead would make a chain that grows with every round trip: `numpy.asarray` makes an array on a
/// memoryview of the tensor, and a view of that array is one link more.
pub fn exporting_tensor(object: &Bound<'_, PyAny>) -> Option<Owner> {
    let mut object = object.clone();
    // NumPy makes a view's base the array that has the memory, so there are few steps to the tensor.
    for _ in 0..4 {
        if let Some(tensor) = own_classes::tensor(&object) {
            return Some(tensor.owner().clone());
        }
        match underlying(&object) {
            Some(below) => object = below,
            None => return numpy_api::owner_of_import(&object),
        }
    }
    None
}

/// Returns the object whose memory an array or a `memoryview` shows; `None` for memory of its own, and other objects.
pub fn underlying<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    if is_array(object) {
        return base(object);
    }
    // A released memoryview raises.
    let is_view = object.is_exact_instance_of::<PyMemoryView>();
    if is_view { object.getattr(intern!(object.py(), "obj")).ok() } else { None }
}

/// Returns an owner of an array's memory: that of the `Tensor` whose memory the array shows, else one that pins the array.
#[inline]
pub fn of_array(array: &Bound<'_, PyAny>) -> PyResult<Owner> {
    match base(array).and_then(|base| exporting_tensor(&base)) {
        Some(owner) => Ok(owner),
        None => pinned_array(array),
    }
}

/// Returns an owner of an array's memory. While it lives, NumPy does not resize the memory: an array with a weak reference
/// rejects that, also with `refcheck=False` (`PyArray_Resize`).
pub fn pinned_array(array: &Bound<'_, PyAny>) -> PyResult<Owner> {
    let holder = holder(array);
    let owner = py_owner::pinned(&holder)?;
    Ok(if holder.is(array) { owner } else { owner.with(PyOwner::new(array)) })
}

/// Whether these addresses, from the lowest byte to one past the highest, are in the memory that an array has or shows. Memory
/// which NumPy has not allocated is not known, but NumPy does not resize that either.
pub fn owns(array: &Bound<'_, PyAny>, (low, high): (usize, usize)) -> bool {
    numpy_api::own_memory(&holder(array)).is_none_or(|own| own.start <= low && high <= own.end)
}

/// Returns the array that has the memory which an array shows.
fn holder<'py>(array: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    let (mut holder, mut shown) = (array.clone(), array.clone());
    // Between two arrays there may be a `memoryview`, as that of `np.frombuffer`.
    while let Some(below) = underlying(&shown) {
        if is_array(&below) {
            holder = below.clone();
        }
        shown = below;
    }
    holder
}
