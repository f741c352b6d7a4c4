//! Imports arrays: turns an object of any protocol into a descriptor, with an owner if the memory outlives the call.
//!
//! A [`Request`] says what the caller wants. `table` peels wrappers and tries the protocols, one file each; they fill in a
//! [`Descriptor`] and an [`Imported`] in place. `hooks` and `stream_sync` finish the import, and `metadata` follows on request.

mod argument;
mod array;
mod array_interface;
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
mod exchange_table;
mod functions;
mod gt_data_interface;
mod held_buffer;
mod hooks;
mod host_device;
mod imported;
mod jax;
mod metadata;
mod metadata_functions;
mod names;
mod numpy;
mod numpy_scalar;
mod owners;
mod pinned;
mod refcount;
mod request;
mod storages;
mod stream_sync;
mod table;
mod torch;
mod type_info;
mod unwrap;
mod value;
mod wrapper;

pub(super) use argument::argument;
pub(super) use borrow::{BorrowSource, Borrowed, memory, plain_memory};
pub(super) use data_interface::Hooks;
pub(super) use dlpack::{inspect_capsule, take};
pub(super) use exchange_table::table;
pub(super) use host_device::is_pair;
pub(super) use imported::Imported;
pub(super) use metadata::{Metadata, misstated, stated};
pub(super) use pinned::{check_described, pin_described, reborrow, summary};
use pyo3::prelude::*;

pub(super) use type_info::is_torch;
pub(super) use unwrap::inner_of;
pub(super) use value::{Value, value};

use self::request::{Access, Request, not_an_array};
use self::table::{import_or_error, import_tensor, metadata};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::tensor::{Owner, Tensor};

/// Imports an object as a tensor that owns its memory, with metadata, without access to elements. `None` for an object
/// without any protocol.
pub(super) fn own(object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    let (mut tensor, mut imported) = (Tensor::BLANK, Imported::default());
    if !import_tensor(object, &Request::default(), &mut imported, &mut tensor)? {
        return Ok(None);
    }
    metadata(object, None, &mut imported, None, None)?.attach(&mut tensor)?;
    Ok(Some(tensor))
}

/// Imports an object as a tensor that owns its memory, for writing and without metadata. Passes `copy` on to the producer.
pub(super) fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    let mut tensor = Tensor::BLANK;
    let request = Request { copy, access: Access::Write, ..Request::default() };
    let found = import_tensor(object, &request, &mut Imported::default(), &mut tensor)?;
    if found { Ok(tensor) } else { Err(not_an_array(object)) }
}

/// Imports an object as a tensor that owns its memory, for reading, with metadata.
pub(super) fn readable(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    value(object, Device::CPU)?.map(Value::into_tensor).ok_or_else(|| not_an_array(object))
}

/// Adds the functions of this folder to the Python module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions::register(module)?;
    metadata_functions::register(module)?;
    value::register(module)
}

/// Rejects a PyTorch tensor that requires grad, also one inside a wrapper.
pub(super) fn refuse_grad(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let inner = inner_of(object)?;
    let object = inner.as_ref().unwrap_or(object);
    if is_torch(object)? { torch::refuse_grad(object) } else { Ok(()) }
}

/// Returns the descriptor of an object, and the owner if the producer passed one. Of several buffers, takes the one nearest
/// to `near`.
pub(super) fn description(object: &Bound<'_, PyAny>, near: Option<Device>) -> PyResult<(Descriptor, Option<Owner>)> {
    let (mut descriptor, mut imported) = (Descriptor::BLANK, Imported::default());
    import_or_error(object, &Request { near, ..Request::default() }, &mut imported, &mut descriptor)?;
    Ok((descriptor, imported.owner))
}
