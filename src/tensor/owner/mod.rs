//! Owners of a tensor's memory.

mod deferred_drop;
mod small_blocks;

#[cfg(any(feature = "ndarray", feature = "cuda"))]
use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dlpark::{AllocationDeleter, Managed, ManagedTensorBase, OpaqueContext};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::cuda::{Stream, StreamUses, current_stream};
use crate::memory::{Block, Contents};
use crate::protocol::ExchangeError;

/// Keeps memory while any clone of it lives, and releases it once, on the thread that drops the last clone.
#[derive(Clone)]
pub struct Owner(Option<Arc<OwnerInner>>);

/// The shared part of an owner. Only [`OwnerInner::drop`] and [`Owner::into_exclusive`] take `kind` out.
struct OwnerInner {
    kind: ManuallyDrop<OwnerKind>,
    /// Whether the memory was exported to another library, which may write to it at any time.
    exported: AtomicBool,
    /// How many safe functions of this crate are reading it now.
    readers: AtomicUsize,
    /// The streams whose work must be done before device memory is released.
    uses: Option<Box<StreamUses>>,
}

#[allow(dead_code, reason = "owners are held for their drop")]
enum OwnerKind {
    /// An allocation of this crate.
    Block(Block),
    /// A DLPack managed tensor of another library; its deleter runs when this is dropped.
    Managed(AllocationDeleter),
    /// A container of elements that its caller has given up, so that no other code can reach them.
    #[cfg(any(feature = "ndarray", feature = "cuda"))]
    Elements(Box<dyn Any + Send + Sync>),
    /// Any other value whose drop releases the memory.
    Foreign(Box<dyn Send + Sync>),
    /// An object of another runtime.
    Object(Object),
}

/// The content of an owner that was the only one.
#[cfg(feature = "cuda")]
pub(crate) enum ExclusiveOwner {
    /// An allocation of this crate.
    Block(Block),
    /// A container of elements.
    Elements(Box<dyn Any + Send + Sync>),
}

/// An object of another runtime: its address, and the function that gives the reference back.
struct Object {
    address: *mut c_void,
    release: unsafe fn(*mut c_void),
}

// SAFETY: by the contract of `Owner::object` any thread may release the object; nothing else is done with it.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Send for Object {}
// SAFETY: as above.
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

impl Drop for Owner {
    #[inline]
    fn drop(&mut self) {
        if self.0.as_ref().is_some_and(small_blocks::may_keep)
            && let Some(inner) = self.0.take()
        {
            small_blocks::put(inner);
        }
    }
}

impl Drop for OwnerInner {
    fn drop(&mut self) {
        // SAFETY: taken once, in `drop`, and not used after.
        #[allow(unsafe_code, reason = "the value leaves a struct that is being dropped")]
        let kind = unsafe { ManuallyDrop::take(&mut self.kind) };
        match self.uses.take() {
            None => deferred_drop::now(kind),
            Some(uses) => deferred_drop::after_work(uses, kind),
        }
    }
}

/// Counts one reader, also if it panics.
struct Reader<'i>(&'i OwnerInner);

impl Reader<'_> {
    fn of(inner: &OwnerInner) -> Reader<'_> {
        inner.readers.fetch_add(1, Ordering::SeqCst);
        Reader(inner)
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Release);
    }
}

impl OwnerInner {
    fn new(kind: OwnerKind) -> Option<Arc<OwnerInner>> {
        OwnerInner::with_stream_uses(kind, None)
    }

    fn with_stream_uses(kind: OwnerKind, uses: Option<Box<StreamUses>>) -> Option<Arc<OwnerInner>> {
        let (exported, readers) = (AtomicBool::new(false), AtomicUsize::new(0));
        Some(Arc::new(OwnerInner { kind: ManuallyDrop::new(kind), exported, readers, uses }))
    }
}

impl Owner {
    /// Owns nothing: for fields without elements.
    #[doc(hidden)]
    pub const NONE: Owner = Owner(None);

    /// Allocates memory and owns it; returns its address too. CUDA memory is allocated in the current stream.
    ///
    /// # Errors
    /// As for [`Block::allocate`].
    #[inline]
    pub(super) fn allocate(
        device: Device,
        bytes: usize,
        alignment: usize,
        contents: Contents,
    ) -> Result<(Owner, *mut u8)> {
        if device == Device::CPU
            && let Some((inner, start)) = small_blocks::take(bytes, alignment, contents)
        {
            return Ok((Owner(Some(inner)), start));
        }
        Owner::allocate_anew(device, bytes, alignment, contents)
    }

    #[inline(never)]
    fn allocate_anew(device: Device, bytes: usize, alignment: usize, contents: Contents) -> Result<(Owner, *mut u8)> {
        let stream = if device == Device::CPU { Stream::LEGACY } else { current_stream(device) };
        let had = || Block::allocate(device, bytes, alignment, contents, stream);
        let block = match had() {
            // Memory whose release waited for the end of a graph capture may be freed by now.
            Err(Error::Memory(_)) if deferred_drop::retry(usize::MAX) => had()?,
            had => had?,
        };
        let (start, uses) = (block.as_ptr(), block.stream_uses());
        Ok((Owner(OwnerInner::with_stream_uses(OwnerKind::Block(block), uses)), start))
    }

    /// Returns the streams that use the memory, if a device can.
    #[doc(hidden)]
    pub fn stream_uses(&self) -> Option<&StreamUses> {
        self.0.as_deref()?.uses.as_deref()
    }

    /// Returns the same owner, released after the work of the streams in `uses`.
    pub(crate) fn freed_after(mut self, uses: Box<StreamUses>) -> Owner {
        match self.0.as_mut().map(Arc::get_mut) {
            // Owns nothing.
            None => self,
            Some(Some(inner)) if inner.uses.is_none() => {
                inner.uses = Some(uses);
                self
            }
            // Shared, or with uses of its own already.
            Some(_) => Owner(OwnerInner::with_stream_uses(OwnerKind::Foreign(Box::new(self)), Some(uses))),
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
        Owner(OwnerInner::new(OwnerKind::Managed(managed.into_deleter())))
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
        Owner(OwnerInner::new(OwnerKind::Foreign(Box::new(keeper))))
    }

    /// Owns a vector of elements.
    #[cfg(feature = "ndarray")]
    pub(crate) fn elements<T: Send + Sync + 'static>(elements: Vec<T>) -> Owner {
        Owner(OwnerInner::new(OwnerKind::Elements(Box::new(elements))))
    }

    /// Owns a container of elements in a device's memory, which is released after the work of the streams in `uses`.
    #[cfg(feature = "cuda")]
    pub(crate) fn elements_freed_after(elements: impl Send + Sync + 'static, uses: Box<StreamUses>) -> Owner {
        Owner(OwnerInner::with_stream_uses(OwnerKind::Elements(Box::new(elements)), Some(uses)))
    }

    /// Returns the owner of what [`Owner::into_exclusive`] took out.
    #[cfg(feature = "cuda")]
    pub(crate) fn from_exclusive(exclusive: ExclusiveOwner, uses: Option<Box<StreamUses>>) -> Owner {
        Owner(OwnerInner::with_stream_uses(
            match exclusive {
                ExclusiveOwner::Block(block) => OwnerKind::Block(block),
                ExclusiveOwner::Elements(elements) => OwnerKind::Elements(elements),
            },
            uses,
        ))
    }

    /// Returns the content, with the streams that use it. Returns `None` and drops the owner if others share it, or another
    /// library made the memory.
    #[cfg(feature = "cuda")]
    pub(crate) fn into_exclusive(mut self) -> Option<(ExclusiveOwner, Option<Box<StreamUses>>)> {
        let mut inner = ManuallyDrop::new(Arc::into_inner(self.0.take()?)?);
        let uses = inner.uses.take();
        // SAFETY: taken once: `inner`, whose drop would take it too, is not dropped.
        #[allow(unsafe_code, reason = "the value leaves a struct that is not dropped")]
        match unsafe { ManuallyDrop::take(&mut inner.kind) } {
            OwnerKind::Block(block) => Some((ExclusiveOwner::Block(block), uses)),
            OwnerKind::Elements(elements) => Some((ExclusiveOwner::Elements(elements), uses)),
            other => {
                match uses {
                    Some(uses) => deferred_drop::after_work(uses, other),
                    None => deferred_drop::now(other),
                }
                None
            }
        }
    }

    /// Returns whether no other owner shares the memory; false for memory of other libraries.
    #[cfg(any(feature = "ndarray", feature = "cuda"))]
    pub(crate) fn is_exclusive(&mut self) -> bool {
        let inner = self.0.as_mut().and_then(Arc::get_mut);
        inner.is_some_and(|inner| matches!(*inner.kind, OwnerKind::Block(_) | OwnerKind::Elements(_)))
    }

    /// Marks the memory as exported to another library: safe functions reject it from now on. Returns whether none of them is
    /// still reading it; if not, call [`Owner::wait_for_readers`] before the export.
    ///
    /// A reader increments the count before it checks the mark, and an exporter sets the mark before it checks the count. All
    /// four are sequentially consistent, so at least one of the two sees the other.
    #[inline]
    #[must_use]
    pub(crate) fn mark_exported(&self) -> bool {
        let Some(inner) = &self.0 else { return true };
        if !inner.exported.load(Ordering::SeqCst) {
            inner.exported.store(true, Ordering::SeqCst);
        }
        inner.readers.load(Ordering::SeqCst) == 0
    }

    /// Waits until no safe function reads memory that is marked as exported; new ones are rejected. A thread attached to Python
    /// must detach first: a reader may wait for a device, whose callbacks may need the GIL.
    #[cold]
    pub(crate) fn wait_for_readers(&self) {
        while self.0.as_ref().is_some_and(|inner| inner.readers.load(Ordering::SeqCst) > 0) {
            std::thread::yield_now();
        }
    }

    /// Rejects memory that was exported: the other library may write to it.
    pub(crate) fn check_not_exported(&self) -> Result<(), ExchangeError> {
        let exported = self.0.as_ref().is_some_and(|inner| inner.exported.load(Ordering::SeqCst));
        if exported { Err(ExchangeError::Exported) } else { Ok(()) }
    }

    /// Runs `read`, which reads the memory, unless it was exported: then only unsafe code can write to it meanwhile. An export
    /// waits for `read`, so `read` must neither allocate a tensor nor drop an owner: both may run foreign code, which may
    /// export the memory or wait for an export.
    pub(crate) fn read<R>(&self, read: impl FnOnce() -> R) -> Result<R, ExchangeError> {
        let Some(inner) = &self.0 else { return Ok(read()) };
        // Before counting, so that a rejected reader delays no export.
        self.check_not_exported()?;
        let _counted = Reader::of(inner);
        self.check_not_exported()?;
        Ok(read())
    }

    /// Removes the export mark if this is the only owner left; never for memory of other libraries.
    #[cfg(feature = "ndarray")]
    pub(crate) fn clear_exported(&mut self) {
        if self.is_exclusive()
            && let Some(inner) = self.0.as_mut().and_then(Arc::get_mut)
        {
            *inner.exported.get_mut() = false;
        }
    }

    /// Takes out the owned vector if its elements begin at `start` and have this type, and no other owner shares it.
    #[cfg(feature = "ndarray")]
    pub(crate) fn take_elements<T: 'static>(&mut self, start: *const T) -> Option<Vec<T>> {
        let OwnerKind::Elements(elements) = &mut *Arc::get_mut(self.0.as_mut()?)?.kind else { return None };
        let elements = elements.downcast_mut::<Vec<T>>().filter(|elements| elements.as_ptr() == start)?;
        Some(std::mem::take(elements))
    }

    /// Owns an object of another runtime by its address, with one allocation less than [`Owner::foreign`]: what a binding does
    /// for every array that it imports.
    ///
    /// # Safety
    /// - `release(address)` may be called once, from any thread, and releases the object.
    #[allow(unsafe_code, reason = "the promise about the object is the caller's")]
    pub unsafe fn object(address: *mut c_void, release: unsafe fn(*mut c_void)) -> Owner {
        Owner(OwnerInner::new(OwnerKind::Object(Object { address, release })))
    }
}

// SAFETY: an `Arc` of a `Send + Sync` value may be dropped on any thread; `OwnerInner` holds nothing bound to one.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl OpaqueContext for Owner {
    fn into_raw(mut self) -> *mut c_void {
        self.0.take().map_or(std::ptr::null(), Arc::into_raw).cast_mut().cast()
    }

    unsafe fn drop_raw(raw: *mut c_void) {
        if raw.is_null() {
            return;
        }
        // SAFETY: `raw` came from `into_raw`, whose count is given back here.
        let owner = Owner(Some(unsafe { Arc::from_raw(raw.cast::<OwnerInner>()) }));
        // Deleters call this, and nothing may unwind out of them. The panic message has been written by then.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(owner)));
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.as_deref().map(|inner| &*inner.kind) {
            None => "Owner(nobody)",
            Some(OwnerKind::Block(_)) => "Owner(block)",
            Some(OwnerKind::Managed(_)) => "Owner(managed)",
            #[cfg(any(feature = "ndarray", feature = "cuda"))]
            Some(OwnerKind::Elements(_)) => "Owner(elements)",
            Some(OwnerKind::Foreign(_)) => "Owner(foreign)",
            Some(OwnerKind::Object(_)) => "Owner(object)",
        })
    }
}
