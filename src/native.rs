//! What the module `dlfield._native` and this crate's tests need of it beside its public interface. Not for others: anything
//! here may change in any release.

#[cfg(feature = "python")]
pub use self::of_python::*;
pub use crate::descriptor::Spans;
pub use crate::layout::extents::{Extents, Halo};
pub use crate::layout::overlap::{Strided, overlap};
pub use crate::layout::span::{byte_span, is_compact, is_contiguous, is_unshared};
pub use crate::memory::counters::Totals;
pub use crate::memory::{Block, Contents};
pub use crate::tensor::{BlockInfo, MemoryReport, memory_report};

/// The structs of the protocols.
pub mod protocol {
    pub use crate::protocol::{array_interface, array_struct, buffer, dlpack, pep3118, typestr};
}

#[cfg(feature = "python")]
mod of_python {
    pub use crate::preset::PresetRules;
    pub use rayon::max_num_threads;

    pub use crate::arithmetic::halos::{check_assigned_origin, check_named_halos};
    pub use crate::layout::check_len;
    pub use crate::memory::cuda::current::{pop_stream, push_stream};
    pub use crate::memory::cuda::ipc::{Exported, device_of_uuid};
    pub use crate::preflight::{jax_takes, torch_shares};
    pub use crate::python::convert::metadata_state::MetadataState;
    pub use crate::python::ffi::attach::{is_main_interpreter, release_deferred};
    pub use crate::python::ffi::new_error::{new_error, new_error_of, unexpected_keyword};
    pub use crate::python::ffi::{dlpack_c, fastcall, getattr, numpy_api, panics, saved_error};
    pub use crate::python::nearest::did_you_mean;
    pub use crate::python::own_classes::{Description, OwnClasses, register as register_own_classes};
    pub use crate::signature::bound::common_domain;
    pub use crate::signature::overlap::{check_overlap, shared_copies};
    pub use crate::signature::size::check_sizes;
    pub use crate::signature::writeback::{Fit, Writeback};
    pub use crate::tensor::{Placement, SharedBlock};

    /// Whether this Python has no GIL.
    pub const IS_FREE_THREADED: bool = cfg!(Py_GIL_DISABLED);

    /// The table of C functions on `dlfield.Tensor`.
    pub mod tensor_api {
        pub use crate::python::tensor_api::{
            CAPSULE_NAME, ELSEWHERE, Field, FieldMetadata, Labels, NewTensor, SharedTensor, TensorApi, VERSION, WAITED,
            release, retain,
        };
    }

    /// The functions of the package `dlfield`.
    pub mod package {
        pub use crate::python::package::{functions, register};
    }

    /// Copies, and waiting for devices, with the GIL released.
    pub mod sync {
        pub use crate::python::consumers::record as record_consumers;
        pub use crate::python::copies::{GIL_RELEASE_BYTES, copy_into, copy_like, copy_to, to};
        pub use crate::python::sync::{
            check_in_place, may_have_device_work, order_current_stream, synchronize_host, wait_for_device,
        };
    }

    /// What the package is told of.
    pub mod trace {
        pub use crate::python::trace::{allocated, copied, trace_allocations, trace_copies};
    }

    /// Errors that are no `Exception`.
    pub mod interrupt {
        pub use crate::python::interrupt::{answer, detach, is_interrupt, put_off};
    }

    /// Conversions of arguments.
    pub mod args {
        pub use crate::python::convert::args::*;
        pub use crate::python::convert::of_module::{append_shape, choice, copy, flag, no_keywords, shape, string};
    }

    /// Conversions of devices.
    pub mod device {
        pub use crate::python::convert::device::*;
        pub use crate::python::convert::of_module::{exact_device, of_framework};
    }

    /// Conversions of element types.
    pub mod dtype {
        pub use crate::python::convert::dtype::*;
        pub use crate::python::convert::of_module::{named, to_numpy};
    }

    /// Exceptions.
    pub mod errors {
        pub use crate::python::convert::errors::reworded;
        pub use crate::python::convert::errors::*;
        pub use crate::python::convert::of_module::{about, register, warn};
    }

    /// Conversions of streams.
    pub mod stream {
        pub use crate::python::convert::of_module::{in_stream, stream_of as of};
        pub use crate::python::convert::stream::*;
    }

    /// The way in.
    pub mod import {
        pub use crate::python::import::of_module::*;
        pub use crate::python::import::{
            Request, RequestAccess, metadata_of, not_an_array, own, share, synchronize_described,
        };
    }
}
