//! Values that functions and methods of the module take: arrays to read, masks and positions, memory of any elements.

mod as_array;
pub(crate) mod bytes;
mod memory;
mod value;

pub(super) use self::as_array::{as_array, refuse_masked_key};
pub(super) use self::bytes::held_bytes;
pub(super) use self::memory::{check_device, check_place, memory_of, owner_of_pointer};
pub(super) use self::value::{Value, assigned_value, value};

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::python::import::{
    Imported, Kind, Request, RequestAccess, describe, inner_of, kind_of, not_an_array, refuse_grad_of_torch, share,
};
use crate::tensor::{Owner, Tensor};

/// Imports an object as a tensor that owns its memory, for writing and without metadata. Passes `copy` on to the producer.
pub(super) fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    let mut tensor = Tensor::BLANK;
    let mut request = Request::new(RequestAccess::Write).sharing();
    request.copy = copy;
    share(object, &request, &mut tensor)?.map(|_| tensor).ok_or_else(|| not_an_array(object))
}

/// Imports an object as a tensor that owns its memory, for reading, without metadata.
pub(super) fn readable(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    value(object, Device::CPU, None)?.map(Value::into_tensor).ok_or_else(|| not_an_array(object))
}

/// Rejects a PyTorch tensor that requires grad, also one inside a wrapper.
pub(super) fn refuse_grad(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let inner = inner_of(object)?;
    let object = inner.as_ref().unwrap_or(object);
    if kind_of(object)? == Kind::Torch { refuse_grad_of_torch(object) } else { Ok(()) }
}

/// Returns the descriptor of an object, and the owner if the producer passed one. Of several buffers, takes the one nearest
/// to `near`.
pub(super) fn description(object: &Bound<'_, PyAny>, near: Option<Device>) -> PyResult<(Descriptor, Option<Owner>)> {
    let mut descriptor = Descriptor::BLANK;
    let mut imported = Imported::new(&mut descriptor);
    let mut request = Request::new(RequestAccess::Inspect);
    request.near = near;
    describe(object, &request, &mut imported)?;
    let owner = imported.found().owner;
    Ok((descriptor, owner))
}
