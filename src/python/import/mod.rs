//! Imports arrays: turns an object of any protocol into a descriptor, with an owner if the memory outlives the call.
//!
//! A [`Request`] says what the caller wants. `table` peels wrappers and tries the protocols, one file each; they fill in a
//! [`Descriptor`] and an [`Imported`] in place. `hooks` and `stream_sync` finish the import, and `metadata` follows on request.

mod array;
mod array_interface;
mod array_struct;
mod as_array;
mod borrow;
mod buffer;
mod bytes;
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
mod memory;
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

use pyo3::prelude::*;

pub use self::as_array::{as_array, refuse_masked_key};
pub use self::borrow::{BorrowSource, Borrowed, borrow, locate};
pub use self::bytes::held_bytes;
pub use self::data_interface::{Hooks, Interface};
pub use self::dlpack::{adopt, inspect_capsule, take};
pub use self::hooks::may_have_hooks;
pub use self::host_device::is_pair;
pub use self::imported::Imported;
pub use self::memory::{check_device, check_place, memory_of, owner_of_pointer};
pub use self::metadata::{find_dims, metadata_of};
pub use self::numpy::{is_as_described, locate as locate_array};
pub use self::owners::object_to_keep;
pub use self::pinned::{check_described, pin_described, reborrow, summary};
pub use self::request::{Request, RequestAccess, not_an_array};
pub use self::stream_sync::synchronize_described;
pub use self::table::{describe, share};
pub use self::torch::refuse_grad as refuse_grad_of_torch;
pub use self::type_info::is_torch;
pub use self::unwrap::{inner_of, with_given_origin};
pub use self::value::{Value, assigned_value, value};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::layout::Metadata;
use crate::tensor::{Owner, Tensor};

/// Imports an object as a tensor that owns its memory, with metadata if some is given, which counts first, without access to
/// elements. `None` for an object without any protocol.
pub fn own(object: &Bound<'_, PyAny>, given: Option<&Metadata>) -> PyResult<Option<Tensor>> {
    let mut tensor = Tensor::BLANK;
    let mut request = Request::new(RequestAccess::Inspect).sharing();
    request.metadata = given;
    let shared = share(object, &request, &mut tensor)?;
    Ok(shared.map(|_| tensor))
}

/// Imports an object as a tensor that owns its memory, for writing and without metadata. Passes `copy` on to the producer.
pub fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    let mut tensor = Tensor::BLANK;
    let mut request = Request::new(RequestAccess::Write).sharing();
    request.copy = copy;
    share(object, &request, &mut tensor)?.map(|_| tensor).ok_or_else(|| not_an_array(object))
}

/// Imports an object as a tensor that owns its memory, for reading, without metadata.
pub fn readable(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    value(object, Device::CPU, None)?.map(Value::into_tensor).ok_or_else(|| not_an_array(object))
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
