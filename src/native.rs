//! What the module `dlfield._native` needs of this crate beside its public interface. Not for others: anything here may change
//! in any release.

pub use crate::python::convert::metadata_state::MetadataState;
pub use crate::python::convert::{args, device, dtype, errors, stream};
pub use crate::python::ffi::{dlpack_c, fastcall, getattr, numpy_api, saved_error};
pub use crate::python::nearest::did_you_mean;
pub use crate::python::own_classes::{Description, OwnClasses, register as register_own_classes};

/// Copies, and waiting for devices, with the GIL released.
pub mod sync {
    pub use crate::python::sync::{
        GIL_RELEASE_BYTES, copy_into, copy_like, copy_to, copy_zero_padded, may_have_device_work, synchronize_host, to,
        wait_for_device,
    };
}

/// The way in.
pub mod import {
    pub use crate::python::import::{
        Hooks, Imported, Interface, Request, RequestAccess, Value, assigned_value, check_described, check_device,
        check_place, describe, describe_exact_array, description, find_dims, inner_of, is_pair, is_torch,
        may_have_hooks, metadata_of, not_an_array, object_to_keep, own, pin_described, readable, refuse_grad,
        refuse_grad_of_torch, share, synchronize_described, take, tensor, value, with_source,
    };
}

pub use crate::arithmetic::halos::check_named_halos;
pub use crate::layout::check_len;
pub use crate::memory::cuda::stream::{pop_stream, push_stream, with_owned_stream};
pub use crate::preflight::{jax_takes, torch_shares};
pub use crate::signature::bound::{check_overlap, common_domain, shared_copies};
pub use crate::signature::size::check_sizes;
pub use crate::signature::writeback::{Fit, Writeback};

pub use rayon::max_num_threads;
