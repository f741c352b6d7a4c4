//! Memory that is borrowed from an object, which may move it: described for the length of a call, checked again after foreign
//! code has run, and pinned if it is kept for longer.

use pyo3::prelude::*;
use smallvec::SmallVec;

use super::type_info::TypeInfo;
use super::{Access, Ownership, Reading, Request, import_object, not_an_array, numpy, torch};
use crate::descriptor::Descriptor;
use crate::protocol::ExchangeError;
use crate::py::tensor::PyTensor;
use crate::py::{args, py_owner};
use crate::tensor::Owner;

/// The array that memory is borrowed from: it may move the memory, or take another shape, at any time.
pub(in crate::py) enum BorrowSource {
    /// None: the owner keeps the memory in place, or cannot be asked without running its code.
    None,
    /// The object that was described.
    Argument,
    /// The array inside it.
    Inside(Py<PyAny>),
}

/// Memory that was described.
pub(in crate::py) struct Borrowed {
    /// The owner, if the producer passed one.
    pub(in crate::py) owner: Option<Owner>,
    pub(in crate::py) source: BorrowSource,
    /// Whether the memory is taken for read-only because its protocol has no flag for that.
    pub(in crate::py) readonly_unknown: bool,
}

/// Describes the memory of an exact NumPy array or a PyTorch tensor, the most frequent arguments, without labels. Returns
/// whether foreign code may have run for that; `None` for any other object.
#[inline]
pub(in crate::py) fn plain_memory(
    obj: &Bound<'_, PyAny>,
    writes: bool,
    descriptor: &mut Descriptor,
) -> PyResult<Option<bool>> {
    if numpy::is_exact(obj) {
        return numpy::describe(obj, descriptor).map(Some);
    }
    let (info, looked_up) = TypeInfo::remembered_or_found(obj)?;
    Ok(torch::describe_if(obj, &info, writes, descriptor)?.map(|ran| looked_up || ran))
}

/// Describes the memory of any object, without labels, for reading or also for writing.
pub(in crate::py) fn memory(obj: &Bound<'_, PyAny>, writes: bool, descriptor: &mut Descriptor) -> PyResult<Borrowed> {
    if plain_memory(obj, writes, descriptor)?.is_some() {
        return Ok(Borrowed { owner: None, source: BorrowSource::Argument, readonly_unknown: false });
    }
    let access = if writes { Access::Write } else { Access::Read };
    let request = Request { access, ..Request::default() };
    let (reading, row) = import_object(obj, &request, Ownership::Borrow, descriptor)?;
    let source = match request.cache.inner.into_inner() {
        Some(inner) if lends(&inner.array, inner.protocol)? => BorrowSource::Inside(inner.array.unbind()),
        None if lends(obj, row.name)? => BorrowSource::Argument,
        _ => BorrowSource::None,
    };
    let readonly_unknown = matches!(reading, Reading::ReadonlyUnknown(_));
    Ok(Borrowed { owner: reading.into_shared(), source, readonly_unknown })
}

/// Whether [`reborrow`] can describe an array that was imported by this protocol.
fn lends(array: &Bound<'_, PyAny>, protocol: &str) -> PyResult<bool> {
    match protocol {
        "numpy" => Ok(numpy::is_array(array)),
        "dlpack-c" => Ok(TypeInfo::of(array)?.torch_lends().is_some()),
        _ => Ok(false),
    }
}

/// Describes the present memory of a source, without running its code.
pub(in crate::py) fn reborrow(source: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<()> {
    if numpy::is_array(source) {
        return numpy::describe(source, descriptor).map(drop);
    }
    let info = TypeInfo::of(source)?;
    match (info.table, info.torch_lends()) {
        (Some(table), Some(borrow)) => torch::describe(source, table, borrow, descriptor),
        _ => Err(not_an_array(source)),
    }
}

/// Rejects memory that its object has moved, or given other elements, shape or strides, since it was described. The
/// dimensions of `found` may be in another order.
pub(in crate::py) fn check_unmoved(object: &Bound<'_, PyAny>, found: &Descriptor) -> PyResult<()> {
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

/// Whether two descriptions are of the same elements, whatever the order of their dimensions.
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

/// A descriptor in the words of an error message.
pub(in crate::py) fn summary(field: &Descriptor) -> String {
    let (shape, strides, address) = (field.shape(), field.strides(), field.ptr().addr());
    let readonly = if field.is_readonly() { "read-only " } else { "" };
    format!("{readonly}{} of shape {shape:?} with strides {strides:?} at {address:#x}", field.dtype().name())
}

/// An owner of borrowed memory that was described: it keeps the memory in place, even if the object is given other memory.
/// Rejects memory that the object has moved already.
pub(in crate::py) fn pinned(object: &Bound<'_, PyAny>, found: &Descriptor) -> PyResult<Owner> {
    if let Ok(tensor) = object.cast_exact::<PyTensor>() {
        return Ok(tensor.get().0.owner().clone());
    }
    if TypeInfo::of(object)?.torch_lends().is_some() {
        return torch::pinned(object, found);
    }
    let owner = if numpy::is_array(object) { numpy::pinned(object)? } else { py_owner::owner(object) };
    check_unmoved(object, found)?;
    Ok(owner)
}
