//! The C API of `dlfield.Tensor`: a table of C functions on the class, for the extensions that this crate is built into.
//!
//! An extension has its own copy of this crate, perhaps built by another compiler, so it can neither read the Rust value of a
//! `dlfield.Tensor` nor make one. DLPack's exchange table would do, but it has no read-only flag and no metadata, and a
//! managed tensor has to be allocated for each exchange. This table is dlfield's own. An extension that finds a table of
//! another [`VERSION`] uses DLPack.

#![allow(unsafe_code, reason = "a table of C functions")]

mod client;
#[cfg(target_pointer_width = "64")]
mod layout;
mod module;
mod parts;

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null;

use dlpark::OpaqueContext;

pub(crate) use self::client::{Api, find, of};
pub use self::module::retain;
pub use self::parts::{Field, FieldMetadata, FieldPromise, Labels};
use crate::layout::MAX_NDIM;
use crate::tensor::{Owner, Tensor};

/// The version of the layout of all structs here, and of what the functions promise. It changes with any of them.
pub const VERSION: u32 = 1;

/// The structs have room for so many dimensions in this version.
const _: () = assert!(MAX_NDIM == 64);

/// The name of the capsule in the attribute `_c_api` of the class.
pub const CAPSULE_NAME: &CStr = c"dlfield.Tensor._c_api";

/// The table. All functions are called by threads that are attached to the interpreter, and return 0, or -1 with a Python
/// exception set: a `TypeError` for an object that is not an instance of exactly the class.
#[repr(C)]
pub struct TensorApi {
    /// [`VERSION`] of the module. In another version the rest of the struct has another layout.
    pub version: u32,
    /// Describes a tensor for access by the host. Waits for device work on memory that counts as the host's. Returns
    /// [`WAITED`] if it has waited, and [`ELSEWHERE`] for other memory, which is not described. Shape and strides live as long as the tensor.
    pub describe: unsafe extern "C" fn(tensor: *mut c_void, out: *mut Field) -> c_int,
    /// Waits for device work on memory that the host can reach, though it is not the host's alone: pinned and managed memory.
    pub synchronize: unsafe extern "C" fn(tensor: *mut c_void) -> c_int,
    /// Returns the metadata that was set on a tensor. It lives as long as the tensor, also if it is replaced; the labels are
    /// written to `labels`.
    pub metadata: unsafe extern "C" fn(tensor: *mut c_void, labels: *mut Labels, out: *mut FieldMetadata) -> c_int,
    /// Makes a tensor, and takes the owner over, also on failure.
    pub create: unsafe extern "C" fn(made: *const NewTensor, out: *mut *mut c_void) -> c_int,
    /// Shares the memory of a tensor, on any device, with code that may write to it from now on, unless it is read-only. Waits
    /// for device work on memory that counts as the host's. The current stream waits for the work of all others that use CUDA
    /// memory.
    pub share: unsafe extern "C" fn(tensor: *mut c_void, out: *mut SharedTensor) -> c_int,
    /// Counts another user of an owner of [`SharedTensor`], which is released once more then. On any thread; it cannot fail.
    pub retain: unsafe extern "C" fn(owner: *mut c_void),
    /// Releases such an owner, on any thread. It does not unwind. With it as `release` of a [`NewTensor`], the module takes its own owner
    /// back instead of wrapping it, as owners would form a chain that grows with every round trip.
    pub release: unsafe extern "C" fn(owner: *mut c_void),
}

/// Returned by [`TensorApi::describe`] for memory that is not the host's.
pub const ELSEWHERE: c_int = 1;

/// What [`TensorApi::describe`] returns after a wait, in which other threads may have run.
pub const WAITED: c_int = 2;

/// How a tensor was described.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Described {
    AtOnce,
    AfterWait,
}

/// The parts of a tensor to make.
#[repr(C)]
pub struct NewTensor {
    field: Field,
    metadata: FieldMetadata,
    /// NULL if there is none.
    promise: *const FieldPromise,
    /// The owner of the memory; NULL for memory without one.
    owner: *mut c_void,
    /// Releases the owner, on any thread. It does not unwind.
    release: unsafe extern "C" fn(owner: *mut c_void),
}

impl NewTensor {
    /// Calls `create` with the parts of a tensor, and an owner of its memory that `create` takes over.
    #[inline]
    fn with<R>(tensor: &Tensor, owner: RawOwner, create: impl FnOnce(&NewTensor) -> R) -> R {
        let (descriptor, ndim) = (tensor.descriptor(), tensor.descriptor().ndim());
        let mut labels = MaybeUninit::uninit();
        let promise = tensor.promise().is_stated().then(|| FieldPromise::of(tensor.promise(), ndim));
        create(&NewTensor {
            field: Field::of(descriptor),
            metadata: FieldMetadata::of(descriptor, &mut labels),
            promise: promise.as_ref().map_or(null(), std::ptr::from_ref),
            owner: owner.address,
            release: owner.release,
        })
    }
}

/// An owner as the C functions pass it on.
struct RawOwner {
    address: *mut c_void,
    release: Release,
}

impl From<Owner> for RawOwner {
    fn from(owner: Owner) -> RawOwner {
        RawOwner { address: owner.into_raw(), release }
    }
}

/// A tensor whose memory another copy of this crate shares. Shape and strides live as long as the tensor.
#[repr(C)]
pub struct SharedTensor {
    field: Field,
    promise: FieldPromise,
    /// The owner of the memory, to be released once by [`TensorApi::release`]; NULL for memory without one.
    owner: *mut c_void,
}

impl SharedTensor {
    /// Takes the owner over, in another copy of this crate. `release` is the function of the table.
    ///
    /// # Safety
    /// - Nothing has taken it over before.
    unsafe fn take_owner(&self, release: Release) -> Owner {
        if self.owner.is_null() {
            return Owner::NONE;
        }
        // SAFETY: passed on from the caller, and `release` may be called on any thread.
        unsafe { Owner::object(self.owner, release) }
    }
}

type Release = unsafe extern "C" fn(owner: *mut c_void);

/// [`TensorApi::release`].
///
/// # Safety
/// - An owner of this copy of the crate, which is not used after.
pub unsafe extern "C" fn release(owner: *mut c_void) {
    // SAFETY: by this function's contract, `into_raw` returned it.
    unsafe { Owner::drop_raw(owner) };
}
