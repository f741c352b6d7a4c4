//! Imports arrays: turns an object of any protocol into a descriptor, with an owner if the memory outlives the call.
//!
//! A [`Request`] says what the caller wants. `table` peels wrappers and tries the protocols, one file each; they fill in a
//! [`Descriptor`] and an [`Imported`] in place. `hooks` and `stream_sync` finish the import, and `metadata` follows on request.

mod array;
mod array_interface;
mod array_struct;
mod borrow;
mod buffer;
mod capsule;
mod cuda_array_interface;
mod data_interface;
mod dictionary;
mod dlfield;
mod dlpack;
mod dlpack_c_exchange;
mod exchange_errors;
mod gt_data_interface;
mod held_buffer;
mod hooks;
mod host_device;
mod imported;
mod jax;
mod metadata;
mod names;
mod numpy;
mod numpy_scalar;
mod owners;
mod pinned;
mod request;
mod storages;
mod stream_sync;
mod table;
mod torch;
mod type_info;
mod unwrap;
mod value;
mod wrapper;

pub use borrow::{BorrowSource, Borrowed, borrow};
pub use data_interface::{Hooks, Interface};
pub use dlpack::{inspect_capsule, take};
pub use host_device::is_pair;
pub use imported::Imported;
pub use metadata::{find_dims, metadata_of, with_source};
pub use numpy::describe_exact as describe_exact_array;
pub use owners::object_to_keep;
pub use pinned::{check_described, pin_described, reborrow, summary};
use pyo3::prelude::*;

pub use request::{Request, RequestAccess, check_device, not_an_array};
pub use stream_sync::{check_place, synchronize_described};
pub use table::{describe, share};
pub use torch::refuse_grad as refuse_grad_of_torch;
pub use type_info::{is_torch, may_have_hooks};
pub use unwrap::inner_of;
pub use value::{Value, assigned_value, value};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::tensor::{Owner, Tensor};

/// Imports an object as a tensor that owns its memory, with metadata, without access to elements. `None` for an object
/// without any protocol.
pub fn own(object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    let mut tensor = Tensor::BLANK;
    let request = const { &Request::new(RequestAccess::Inspect).sharing().with_metadata() };
    let shared = share(object, request, &mut tensor)?;
    Ok(shared.map(|_| tensor))
}

/// Imports an object as a tensor that owns its memory, for writing and without metadata. Passes `copy` on to the producer.
pub fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    let mut tensor = Tensor::BLANK;
    let mut request = Request::new(RequestAccess::Write).sharing();
    request.copy = copy;
    share(object, &request, &mut tensor)?.map(|_| tensor).ok_or_else(|| not_an_array(object))
}

/// Imports an object as a tensor that owns its memory, for reading, with metadata.
pub fn readable(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    value(object, Device::CPU)?.map(Value::into_tensor).ok_or_else(|| not_an_array(object))
}

/// Rejects a PyTorch tensor that requires grad, also one inside a wrapper.
pub fn refuse_grad(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let inner = inner_of(object)?;
    let object = inner.as_ref().unwrap_or(object);
    if is_torch(object)? { torch::refuse_grad(object) } else { Ok(()) }
}

/// Returns the descriptor of an object, and the owner if the producer passed one. Of several buffers, takes the one nearest
/// to `near`.
pub fn description(object: &Bound<'_, PyAny>, near: Option<Device>) -> PyResult<(Descriptor, Option<Owner>)> {
    let mut descriptor = Descriptor::BLANK;
    let mut imported = Imported::new(&mut descriptor);
    let mut request = Request::new(RequestAccess::Inspect);
    request.near = near;
    describe(object, &request, &mut imported)?;
    let owner = imported.owner;
    Ok((descriptor, owner))
}
