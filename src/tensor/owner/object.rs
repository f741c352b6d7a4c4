//! Objects of other runtimes as owners.

use std::ffi::c_void;
use std::ptr::fn_addr_eq;

use super::{Owner, OwnerInner, OwnerKind};

/// An object of another runtime: its address, and the function that gives the reference back.
pub(super) struct Object {
    address: *mut c_void,
    release: unsafe extern "C" fn(*mut c_void),
    /// Whether the object may be given other memory although this keeps it.
    may_move: bool,
}

// SAFETY: by the contract of `Owner::object` any thread may release the object; nothing else is done with it.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Send for Object {}
// SAFETY: by the contract of `Owner::object` any thread may release the object; nothing else is done with it.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Sync for Object {}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: called once, by the contract of `Owner::object`.
        #[allow(unsafe_code, reason = "a C function gives the reference back")]
        unsafe {
            (self.release)(self.address);
        }
    }
}

impl Owner {
    /// Owns an object of another runtime by its address, with one allocation less than [`Owner::foreign`]: what a binding does
    /// for every array that it imports.
    ///
    /// # Safety
    /// - `release(address)` may be called once, from any thread, and releases the object.
    ///
    /// # Example
    /// ```
    /// use std::ffi::c_void;
    ///
    /// use dlfield::Owner;
    ///
    /// /// Stands for a function of another runtime that releases one of its objects.
    /// unsafe extern "C" fn release(address: *mut c_void) {
    ///     // SAFETY: called once, with the address of a box.
    ///     drop(unsafe { Box::from_raw(address.cast::<[f64; 4]>()) });
    /// }
    ///
    /// let object = Box::into_raw(Box::new([0.0f64; 4]));
    /// // SAFETY: `release` may be called from any thread; the owner calls it once.
    /// let owner = unsafe { Owner::object(object.cast(), release) };
    /// drop(owner);
    /// ```
    #[allow(unsafe_code, reason = "the promise about the object is the caller's")]
    pub unsafe fn object(address: *mut c_void, release: unsafe extern "C" fn(*mut c_void)) -> Owner {
        let object = Object { address, release, may_move: false };
        Owner(OwnerInner::new(OwnerKind::Object(object)))
    }

    /// As [`Owner::object`], for an object that may be given other memory: [`Owner::movable`] finds it, to look again before the
    /// memory is used.
    ///
    /// # Safety
    /// - As for [`Owner::object`].
    #[allow(unsafe_code, reason = "the promise about the object is the caller's")]
    pub(crate) unsafe fn movable_object(address: *mut c_void, release: unsafe extern "C" fn(*mut c_void)) -> Owner {
        Owner(OwnerInner::new(OwnerKind::Object(Object { address, release, may_move: true })))
    }

    /// Returns the address of the object with the memory, if that may be given other memory.
    #[inline]
    pub(crate) fn movable(&self) -> Option<*mut c_void> {
        match &*self.0.as_deref()?.kind {
            OwnerKind::Object(object) => object.may_move.then_some(object.address),
            OwnerKind::Both(both) => both.0.movable(),
            OwnerKind::Returned(owner) => owner.movable(),
            _ => None,
        }
    }

    /// Returns the address of the object that this owner keeps, if `release` gives it back.
    pub(crate) fn object_of(&self, release: unsafe extern "C" fn(*mut c_void)) -> Option<*mut c_void> {
        let inner = self.0.as_deref()?;
        match &*inner.kind {
            OwnerKind::Object(object) if fn_addr_eq(object.release, release) => Some(object.address),
            _ => None,
        }
    }
}
