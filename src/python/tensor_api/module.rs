//! The side of the module, which shares its tensors and makes new ones.

use std::ffi::c_void;
use std::mem::forget;
use std::ptr::fn_addr_eq;

use dlpark::OpaqueContext;
use pyo3::prelude::*;

use super::{Field, FieldPromise, NewTensor, Release, SharedTensor, release};
use crate::error::Result;
use crate::python::sync;
use crate::tensor::{Owner, Tensor};

impl NewTensor {
    /// Takes the owner over. One that [`TensorApi::share`](super::TensorApi::share) of this module has given is itself again.
    ///
    /// # Safety
    /// - Nothing has taken it over before.
    #[inline]
    pub unsafe fn take_owner(&self) -> Owner {
        if self.owner.is_null() {
            return Owner::NONE;
        }
        if fn_addr_eq(self.release, release as Release) {
            // SAFETY: passed on from the caller. Only the owners of this copy of the crate are released by its function.
            return unsafe { Owner::from_raw(self.owner) };
        }
        // SAFETY: passed on from the caller, and `release` may be called on any thread.
        unsafe { Owner::object(self.owner, self.release) }
    }

    /// Fills in a blank tensor, with the owner that was taken over.
    ///
    /// # Errors
    /// [`crate::Error`] for parts that no tensor has.
    ///
    /// # Safety
    /// - The parts are those of a tensor that lives during the call.
    pub unsafe fn fill(&self, py: Python<'_>, tensor: &mut Tensor, owner: Owner) -> Result<()> {
        // SAFETY: by this function's contract. The owner keeps the memory.
        unsafe {
            let (descriptor, owner_of_tensor) = tensor.parts_mut();
            self.field.read_into(descriptor)?;
            *owner_of_tensor = sync::in_order_detached(py, owner, descriptor.device());
            if !self.metadata.is_empty() {
                descriptor.set_new_metadata(self.metadata.read()?);
            }
            if let Some(promise) = self.promise.as_ref() {
                let kept = tensor.adopt_promise(promise.read()?);
                debug_assert!(kept, "memory that is not aligned as it is said to be");
            }
        }
        Ok(())
    }
}

impl SharedTensor {
    /// The parts of a tensor, whose memory is exported. The current stream waits for all others that use it.
    ///
    /// # Errors
    /// [`crate::ExchangeError`] while a guard reads the memory; [`crate::DeviceError`] for the current stream.
    pub fn of(py: Python<'_>, tensor: &Tensor) -> Result<SharedTensor> {
        // The extension makes this stream wait for its own ones before it releases its owner.
        sync::order_current_stream(py, tensor)?;
        let owner = tensor.owner().clone();
        if !owner.mark_exported() {
            // A reader may wait for a device, and the device's work for the GIL.
            py.detach(|| owner.export())?;
        }
        Ok(SharedTensor {
            field: Field::of(tensor.descriptor()),
            promise: FieldPromise::of(tensor.promise(), tensor.descriptor().ndim()),
            owner: owner.into_raw(),
        })
    }
}

/// [`TensorApi::retain`](super::TensorApi::retain).
///
/// # Safety
/// - A live owner of this copy of the crate.
pub unsafe extern "C" fn retain(owner: *mut c_void) {
    // SAFETY: by this function's contract. The new count is given back by `release`.
    forget(unsafe { Owner::clone_raw(owner) });
}
