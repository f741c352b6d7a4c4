//! What the module `dlfield._native` needs of this crate beside its public interface. Not for others: anything here may change
//! in any release.

pub use crate::python::convert::metadata_state::MetadataState;
pub use crate::python::convert::{args, device, dtype, errors, stream};
pub use crate::python::ffi::{dlpack_c, fastcall, getattr, numpy_api, saved_error};
pub use crate::python::nearest::did_you_mean;
pub use crate::python::own_classes::{Description, OwnClasses, register as register_own_classes};

/// Waiting for devices.
pub mod sync {
    pub use crate::python::sync::{
        DETACHED_FROM, await_work, copy_into, copy_like, copy_zero_padded, is_of_others, synchronize_host, to,
    };
}

/// The way in.
pub mod import {
    pub use crate::python::import::{
        Access, Hooks, Imported, Interface, Request, Value, check_described, check_device, check_place, describe,
        description, inner_of, is_pair, is_torch, kept, may_be_labelled, metadata, misstated, not_an_array, own,
        pin_described, readable, refuse_grad, refuse_grad_of, share, stated, stated_dims, take, tensor, value,
    };
}

pub use crate::arithmetic::halos::check_named_halos;
pub use crate::layout::check_len;
pub use crate::memory::cuda::stream::{pop_stream, state, with_kept_stream};
pub use crate::preflight::torch_shares;
pub use crate::signature::bound::{check_overlap, common_domain};
pub use crate::signature::writeback::{Fit, Writeback};

pub use rayon::max_num_threads;
