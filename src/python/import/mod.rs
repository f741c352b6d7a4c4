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
pub(crate) mod request;
mod storages;
mod stream_sync;
mod table;
mod torch;
mod type_info;
mod unwrap;
mod wrapper;

use pyo3::prelude::*;

pub use self::borrow::{BorrowSource, Borrowed, borrow, locate};
pub use self::data_interface::{Hooks, Interface};
pub use self::dlpack::{adopt, inspect_capsule, take};
pub use self::held_buffer::{Held, is_exporter};
pub use self::hooks::may_have_hooks;
pub use self::host_device::is_pair;
pub use self::imported::{Imported, Release};
pub use self::metadata::{find_dims, metadata_of};
pub use self::numpy::{is_as_described, locate as locate_array, masked, masked_points, refuse_mask};
pub use self::owners::object_to_keep;
pub use self::pinned::{check_described, pin_described, reborrow, summary};
pub use self::request::{Request, RequestAccess, not_an_array, not_an_output, read_only_output};
pub use self::stream_sync::synchronize_described;
pub use self::table::{describe, share};
pub use self::torch::refuse_grad as refuse_grad_of_torch;
pub use self::type_info::is_torch;
pub use self::unwrap::{inner_of, is_field, with_given_origin};
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
