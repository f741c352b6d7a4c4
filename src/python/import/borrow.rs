//! Describes memory that is borrowed for the length of one call, and says which array it is borrowed from.

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::python::import::imported::Imported;
use crate::python::import::request::{Request, RequestAccess, not_an_output};
use crate::python::import::stream_sync::synchronize_described;
use crate::python::import::type_info::TypeInfo;
use crate::python::import::{numpy, table};
use crate::python::tensor_api::{self, UNORDERED};
use crate::tensor::Owner;

/// The array that memory is borrowed from. Python code may move its memory or change its shape at any time.
pub enum BorrowSource {
    /// No array that can move: memory of our own tensor, memory with an owner, or describing it again would run Python code.
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
    /// The `dlfield.Tensor` of an extension's argument, the argument itself or inside it: only the module knows the streams that
    /// work on its memory. `None` for memory that was described for the host, after their work.
    tensor: Option<Py<PyAny>>,
    /// Whether the memory counts as read-only because its protocol has no read-only flag.
    pub readonly_unknown: bool,
}

impl Borrowed {
    /// Waits for device work on the memory that was borrowed from the object, as the host is about to use it.
    #[cold]
    pub fn synchronize(&self, object: &Bound<'_, PyAny>, field: &Descriptor) -> PyResult<()> {
        let object = self.tensor.as_ref().map_or(object, |tensor| tensor.bind(object.py()));
        synchronize_described(object, self.owner.as_ref(), field)
    }
}

/// Describes the memory of an object, without metadata, if that needs no call of other code, nor a wait, in which other threads
/// would run: of tensors of dlfield and arrays of NumPy, as most arguments of an extension are. `None` for other objects.
#[inline]
pub fn locate(obj: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<Option<BorrowSource>> {
    if let Some(api) = tensor_api::of(obj) {
        return Ok(api.describe(obj, UNORDERED, descriptor)?.then_some(BorrowSource::None));
    }
    Ok(numpy::locate(obj, descriptor)?.then_some(BorrowSource::Argument))
}

/// Describes the memory of any object, without metadata, for reading or, with `writes`, for writing. May call other code, which may
/// move the memory of other arguments.
pub fn borrow(obj: &Bound<'_, PyAny>, writes: bool, descriptor: &mut Descriptor) -> PyResult<Borrowed> {
    let (read, write) = const { (&Request::new(RequestAccess::Read), &Request::new(RequestAccess::Write)) };
    let request = if writes { write } else { read };
    let mut imported = Imported::new(descriptor);
    let described = table::describe(obj, request, &mut imported);
    described.map_err(|error| if writes { not_an_output(obj, error) } else { error })?;
    let array = imported.innermost(obj);
    let tensor = tensor_api::of(array).map(|_| array.clone().unbind());
    let source = if imported.inner.is_some() && can_move(array, imported.protocol)? {
        // A wrapper's owner keeps the memory, but an array of NumPy or PyTorch may be given another one, or another shape.
        BorrowSource::Inside(array.clone().unbind())
    } else if imported.owner.is_some() || imported.is_tensor {
        BorrowSource::None
    } else {
        BorrowSource::Argument
    };
    let Imported { owner, readonly_unknown, .. } = imported;
    Ok(Borrowed { owner, source, tensor, readonly_unknown })
}

/// Whether an array that was imported by this protocol is one of NumPy or PyTorch, which [`reborrow`](super::reborrow) can describe.
fn can_move(array: &Bound<'_, PyAny>, protocol: &str) -> PyResult<bool> {
    Ok(protocol == "numpy" || protocol == "dlpack-c" && TypeInfo::of(array)?.torch_borrow().is_some())
}
