//! Guards memory that its object may move: checks it again after foreign code has run, and pins it if it outlives the call.

use pyo3::prelude::*;
use smallvec::SmallVec;

use super::imported::Imported;
use super::request::not_an_array;
use super::type_info::TypeInfo;
use super::{numpy, torch};
use crate::descriptor::Descriptor;
use crate::protocol::ExchangeError;
use crate::py::descriptor::PyDescriptor;
use crate::py::numpy_type::is_array;
use crate::py::tensor::PyTensor;
use crate::py::{args, py_owner};
use crate::tensor::Owner;

/// Describes the current memory of a source, without running foreign code.
pub(in crate::py) fn reborrow(source: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<()> {
    if is_array(source) {
        return numpy::describe(source, descriptor).map(drop);
    }
    let info = TypeInfo::of(source)?;
    match (info.table, info.torch_lends()) {
        (Some(table), Some(borrow)) => torch::describe(source, table, borrow, descriptor),
        _ => Err(not_an_array(source)),
    }
}

/// Rejects memory if the object has changed its address, element type, shape or strides since it was described. The
/// dimensions of `found` may be in another order.
pub(super) fn check_unmoved(object: &Bound<'_, PyAny>, found: &Descriptor) -> PyResult<()> {
    if object.cast_exact::<PyTensor>().is_ok() {
        return Ok(());
    }
    let mut now = Descriptor::BLANK;
    let state = match reborrow(object, &mut now) {
        Ok(()) if is_same_memory(found, &now) => return Ok(()),
        Ok(()) => summary(&now),
        Err(error) => error.to_string(),
    };
    let object = args::shown(object.get_type().as_any());
    Err(ExchangeError::Moved { object, was: summary(found), found: state }.into())
}

/// Whether two descriptors have the same elements, ignoring the order of dimensions.
fn is_same_memory(found: &Descriptor, now: &Descriptor) -> bool {
    let parts = |field: &Descriptor| (field.ptr().addr(), field.device(), field.dtype(), field.ndim());
    let axes = |field: &Descriptor| {
        let mut axes: SmallVec<[(i64, i64); 6]> =
            std::iter::zip(field.shape(), field.strides()).map(|(e, s)| (*e, *s)).collect();
        axes.sort_unstable();
        axes
    };
    parts(found) == parts(now) && (found.is_readonly() || !now.is_readonly()) && axes(found) == axes(now)
}

/// Returns a descriptor as error messages show it.
pub(in crate::py) fn summary(field: &Descriptor) -> String {
    let (shape, strides, address) = (field.shape(), field.strides(), field.ptr().addr());
    let readonly = if field.is_readonly() { "read-only " } else { "" };
    format!("{readonly}{} of shape {shape:?} with strides {strides:?} at {address:#x}", field.dtype().name())
}

/// Returns an owner of borrowed memory that was described: it keeps the memory in place, even if the object is given other
/// memory. Rejects memory that the object has already moved.
pub(super) fn pinned(object: &Bound<'_, PyAny>, found: &Descriptor) -> PyResult<Owner> {
    if let Ok(tensor) = object.cast_exact::<PyTensor>() {
        return Ok(tensor.get().0.owner().clone());
    }
    if TypeInfo::of(object)?.torch_lends().is_some() {
        let storage = torch::Storage::of(object)?;
        storage.pin(found.device())?;
        check_unmoved(object, found)?;
        storage.check_contains(found)?;
        return Ok(storage.into_owner());
    }
    let owner = if is_array(object) { numpy::pinned(object)? } else { py_owner::owner(object) };
    check_unmoved(object, found)?;
    Ok(owner)
}

impl Imported<'_> {
    /// Takes the owner of the memory out; if the memory belongs to the object, makes an owner that keeps it in place.
    pub(super) fn take_owner(&mut self, object: &Bound<'_, PyAny>, descriptor: &Descriptor) -> PyResult<Owner> {
        self.owner.take().map_or_else(|| pinned(object, descriptor), Ok)
    }
}

/// Returns an owner that keeps described memory in place; `None` if the description has one from the producer.
pub(in crate::py) fn pin_described(description: &PyDescriptor, py: Python<'_>) -> PyResult<Option<Owner>> {
    if description.shared_owner().is_some() {
        return Ok(None);
    }
    pinned(&description.object(py), description.descriptor()).map(Some)
}

/// Rejects described memory that belongs to the object if the object has moved or reshaped it since.
pub(in crate::py) fn check_described(description: &PyDescriptor, py: Python<'_>) -> PyResult<()> {
    if description.shared_owner().is_some() {
        return Ok(());
    }
    check_unmoved(&description.object(py), description.descriptor())
}
