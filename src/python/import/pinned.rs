//! Guards memory that its object may move: checks it again after Python code has run, and pins it if it outlives the call.

use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::descriptor::Descriptor;
use crate::error::{ExchangeError, ExchangeErrorKind};
use crate::python::convert::repr;
use crate::python::ffi::numpy_api::is_array;
use crate::python::import::frameworks::{Kind, torch_table};
use crate::python::import::request::{Imported, not_an_array};
use crate::python::import::type_info::kind_of;
use crate::python::import::{numpy, owners, torch};
use crate::python::own_classes::{self, Description};
use crate::python::{py_owner, tensor_api};
use crate::tensor::Owner;

/// Looks at memory again that was described. Returns how error messages show it, and as it is now; `None` if that is the same.
pub fn changed(
    object: &Bound<'_, PyAny>,
    found: &Descriptor,
    is_same: impl FnOnce(&Descriptor) -> bool,
) -> Option<[String; 2]> {
    let mut now = Descriptor::BLANK;
    // Neither calls back into Python code, which could move the memory again.
    let described = match torch_table(object) {
        _ if is_array(object) => numpy::redescribe(object, &mut now),
        Some(table) => torch::describe(object, table, &mut now),
        None => Err(not_an_array(object)),
    };
    let state = match described {
        Ok(()) if is_same(&now) => return None,
        Ok(()) => summary(&now),
        Err(error) => error.value(object.py()).to_string(),
    };
    Some([summary(found), state])
}

/// Rejects memory if the object has changed its address, element type, shape or strides since it was described. The
/// dimensions of `found` may be in another order.
pub fn check_unmoved(object: &Bound<'_, PyAny>, found: &Descriptor) -> PyResult<()> {
    // A tensor keeps its memory for life. Extensions know the module's class by its C API. Neither runs any code: that could
    // move the memory again.
    if own_classes::tensor(object).is_some() || tensor_api::of(object).is_some() {
        return Ok(());
    }
    let Some([was, now]) = changed(object, found, |now| is_same_memory(found, now)) else { return Ok(()) };
    let object = repr::of_class(&object.get_type());
    let sentence = format_args!("the memory of the described {object} was {was}, now it is {now}");
    Err(ExchangeError::from_sentence("moved", &sentence)
        .with_fix(&"describe the object again")
        .with_kind(ExchangeErrorKind::Moved)
        .into())
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
pub fn summary(field: &Descriptor) -> String {
    let (shape, strides, address) = (field.shape(), field.strides(), field.ptr().addr());
    let readonly = if field.is_readonly() { "read-only " } else { "" };
    format!("{readonly}{} of shape {shape:?} with strides {strides:?} at {address:#x}", field.dtype().name())
}

/// Returns an owner of borrowed memory that was described: it keeps the memory in place, even if the object is given other
/// memory. Rejects memory that the object has already moved.
pub fn pinned(object: &Bound<'_, PyAny>, found: &Descriptor) -> PyResult<Owner> {
    if let Some(tensor) = own_classes::tensor(object) {
        return Ok(tensor.owner().clone());
    }
    if kind_of(object)? == Kind::Torch {
        if let Some(owner) = torch::known_owner(object.py(), found) {
            check_unmoved(object, found)?;
            return Ok(owner);
        }
        let storage = torch::Storage::pinned(object, found.device())?;
        check_unmoved(object, found)?;
        return storage.into_owner_of(found);
    }
    let owner = if is_array(object) { owners::of_array(object)? } else { py_owner::owner(object) };
    check_unmoved(object, found)?;
    Ok(owner)
}

/// Returns an owner that keeps described memory in place; `None` if the description has one from the producer.
pub fn pin_described(description: &Description<'_, '_>) -> PyResult<Option<Owner>> {
    if description.owner.is_some() { Ok(None) } else { pinned(&description.object, description.descriptor).map(Some) }
}

/// Rejects described memory that belongs to the object if the object has moved or reshaped it since.
pub fn check_described(description: &Description<'_, '_>) -> PyResult<()> {
    if description.owner.is_some() { Ok(()) } else { check_unmoved(&description.object, description.descriptor) }
}

impl<'a> Imported<'a> {
    /// Rejects memory that its array has moved since it was located.
    #[cold]
    pub fn check_unmoved(&self, object: &Bound<'a, PyAny>) -> PyResult<()> {
        let array = self.innermost(object);
        match own_classes::description(array) {
            Some(description) => check_unmoved(&description.object, self.descriptor),
            None => check_unmoved(array, self.descriptor),
        }
    }

    /// Takes the owner of the memory out; if the memory belongs to the object, makes an owner that keeps it in place.
    pub fn take_owner(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Owner> {
        self.owner.take().map_or_else(|| pinned(object, self.descriptor), Ok)
    }
}
