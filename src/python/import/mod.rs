//! Imports arrays: turns an object of any protocol into a descriptor, with an owner if the memory outlives the call.
//!
//! A [`Request`] says what the caller wants. `table` peels wrappers and tries the protocols, one file each; they fill in a
//! [`Descriptor`](crate::descriptor::Descriptor) and an [`Imported`] in place. Hooks and `stream_sync` finish the import, and `metadata`
//! follows on request.

mod array_interface;
mod buffer;
mod data_interface;
mod dictionary;
mod dlfield;
mod dlpack;
mod dlpack_c_exchange;
mod frameworks;
mod gt_data_interface;
mod held_buffer;
mod metadata;
mod numpy;
mod owners;
mod pinned;
mod request;
mod stream_sync;
mod table;
mod torch;
mod torch_errors;
mod type_info;
mod unwrap;

use pyo3::prelude::*;

pub use self::data_interface::{Hooks, Interface, elsewhere};
pub use self::dlpack::{inspect_capsule, take};
pub use self::frameworks::{Kind, exchange_table};
pub use self::held_buffer::{Held, is_exporter};
pub use self::metadata::{find_dims, metadata_of};
pub use self::numpy::{is_as_described, locate as locate_array, masked, masked_points, refuse_mask};
pub use self::pinned::{changed, check_described, pin_described, summary};
pub use self::request::{
    Found, Imported, Release, Request, RequestAccess, not_an_array, not_an_output, not_owned, read_only_output,
};
pub use self::stream_sync::synchronize_described;
pub use self::table::{describe, share};
pub use self::torch::refuse_grad as refuse_grad_of_torch;
pub use self::type_info::{kind_of, may_have_hooks};
pub use self::unwrap::{inner_of, with_given_origin};
use crate::layout::Metadata;
use crate::tensor::Tensor;

/// Imports an object as a tensor that owns its memory, with metadata if some is given, which counts first, without access to
/// elements. `None` for an object without any protocol.
pub fn own(object: &Bound<'_, PyAny>, given: Option<&Metadata>) -> PyResult<Option<Tensor>> {
    let mut tensor = Tensor::BLANK;
    let request = Request { metadata: given, ..Request::new(RequestAccess::Inspect).sharing() };
    Ok(share(object, &request, &mut tensor)?.map(|_| tensor))
}
