//! The entrance for memory that is borrowed for the length of one call.

use pyo3::prelude::*;

use super::request::{Access, Ownership, Reading, Request};
use super::table::import_object;
use super::type_info::TypeInfo;
use super::{numpy, torch};
use crate::descriptor::Descriptor;
use crate::py::numpy_type::{is_array, is_exact};
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
    if is_exact(obj) {
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
        "numpy" => Ok(is_array(array)),
        "dlpack-c" => Ok(TypeInfo::of(array)?.torch_lends().is_some()),
        _ => Ok(false),
    }
}
