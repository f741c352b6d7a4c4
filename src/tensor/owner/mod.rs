//! Who keeps a tensor's memory.

mod letting_go;

pub(super) use self::letting_go::again;

#[cfg(any(feature = "ndarray", feature = "cuda"))]
use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dlpark::{AllocationDeleter, Managed, ManagedTensorBase, OpaqueContext};

use crate::memory::Block;
use crate::memory::cuda::Order;
use crate::protocol::ExchangeError;

/// Keeps memory for as long as any clone of it lives, and releases it once, from whichever thread comes last.
#[derive(Clone)]
pub struct Owner(Option<Arc<Keeper>>);

/// What an owner keeps; let go by [`Keeper::drop`], and taken nowhere else.
struct Keeper {
    kept: ManuallyDrop<Kept>,
    /// Whether another library was given the memory, and may write to it at any time.
    exported: AtomicBool,
    /// How many of this crate's safe functions are reading it.
    readers: AtomicUsize,
    /// Whose work the memory is let go after, on a device.
    order: Option<Box<Order>>,
}

#[allow(dead_code, reason = "owners are held for their drop")]
enum Kept {
    /// An allocation of ours.
    Block(Block),
    /// A managed tensor of somebody else; its deleter runs when this is dropped.
    Managed(AllocationDeleter),
    /// What has elements and was handed over, so that nobody else has it.
    #[cfg(any(feature = "ndarray", feature = "cuda"))]
    Elements(Box<dyn Any + Send + Sync>),
    /// Any other thing whose drop releases the memory.
    Foreign(Box<dyn Send + Sync>),
    /// An object of another runtime.
    Object(Object),
}

/// What an owner kept alone.
#[cfg(feature = "cuda")]
pub(crate) enum Alone {
    /// An allocation of ours.
    Block(Block),
    /// What was handed over.
    Elements(Box<dyn Any + Send + Sync>),
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

impl Drop for Keeper {
    fn drop(&mut self) {
        // SAFETY: taken here alone, and not used after.
        #[allow(unsafe_code, reason = "the value leaves a struct that is being dropped")]
        let kept = unsafe { ManuallyDrop::take(&mut self.kept) };
        match self.order.take() {
            None => letting_go::now(kept),
            Some(order) => letting_go::in_order(order, kept),
        }
    }
}

/// A reader that is counted, whatever happens while it reads.
struct Reader<'k>(&'k Keeper);

impl Reader<'_> {
    fn of(keeper: &Keeper) -> Reader<'_> {
        keeper.readers.fetch_add(1, Ordering::SeqCst);
        Reader(keeper)
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Release);
    }
}

impl Keeper {
    fn new(kept: Kept) -> Option<Arc<Keeper>> {
        Keeper::with_order(kept, None)
    }

    fn with_order(kept: Kept, order: Option<Box<Order>>) -> Option<Arc<Keeper>> {
        let (exported, readers) = (AtomicBool::new(false), AtomicUsize::new(0));
        Some(Arc::new(Keeper { kept: ManuallyDrop::new(kept), exported, readers, order }))
    }
}

impl Owner {
    /// Owns nothing: for fields without elements.
    #[cfg(feature = "python")]
    pub(crate) const NOBODY: Owner = Owner(None);

    /// Owns an allocation of ours, which is freed after the work that `order` knows of.
    pub(crate) fn block(block: Block, order: Option<Box<Order>>) -> Owner {
        Owner(Keeper::with_order(Kept::Block(block), order))
    }

    /// The order of work on the memory, if a device works on it.
    pub(crate) fn order(&self) -> Option<&Order> {
        self.0.as_deref()?.order.as_deref()
    }

    /// The same owner, who lets go after the work that `order` knows of.
    pub(crate) fn in_order(mut self, order: Box<Order>) -> Owner {
        match self.0.as_mut().map(Arc::get_mut) {
            // Owns nothing.
            None => self,
            Some(Some(keeper)) if keeper.order.is_none() => {
                keeper.order = Some(order);
                self
            }
            // Others have it, in an order of their own.
            Some(_) => Owner(Keeper::with_order(Kept::Foreign(Box::new(self)), Some(order))),
        }
    }

    /// Owns an imported managed tensor: its deleter is called when the last clone is dropped.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let owner = dlfield::Owner::managed(field.to_versioned(false).unwrap());
    /// assert_eq!(format!("{owner:?}"), "Owner(managed)");
    /// ```
    pub fn managed<M: ManagedTensorBase>(managed: Managed<M>) -> Owner {
        Owner(Keeper::new(Kept::Managed(managed.into_deleter())))
    }

    /// Owns anything whose drop releases the memory; the drop may happen on any thread.
    ///
    /// # Example
    /// ```
    /// let kept = std::sync::Arc::new(());
    /// let owner = dlfield::Owner::foreign(kept.clone());
    /// let other = owner.clone();
    /// drop(owner);
    /// assert_eq!(std::sync::Arc::strong_count(&kept), 2);
    /// drop(other);
    /// assert_eq!(std::sync::Arc::strong_count(&kept), 1);
    /// ```
    pub fn foreign(keeper: impl Send + Sync + 'static) -> Owner {
        Owner(Keeper::new(Kept::Foreign(Box::new(keeper))))
    }

    /// Owns a vector of elements.
    #[cfg(feature = "ndarray")]
    pub(crate) fn elements<T: Send + Sync + 'static>(elements: Vec<T>) -> Owner {
        Owner(Keeper::new(Kept::Elements(Box::new(elements))))
    }

    /// Owns what has elements in a device's memory, and is let go after the work that `order` knows of.
    #[cfg(feature = "cuda")]
    pub(crate) fn elements_in_order(elements: impl Send + Sync + 'static, order: Box<Order>) -> Owner {
        Owner(Keeper::with_order(Kept::Elements(Box::new(elements)), Some(order)))
    }

    /// Keeps again what was kept alone.
    #[cfg(feature = "cuda")]
    pub(crate) fn of_alone(alone: Alone, order: Option<Box<Order>>) -> Owner {
        Owner(Keeper::with_order(
            match alone {
                Alone::Block(block) => Kept::Block(block),
                Alone::Elements(elements) => Kept::Elements(elements),
            },
            order,
        ))
    }

    /// What is kept, which nobody else has, and the order of the work on it. Not of memory of other libraries.
    #[cfg(feature = "cuda")]
    pub(crate) fn into_alone(self) -> Option<(Alone, Option<Box<Order>>)> {
        let mut keeper = ManuallyDrop::new(Arc::into_inner(self.0?)?);
        let order = keeper.order.take();
        // SAFETY: taken once, as the keeper that would do it too is not dropped.
        #[allow(unsafe_code, reason = "the value leaves a struct that is not dropped")]
        match unsafe { ManuallyDrop::take(&mut keeper.kept) } {
            Kept::Block(block) => Some((Alone::Block(block), order)),
            Kept::Elements(elements) => Some((Alone::Elements(elements), order)),
            other => {
                match order {
                    Some(order) => letting_go::in_order(order, other),
                    None => letting_go::now(other),
                }
                None
            }
        }
    }

    /// Whether nobody but this owner has the memory, as far as the memory's kind can tell.
    #[cfg(any(feature = "ndarray", feature = "cuda"))]
    pub(crate) fn is_exclusive(&mut self) -> bool {
        let keeper = self.0.as_mut().and_then(Arc::get_mut);
        keeper.is_some_and(|keeper| matches!(*keeper.kept, Kept::Block(_) | Kept::Elements(_)))
    }

    /// Notes that another library gets the memory: safe functions refuse it from now on. Whether none is still reading it; if
    /// one is, [`Owner::wait_for_readers`] has to be called before the other library gets it.
    ///
    /// Who reads counts itself before it looks for the note, and who exports leaves the note before it looks at the count. All
    /// of that is in one order for all threads, so one of the two sees the other.
    #[inline]
    #[must_use]
    pub(crate) fn mark_exported(&self) -> bool {
        let Some(keeper) = &self.0 else { return true };
        if !keeper.exported.load(Ordering::SeqCst) {
            keeper.exported.store(true, Ordering::SeqCst);
        }
        keeper.readers.load(Ordering::SeqCst) == 0
    }

    /// Waits until safe functions have read what they are reading of memory that is marked: there will be no more of them. A
    /// thread that is attached to Python detaches before, as one that reads may wait for a device, and that for Python.
    #[cold]
    pub(crate) fn wait_for_readers(&self) {
        while self.0.as_ref().is_some_and(|keeper| keeper.readers.load(Ordering::SeqCst) > 0) {
            std::thread::yield_now();
        }
    }

    /// Refuses memory that another library was given, and may write to.
    pub(crate) fn check_not_exported(&self) -> Result<(), ExchangeError> {
        let exported = self.0.as_ref().is_some_and(|keeper| keeper.exported.load(Ordering::SeqCst));
        if exported { Err(ExchangeError::Lent) } else { Ok(()) }
    }

    /// Runs `read`, which reads the memory, if nobody can write to it meanwhile but in unsafe code: if no other library was
    /// given it. Those who export it wait, so `read` only reads: it neither allocates memory of tensors nor lets go of an owner,
    /// both of which may run anybody's code, which may wait for one who exports, or be one.
    pub(crate) fn read<R>(&self, read: impl FnOnce() -> R) -> Result<R, ExchangeError> {
        let Some(keeper) = &self.0 else { return Ok(read()) };
        // Those who are refused do not keep others waiting.
        self.check_not_exported()?;
        let _counted = Reader::of(keeper);
        self.check_not_exported()?;
        Ok(read())
    }

    /// Forgets that the memory was exported, if nobody else has it any more: of memory that came from others nobody knows.
    #[cfg(feature = "ndarray")]
    pub(crate) fn clear_exported(&mut self) {
        if self.is_exclusive()
            && let Some(keeper) = self.0.as_mut().and_then(Arc::get_mut)
        {
            *keeper.exported.get_mut() = false;
        }
    }

    /// The vector that is kept, if its elements begin at `start`, are of this type, and nobody else has them.
    #[cfg(feature = "ndarray")]
    pub(crate) fn take_elements<T: 'static>(&mut self, start: *const T) -> Option<Vec<T>> {
        let Kept::Elements(kept) = &mut *Arc::get_mut(self.0.as_mut()?)?.kept else { return None };
        let elements = kept.downcast_mut::<Vec<T>>().filter(|elements| elements.as_ptr() == start)?;
        Some(std::mem::take(elements))
    }

    /// Owns an object of another runtime by its address, in one allocation less than [`Owner::foreign`] takes: what a
    /// binding does for every array that comes in.
    ///
    /// # Safety
    /// - `release(address)` may be called once, from any thread, and gives the object back.
    #[allow(unsafe_code, reason = "the promise about the object is the caller's")]
    pub unsafe fn object(address: *mut c_void, release: unsafe fn(*mut c_void)) -> Owner {
        Owner(Keeper::new(Kept::Object(Object { address, release })))
    }
}

// SAFETY: an `Arc` of a `Send + Sync` value may be dropped on any thread; `Keeper` holds nothing bound to one.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl OpaqueContext for Owner {
    fn into_raw(self) -> *mut c_void {
        self.0.map_or(std::ptr::null(), Arc::into_raw).cast_mut().cast()
    }

    unsafe fn drop_raw(raw: *mut c_void) {
        if raw.is_null() {
            return;
        }
        // SAFETY: `raw` came from `into_raw`, whose count is given back here.
        let keeper = unsafe { Arc::from_raw(raw.cast::<Keeper>()) };
        // This is called by deleters, out of which nothing may unwind. The message has been written by then.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(keeper)));
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.as_deref().map(|keeper| &*keeper.kept) {
            None => "Owner(nobody)",
            Some(Kept::Block(_)) => "Owner(block)",
            Some(Kept::Managed(_)) => "Owner(managed)",
            #[cfg(any(feature = "ndarray", feature = "cuda"))]
            Some(Kept::Elements(_)) => "Owner(elements)",
            Some(Kept::Foreign(_)) => "Owner(foreign)",
            Some(Kept::Object(_)) => "Owner(object)",
        })
    }
}
