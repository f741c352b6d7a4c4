//! The C API of Python, NumPy and DLPack, where PyO3 has no safe or no fast call.
//!
//! `private` is what CPython exports but does not document, one file each beside the figure that pays for it. `portable`
//! replaces it in builds with `--cfg dlfield_portable`, which free-threaded builds set by themselves, with the same signatures;
//! the choice is made only here.

pub mod attach;
pub mod deferred;
pub mod dict_entries;
pub mod dlpack_c;
#[cfg(feature = "signature")]
pub mod fastcall;
pub mod getattr;
pub mod new_error;
pub mod numpy_api;
#[cfg(feature = "signature")]
pub mod panics;
pub mod refcount;
pub mod saved_error;
pub mod type_lookup;

#[cfg(dlfield_portable)]
#[path = "portable/mod.rs"]
mod twin;
#[cfg(not(dlfield_portable))]
#[path = "private/mod.rs"]
mod twin;

pub use self::twin::{dict_items, instance_dict, optional_attr, type_cache};
