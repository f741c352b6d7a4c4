//! The C API of Python, NumPy and DLPack, where PyO3 has no safe or no fast call.

pub mod dlpack_c;
pub mod fastcall;
pub mod getattr;
pub mod numpy_api;
pub mod refcount;
pub mod saved_error;
