//! Who keeps a tensor's memory.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use dlpark::{AllocationDeleter, Managed, ManagedTensorBase, OpaqueContext};

use crate::memory::Block;

/// Keeps memory for as long as any clone of it lives, and releases it once, from whichever thread comes last.
#[derive(Clone)]
pub struct Owner(Option<Arc<InTurn>>);

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

/// A keeper whose release does not go too deep. What it keeps may keep another owner, and so on: a field that another
/// library has viewed at every time step is the end of a chain, and freeing one link inside the other takes more stack than
/// there is.
struct InTurn(Option<Keeper>);

/// Releases that may be under way inside each other, in one thread.
const DEEPEST: u32 = 32;

thread_local! {
    /// How many are, and how many more wait for the outermost.
    static RELEASES: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    static WAITING: RefCell<Vec<Keeper>> = const { RefCell::new(Vec::new()) };
}

impl Drop for InTurn {
    fn drop(&mut self) {
        if let Some(Keeper::Block(_)) = self.0 {
            // Keeps nobody else.
            return;
        }
        let keeper = self.0.take();
        RELEASES.with(|releases| {
            let (depth, waiting) = releases.get();
            if depth == DEEPEST {
                let mut late = keeper;
                // A thread that is about to end has no list any more, and releases at once what it still has to.
                if WAITING.try_with(|list| list.borrow_mut().extend(late.take())).is_ok() {
                    releases.set((depth, waiting + 1));
                }
                return;
            }
            releases.set((depth + 1, waiting));
            drop(keeper);
            while depth == 0 && releases.get().1 > 0 {
                let next = WAITING.try_with(|list| list.borrow_mut().pop()).ok().flatten();
                releases.set((1, releases.get().1 - 1));
                drop(next);
            }
            releases.set((depth, releases.get().1));
        });
    }
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

    fn of(keeper: Keeper) -> Owner {
        Owner(Some(Arc::new(InTurn(Some(keeper)))))
    }

    /// Owns an allocation of ours.
    pub(crate) fn block(block: Block) -> Owner {
        Owner::of(Keeper::Block(block))
    }

    /// Owns an imported managed tensor: its deleter is called when the last clone is dropped.
    pub fn managed<M: ManagedTensorBase>(managed: Managed<M>) -> Owner {
        Owner::of(Keeper::Managed(managed.into_deleter()))
    }

    /// Owns anything whose drop releases the memory; the drop may happen on any thread.
    pub fn foreign(keeper: impl Send + Sync + 'static) -> Owner {
        Owner::of(Keeper::Foreign(Box::new(keeper)))
    }

    /// Owns an object of another runtime by its address, in one allocation less than [`Owner::foreign`] takes: what a
    /// binding does for every array that comes in.
    ///
    /// # Safety
    /// - `release(address)` may be called once, from any thread, and gives the object back.
    #[allow(unsafe_code, reason = "the promise about the object is the caller's")]
    pub unsafe fn object(address: *mut c_void, release: unsafe fn(*mut c_void)) -> Owner {
        Owner::of(Keeper::Object(Object { address, release }))
    }
}

// SAFETY: an `Arc` of a `Send + Sync` value may be dropped on any thread; what it keeps is bound to none.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl OpaqueContext for Owner {
    fn into_raw(self) -> *mut c_void {
        self.0.map_or(std::ptr::null(), Arc::into_raw).cast_mut().cast()
    }

    unsafe fn drop_raw(raw: *mut c_void) {
        if !raw.is_null() {
            // SAFETY: `raw` came from `into_raw`, whose count is given back here.
            drop(unsafe { Arc::from_raw(raw.cast::<InTurn>()) });
        }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.as_deref().and_then(|keeper| keeper.0.as_ref()) {
            None => "Owner(nobody)",
            Some(Keeper::Block(_)) => "Owner(block)",
            Some(Keeper::Managed(_)) => "Owner(managed)",
            Some(Keeper::Foreign(_)) => "Owner(foreign)",
            Some(Keeper::Object(_)) => "Owner(object)",
        })
    }
}
