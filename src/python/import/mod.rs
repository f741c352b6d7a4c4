//! Imports arrays: turns an object of any protocol into a descriptor, with an owner if the memory outlives the call.
//!
//! A [`Request`] says what the caller wants. `table` peels wrappers and tries the protocols, one file each; they fill in a
//! [`Descriptor`] and an [`Imported`] in place. `hooks` and `stream_sync` finish the import, and `metadata` follows on request.

mod array;
mod array_interface;
mod array_struct;
mod borrow;
mod buffer;
#[cfg(feature = "signature")]
pub(crate) mod bytes;
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
#[cfg(feature = "signature")]
mod memory;
mod metadata;
mod names;
mod numpy;
mod numpy_scalar;
#[cfg(feature = "signature")]
pub mod of_module;
mod owners;
mod pinned;
pub(crate) mod request;
mod storages;
mod stream_sync;
mod table;
mod torch;
mod type_info;
mod unwrap;
#[cfg(feature = "signature")]
mod value;
mod wrapper;

pub use borrow::{BorrowSource, Borrowed, borrow, locate};
pub use dlpack::inspect_capsule;
pub use metadata::metadata_of;
pub use numpy::is_as_described;
pub use pinned::{reborrow, summary};
use pyo3::prelude::*;

pub use request::{Request, RequestAccess, not_an_array};
pub use stream_sync::synchronize_described;
pub use table::share;

use crate::layout::Metadata;
use crate::tensor::Tensor;

/// Imports an object as a tensor that owns its memory, with metadata if some is given, which counts first, without access to
/// elements. `None` for an object without any protocol.
pub fn own(object: &Bound<'_, PyAny>, given: Option<&Metadata>) -> PyResult<Option<Tensor>> {
    let mut tensor = Tensor::BLANK;
    let mut request = Request::new(RequestAccess::Inspect).sharing();
    request.metadata = given;
    let shared = share(object, &request, &mut tensor)?;
    Ok(shared.map(|_| tensor))
}
