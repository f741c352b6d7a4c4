//! Describes memory that is borrowed for the length of one call, and says which array it is borrowed from.

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::python::ffi::numpy_api::is_array;
use crate::python::import::imported::Imported;
use crate::python::import::request::{Request, RequestAccess};
use crate::python::import::table;
use crate::python::import::type_info::TypeInfo;
use crate::tensor::Owner;

/// The array that memory is borrowed from. Foreign code may move its memory or change its shape at any time.
pub enum BorrowSource {
    /// No array that can move: memory of our own tensor, memory with an owner, or describing it again would run foreign code.
    None,
    /// The described object.
    Argument,
    /// The array inside the described object.
    Inside(Py<PyAny>),
}

/// The owner and the source of borrowed memory.
pub struct Borrowed {
    /// The owner, if the producer passed one.
    pub owner: Option<Owner>,
    pub source: BorrowSource,
    /// Whether the memory counts as read-only because its protocol has no read-only flag.
    pub readonly_unknown: bool,
    /// Whether no foreign code ran, so that no other array can have changed.
    pub ran_no_code: bool,
}

/// Describes the memory of any object, without metadata, for reading or, with `writes`, for writing.
#[inline]
pub fn borrow(obj: &Bound<'_, PyAny>, writes: bool, descriptor: &mut Descriptor) -> PyResult<Borrowed> {
    let (read, write) = const { (&Request::new(RequestAccess::Read), &Request::new(RequestAccess::Write)) };
    let request = if writes { write } else { read };
    let mut imported = Imported::new(descriptor);
    table::describe(obj, request, &mut imported)?;
    let source = match imported.inner.take() {
        Some(mut inner) => {
            while let Some(next) = inner.inner.take() {
                inner = next;
            }
            if can_reborrow(&inner.array, imported.protocol)? {
                BorrowSource::Inside(inner.array.unbind())
            } else {
                BorrowSource::None
            }
        }
        None if imported.is_tensor => BorrowSource::None,
        // Only arrays of NumPy and PyTorch are imported without running foreign code.
        None if imported.ran_no_code || can_reborrow(obj, imported.protocol)? => BorrowSource::Argument,
        None => BorrowSource::None,
    };
    let Imported { owner, readonly_unknown, ran_no_code, .. } = imported;
    Ok(Borrowed { owner, source, readonly_unknown, ran_no_code })
}

/// Whether [`reborrow`](crate::python::import::reborrow) can describe an array that was imported by this protocol.
fn can_reborrow(array: &Bound<'_, PyAny>, protocol: &str) -> PyResult<bool> {
    match protocol {
        "numpy" => Ok(is_array(array)),
        "dlpack-c" => Ok(TypeInfo::of(array)?.torch_borrow().is_some()),
        _ => Ok(false),
    }
}
