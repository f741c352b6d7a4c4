//! Memory that is borrowed from an object, which may move it: described for a short while, checked again when other code has
//! run, and pinned by whoever keeps it for longer.

use pyo3::prelude::*;
use smallvec::SmallVec;

use super::facts::Facts;
use super::{Access, Purpose, Reading, Request, not_an_array, numpy, read, torch};
use crate::descriptor::Descriptor;
use crate::protocol::ExchangeError;
use crate::py::tensor::PyTensor;
use crate::py::{args, keep};
use crate::tensor::Owner;

/// Who lends memory that is nobody's to keep: the array may move it or take another shape at any time.
pub(in crate::py) enum Lender {
    /// Nobody: what keeps the memory keeps it where it is, or cannot be asked without running its code.
    Nobody,
    /// The object that was described.
    Argument,
    /// The array inside it.
    Inside(Py<PyAny>),
}

/// How memory was described.
pub(in crate::py) struct Lent {
    /// What the producer handed over, if it did.
    pub(in crate::py) owner: Option<Owner>,
    pub(in crate::py) lender: Lender,
    /// Whether the memory counts as read-only because nobody could say.
    pub(in crate::py) unsure: bool,
}

/// Describes the memory of what most calls are about, without labels: an exact NumPy array or a PyTorch tensor, which lends
/// it. Says whether other code may have run for that; `None` for any other object.
#[inline]
pub(in crate::py) fn plain_memory(
    obj: &Bound<'_, PyAny>,
    writes: bool,
    descriptor: &mut Descriptor,
) -> PyResult<Option<bool>> {
    if numpy::is_exact(obj) {
        return numpy::describe(obj, descriptor).map(Some);
    }
    let (facts, looked_up) = Facts::remembered_or_found(obj)?;
    Ok(torch::describe_if(obj, &facts, writes, descriptor)?.map(|ran| looked_up || ran))
}

/// Describes the memory of any object, without labels, to read it or also to write to it.
pub(in crate::py) fn memory(obj: &Bound<'_, PyAny>, writes: bool, descriptor: &mut Descriptor) -> PyResult<Lent> {
    if plain_memory(obj, writes, descriptor)?.is_some() {
        return Ok(Lent { owner: None, lender: Lender::Argument, unsure: false });
    }
    let access = if writes { Access::Write } else { Access::Read };
    let request = Request { access, ..Request::default() };
    let (reading, reader) = read(obj, &request, Purpose::Describe, descriptor)?;
    let lender = match request.seen.inner.into_inner() {
        Some(inner) if lends(&inner.array, inner.protocol)? => Lender::Inside(inner.array.unbind()),
        None if lends(obj, reader.protocol)? => Lender::Argument,
        _ => Lender::Nobody,
    };
    let unsure = matches!(reading, Reading::Unsure(_));
    Ok(Lent { owner: reading.into_shared(), lender, unsure })
}

/// Whether an array that was read by this protocol has lent what [`lent_again`] reads.
fn lends(array: &Bound<'_, PyAny>, protocol: &str) -> PyResult<bool> {
    match protocol {
        "numpy" => Ok(numpy::is_array(array)),
        "dlpack-c" => Ok(Facts::of(array)?.torch_lends().is_some()),
        _ => Ok(false),
    }
}

/// Describes what a lender lends by now: fast, and without running its code.
pub(in crate::py) fn lent_again(lender: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<()> {
    if numpy::is_array(lender) {
        return numpy::describe(lender, descriptor).map(drop);
    }
    let facts = Facts::of(lender)?;
    match (facts.table, facts.torch_lends()) {
        (Some(table), Some(borrow)) => torch::describe(lender, table, borrow, descriptor),
        _ => Err(not_an_array(lender)),
    }
}

/// Refuses memory that its object has moved, or given other elements, shape or strides, since it was described. A field may
/// have its dimensions in another order by now.
pub(in crate::py) fn check_unmoved(object: &Bound<'_, PyAny>, found: &Descriptor) -> PyResult<()> {
    if object.cast_exact::<PyTensor>().is_ok() {
        return Ok(());
    }
    let mut now = Descriptor::BLANK;
    let state = match lent_again(object, &mut now) {
        Ok(()) if is_same_memory(found, &now) => return Ok(()),
        Ok(()) => told(&now),
        Err(error) => error.to_string(),
    };
    let object = args::shown(object.get_type().as_any());
    Err(ExchangeError::Moved { object, was: told(found), found: state }.into())
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

/// A description in an error message.
pub(in crate::py) fn told(field: &Descriptor) -> String {
    let (shape, strides, address) = (field.shape(), field.strides(), field.ptr().addr());
    let readonly = if field.is_readonly() { "read-only " } else { "" };
    format!("{readonly}{} of shape {shape:?} with strides {strides:?} at {address:#x}", field.dtype().name())
}

/// An owner of memory that an object lends and that was described: it keeps the memory where it is, also where the object is
/// given other memory. Refuses memory that the object has moved before.
pub(in crate::py) fn pinned(object: &Bound<'_, PyAny>, found: &Descriptor) -> PyResult<Owner> {
    if let Ok(tensor) = object.cast_exact::<PyTensor>() {
        return Ok(tensor.get().0.owner().clone());
    }
    if Facts::of(object)?.torch_lends().is_some() {
        return torch::pinned(object, found);
    }
    let owner = if numpy::is_array(object) { numpy::pinned(object)? } else { keep::owner(object) };
    check_unmoved(object, found)?;
    Ok(owner)
}
