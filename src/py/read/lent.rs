//! Descriptions for a short while: of memory that the object lends, and that is looked at once more when other code has run.

use pyo3::prelude::*;

use super::facts::Facts;
use super::functions::describe_torch;
use super::{Access, Purpose, Reading, Request, exchange, not_an_array, numpy, read};
use crate::descriptor::Descriptor;
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
pub(in crate::py) fn plain_memory(obj: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<Option<bool>> {
    if numpy::is_exact(obj) {
        return numpy::describe(obj, descriptor).map(Some);
    }
    describe_torch(obj, &Facts::of(obj)?, descriptor)
}

/// Describes the memory of any object, without labels, to read it or also to write to it.
pub(in crate::py) fn memory(obj: &Bound<'_, PyAny>, writes: bool, descriptor: &mut Descriptor) -> PyResult<Lent> {
    if plain_memory(obj, descriptor)?.is_some() {
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
        (Some(table), Some(borrow)) => exchange::describe(lender, table, borrow, descriptor),
        _ => Err(not_an_array(lender)),
    }
}
