//! Who keeps a tensor's memory.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use dlpark::{AllocationDeleter, Managed, ManagedTensorBase, OpaqueContext};

use crate::memory::Block;

/// Keeps memory for as long as any clone of it lives, and releases it once, from whichever thread comes last.
#[derive(Clone)]
pub struct Owner(Arc<Keeper>);

#[allow(dead_code, reason = "owners are held for their drop")]
enum Keeper {
    /// An allocation of ours.
    Block(Block),
    /// A managed tensor of somebody else; its deleter runs when this is dropped.
    Managed(AllocationDeleter),
    /// Any other thing whose drop releases the memory.
    Foreign(Box<dyn Send + Sync>),
}

impl Owner {
    /// Owns an allocation of ours.
    pub(crate) fn block(block: Block) -> Owner {
        Owner(Arc::new(Keeper::Block(block)))
    }

    /// Owns an imported managed tensor: its deleter is called when the last clone is dropped.
    pub fn managed<M: ManagedTensorBase>(managed: Managed<M>) -> Owner {
        Owner(Arc::new(Keeper::Managed(managed.into_deleter())))
    }

    /// Owns anything whose drop releases the memory; the drop may happen on any thread.
    pub fn foreign(keeper: impl Send + Sync + 'static) -> Owner {
        Owner(Arc::new(Keeper::Foreign(Box::new(keeper))))
    }
}

// SAFETY: an `Arc` of a `Send + Sync` value may be dropped on any thread; `Keeper` holds nothing bound to one.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl OpaqueContext for Owner {
    fn into_raw(self) -> *mut c_void {
        Arc::into_raw(self.0).cast_mut().cast()
    }

    unsafe fn drop_raw(raw: *mut c_void) {
        // SAFETY: `raw` came from `into_raw`, whose count is given back here.
        drop(unsafe { Arc::from_raw(raw.cast::<Keeper>()) });
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self.0 {
            Keeper::Block(_) => "Owner(block)",
            Keeper::Managed(_) => "Owner(managed)",
            Keeper::Foreign(_) => "Owner(foreign)",
        })
    }
}
