//! Who keeps a tensor's memory.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use dlpark::{AllocationDeleter, Managed, ManagedTensorBase, OpaqueContext};

use crate::memory::Block;

/// Keeps memory for as long as any clone of it lives, and releases it once, from whichever thread comes last.
#[derive(Clone)]
pub struct Owner(Option<Arc<Keeper>>);

#[allow(dead_code, reason = "owners are held for their drop")]
enum Keeper {
    /// An allocation of ours.
    Block(Block),
    /// A managed tensor of somebody else; its deleter runs when this is dropped.
    Managed(AllocationDeleter),
    /// Any other thing whose drop releases the memory.
    Foreign(Box<dyn Send + Sync>),
    /// An object of another runtime.
    Object(Object),
}

/// An object of another runtime, by address, with what gives it back.
struct Object {
    address: *mut c_void,
    release: unsafe fn(*mut c_void),
}

// SAFETY: who made the owner has said that any thread may release the object; nothing else is done with it.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Send for Object {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Sync for Object {}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: called once, as `Owner::object` asked to be allowed to.
        #[allow(unsafe_code, reason = "an address goes back to where it came from")]
        unsafe {
            (self.release)(self.address);
        }
    }
}

impl Owner {
    /// Owns nothing: for fields without elements.
    #[cfg(feature = "python")]
    pub(crate) const NOBODY: Owner = Owner(None);

    /// Owns an allocation of ours.
    pub(crate) fn block(block: Block) -> Owner {
        Owner(Some(Arc::new(Keeper::Block(block))))
    }

    /// Owns an imported managed tensor: its deleter is called when the last clone is dropped.
    pub fn managed<M: ManagedTensorBase>(managed: Managed<M>) -> Owner {
        Owner(Some(Arc::new(Keeper::Managed(managed.into_deleter()))))
    }

    /// Owns anything whose drop releases the memory; the drop may happen on any thread.
    pub fn foreign(keeper: impl Send + Sync + 'static) -> Owner {
        Owner(Some(Arc::new(Keeper::Foreign(Box::new(keeper)))))
    }

    /// Owns an object of another runtime by its address, in one allocation less than [`Owner::foreign`] takes: what a
    /// binding does for every array that comes in.
    ///
    /// # Safety
    /// - `release(address)` may be called once, from any thread, and gives the object back.
    #[allow(unsafe_code, reason = "the promise about the object is the caller's")]
    pub unsafe fn object(address: *mut c_void, release: unsafe fn(*mut c_void)) -> Owner {
        Owner(Some(Arc::new(Keeper::Object(Object { address, release }))))
    }
}

// SAFETY: an `Arc` of a `Send + Sync` value may be dropped on any thread; `Keeper` holds nothing bound to one.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl OpaqueContext for Owner {
    fn into_raw(self) -> *mut c_void {
        self.0.map_or(std::ptr::null(), Arc::into_raw).cast_mut().cast()
    }

    unsafe fn drop_raw(raw: *mut c_void) {
        if !raw.is_null() {
            // SAFETY: `raw` came from `into_raw`, whose count is given back here.
            drop(unsafe { Arc::from_raw(raw.cast::<Keeper>()) });
        }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.as_deref() {
            None => "Owner(nobody)",
            Some(Keeper::Block(_)) => "Owner(block)",
            Some(Keeper::Managed(_)) => "Owner(managed)",
            Some(Keeper::Foreign(_)) => "Owner(foreign)",
            Some(Keeper::Object(_)) => "Owner(object)",
        })
    }
}
