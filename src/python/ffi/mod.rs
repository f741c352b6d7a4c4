//! The C API of Python, NumPy and DLPack, where PyO3 has no safe or no fast call.
//!
//! Only what their public headers declare, so that the code is the same on every Python, with the GIL or without.

pub mod attach;
pub mod fastcall;
pub mod getattr;
pub mod new_error;
pub mod numpy_api;
