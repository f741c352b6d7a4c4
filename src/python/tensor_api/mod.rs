//! The C API of `dlfield.Tensor`: a table of three C functions on the class, for the extensions that this crate is built into.
//!
//! An extension has its own copy of this crate, perhaps built by another compiler, so it can neither read the Rust value of a
//! `dlfield.Tensor` nor make one. DLPack's exchange table would do, but it has no read-only flag and no metadata, and a managed tensor
//! has to be allocated for each exchange. So a tensor goes both ways as a [`RawTensor`]: DLPack's struct and what that cannot say. An
//! extension that finds a table of another [`VERSION`] uses DLPack.
//!
//! - The lists of a [`RawTensor`] belong to the tensor that it describes, and live as long as that, also if its metadata is replaced.
//! - The owner in it counts one user. Who has taken it over releases it once, by the function that comes with it, on any thread.
//! - To a module, its own owner is lent: wrapped again and again, owners would form a chain that grows with every round trip.
//! - The numbers of a [`RawTensor`] are checked like those of any DLPack tensor. Its addresses are believed.

#![allow(unsafe_code, reason = "a table of C functions")]

mod client;
mod raw;

use std::ffi::{CStr, c_int, c_void};

pub(crate) use self::client::{Api, find, of};
pub use self::raw::{Labels, RawTensor, release};

/// The version of the layout of all structs here, and of what the functions promise. It changes with any of them.
pub const VERSION: u32 = 2;

/// The name of the capsule in the attribute `_c_api` of the class.
pub const CAPSULE_NAME: &CStr = c"dlfield.Tensor._c_api";

/// The table. The first two functions are called by threads that are attached to the interpreter, and return 0, or -1 with a Python
/// exception set.
#[repr(C)]
pub struct TensorApi {
    /// [`VERSION`] of the module. In another version the rest of the struct has another layout.
    pub version: u32,
    /// Describes a tensor, shares its memory with code that may write to it from now on, unless it is read-only, and writes its labels
    /// to `labels`. `order` is one of [`UNORDERED`], [`FOR_STREAM`], [`FOR_HOST`]. A `TypeError` for an object that is not an instance
    /// of exactly the class.
    pub share:
        unsafe extern "C" fn(tensor: *mut c_void, order: c_int, labels: *mut Labels, out: *mut RawTensor) -> c_int,
    /// Makes a tensor, and takes the owner over, also on failure, unless it is lent.
    pub create: unsafe extern "C" fn(made: *const RawTensor, out: *mut *mut c_void) -> c_int,
    /// Releases an owner that the module has shared. It cannot fail.
    pub release: Release,
}

pub type Release = unsafe extern "C" fn(owner: *mut c_void);

/// An order for [`TensorApi::share`]: none; [`RawTensor`] says whether a device may be working on memory of the host.
pub const UNORDERED: c_int = 0;

/// Waits for device work on memory that counts as the host's. On CUDA memory the current stream waits for the work of all others.
pub const FOR_STREAM: c_int = 1;

/// Waits for device work on all memory that the host can reach: also pinned and managed memory.
pub const FOR_HOST: c_int = 2;

/// The place of each field in version 2, on platforms of 64 bits. A change needs another [`VERSION`].
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(VERSION == 2 && size_of::<TensorApi>() == 32 && size_of::<RawTensor>() == 120);
    assert!(offset_of!(TensorApi, share) == 8 && offset_of!(TensorApi, release) == 24);
};
