//! Describes memory that is borrowed for the length of one call, and says which array it is borrowed from.

use pyo3::prelude::*;

use super::imported::Imported;
use super::request::{Access, Request};
use super::type_info::TypeInfo;
use super::{numpy, table, torch};
use crate::descriptor::Descriptor;
use crate::py::numpy_type::{is_array, is_exact};
use crate::tensor::Owner;

/// The array that memory is borrowed from. Foreign code may move its memory or change its shape at any time.
pub(in crate::py) enum BorrowSource {
    /// No array: an owner keeps the memory in place, or describing it again would run foreign code.
    None,
    /// The described object.
    Argument,
    /// The array inside the described object.
    Inside(Py<PyAny>),
}

/// The owner and the source of borrowed memory.
pub(in crate::py) struct Borrowed {
    /// The owner, if the producer passed one.
    pub(in crate::py) owner: Option<Owner>,
    pub(in crate::py) source: BorrowSource,
    /// Whether the memory counts as read-only because its protocol has no read-only flag.
    pub(in crate::py) readonly_unknown: bool,
}

/// Describes the memory of an exact NumPy array or a PyTorch tensor, the most frequent arguments, without metadata. Returns
/// whether foreign code may have run; `None` for any other object.
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

/// Describes the memory of any object, without metadata, for reading or, with `writes`, for writing.
pub(in crate::py) fn memory(obj: &Bound<'_, PyAny>, writes: bool, descriptor: &mut Descriptor) -> PyResult<Borrowed> {
    if plain_memory(obj, writes, descriptor)?.is_some() {
        return Ok(Borrowed { owner: None, source: BorrowSource::Argument, readonly_unknown: false });
    }
    let access = if writes { Access::Write } else { Access::Read };
    let request = Request { access, ..Request::default() };
    let mut imported = Imported::default();
    table::import_or_error(obj, &request, &mut imported, descriptor)?;
    let source = match imported.inner {
        Some(mut inner) => {
            while let Some(next) = inner.inner.take() {
                inner = next;
            }
            if lends(&inner.array, imported.protocol)? {
                BorrowSource::Inside(inner.array.unbind())
            } else {
                BorrowSource::None
            }
        }
        None if lends(obj, imported.protocol)? => BorrowSource::Argument,
        None => BorrowSource::None,
    };
    Ok(Borrowed { owner: imported.owner, source, readonly_unknown: imported.readonly_unknown })
}

/// Whether [`reborrow`](super::reborrow) can describe an array that was imported by this protocol.
fn lends(array: &Bound<'_, PyAny>, protocol: &str) -> PyResult<bool> {
    match protocol {
        "numpy" => Ok(is_array(array)),
        "dlpack-c" => Ok(TypeInfo::of(array)?.torch_lends().is_some()),
        _ => Ok(false),
    }
}
