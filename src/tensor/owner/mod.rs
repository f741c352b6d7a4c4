//! Owners of a tensor's memory.

mod allocate;
mod deferred_drop;
mod exclusive;
mod guard;
mod object;
mod range;
mod readers;
mod registry;
mod weak;

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use dlpark::{AllocationDeleter, Managed, ManagedTensorBase, OpaqueContext};

pub(crate) use exclusive::ExclusiveOwner;
pub(crate) use exclusive::shared;
pub(crate) use guard::Guard;
use object::Object;
pub use registry::{BlockInfo, report};
pub(super) use weak::WeakOwner;

use crate::memory::cuda::StreamUses;

/// Keeps memory while any clone of it lives, and releases it once, on the thread that drops the last clone.
///
/// # Example
/// ```
/// use dlfield::{Element, Descriptor, Device, Owner, Tensor};
/// let memory = vec![1.0f64, 2.0];
/// let descriptor = Descriptor::new(memory.as_ptr().cast_mut().cast(), Device::CPU, f64::DTYPE, true, &[2], &[1]).unwrap();
/// // SAFETY: the vector stays where it is while the owner keeps it.
/// let field = unsafe { Tensor::from_parts(descriptor, Owner::foreign(memory)) };
/// assert_eq!(format!("{:?}", field.owner()), "Owner(foreign)");
/// ```
#[derive(Clone)]
pub struct Owner(Option<Arc<OwnerInner>>);

/// The shared part of an owner. Only [`OwnerInner::drop`] and [`Owner::into_exclusive`] take `kind` out.
struct OwnerInner {
    kind: ManuallyDrop<OwnerKind>,
    /// Whether the memory was exported to another library, which may write to it at any time.
    exported: AtomicBool,
    /// How many safe functions of this crate are reading it now, plus a large number for each guard.
    readers: AtomicUsize,
    uses: Uses,
}

/// The streams whose work must be done before device memory is released.
enum Uses {
    /// No device can use the memory.
    None,
    /// This owner waits for them.
    Own(Box<StreamUses>),
    /// An owner inside this one waits for them. It is found once: owners in owners may be a long chain.
    Inside(Owner),
}

impl Uses {
    fn own(&self) -> Option<&StreamUses> {
        if let Uses::Own(uses) = self { Some(uses) } else { None }
    }

    /// Takes the streams out that this owner itself waits for.
    fn take(&mut self) -> Option<Box<StreamUses>> {
        if let Uses::Own(uses) = std::mem::replace(self, Uses::None) { Some(uses) } else { None }
    }
}

impl From<Option<Box<StreamUses>>> for Uses {
    fn from(uses: Option<Box<StreamUses>>) -> Uses {
        uses.map_or(Uses::None, Uses::Own)
    }
}

#[allow(dead_code, reason = "owners are held for their drop")]
enum OwnerKind {
    /// An allocation of this crate.
    Block(crate::memory::Block),
    /// A DLPack managed tensor of another library; its deleter runs when this is dropped.
    Managed(AllocationDeleter),
    /// Memory that this crate exported and imported again: the owner that was exported.
    Returned(Owner),
    /// A container of elements that its caller has given up, so that no other code can reach them.
    Elements(Box<dyn Any + Send + Sync>),
    /// Any other value whose drop releases the memory.
    Foreign(Box<dyn Send + Sync>),
    /// An owner, and something else that has to live as long.
    Both(Box<(Owner, Box<dyn Send + Sync>)>),
    /// An object of another runtime.
    Object(Object),
    /// Memory for one field in what another owner keeps.
    Range(Box<range::Range>),
}

impl Drop for OwnerInner {
    fn drop(&mut self) {
        if let OwnerKind::Block(block) = &*self.kind {
            registry::remove(self, block);
        }
        // Host memory is dropped where it is: there are many blocks of it.
        let is_dropped_here = !self.kind.nests() && matches!(self.uses, Uses::None);
        // SAFETY: dropped or taken once, here, and not used after.
        #[allow(unsafe_code, reason = "the value leaves a struct that is being dropped")]
        let kind = unsafe {
            if is_dropped_here {
                return ManuallyDrop::drop(&mut self.kind);
            }
            ManuallyDrop::take(&mut self.kind)
        };
        match self.uses.take() {
            None => deferred_drop::now(kind),
            Some(uses) => deferred_drop::after_work(uses, kind),
        }
    }
}

impl OwnerInner {
    fn new(kind: OwnerKind) -> Option<Arc<OwnerInner>> {
        OwnerInner::with_stream_uses(kind, Uses::None)
    }

    fn with_stream_uses(kind: OwnerKind, uses: Uses) -> Option<Arc<OwnerInner>> {
        let (exported, readers) = (AtomicBool::new(false), AtomicUsize::new(0));
        Some(Arc::new(OwnerInner { kind: ManuallyDrop::new(kind), exported, readers, uses }))
    }
}

impl Owner {
    /// Owns nothing: for fields without elements.
    pub(crate) const NONE: Owner = Owner(None);

    /// Returns the streams that use the memory, if a device can.
    #[inline]
    pub(crate) fn stream_uses(&self) -> Option<&StreamUses> {
        self.owner_with_uses()?.0.as_deref()?.uses.own()
    }

    /// Returns the owner that waits for the streams: this one, or one inside it. No loop: `returned` makes no chain.
    #[inline]
    fn owner_with_uses(&self) -> Option<&Owner> {
        let inner = self.0.as_deref()?;
        match (&inner.uses, &*inner.kind) {
            (Uses::Own(_), _) => Some(self),
            (Uses::Inside(owner), _) => Some(owner),
            // Memory that came back is exclusive again if it has no other owner, so this one has no second one of it.
            (Uses::None, OwnerKind::Returned(exported)) => exported.owner_with_uses(),
            (Uses::None, _) => None,
        }
    }

    /// Returns the streams as an owner has them that keeps this one.
    fn uses_from_outside(&self) -> Uses {
        self.owner_with_uses().map_or(Uses::None, |owner| Uses::Inside(owner.clone()))
    }

    /// Returns the same owner, released after the work of the streams in `uses`.
    pub(crate) fn freed_after(mut self, uses: Box<StreamUses>) -> Owner {
        match self.0.as_mut().map(Arc::get_mut) {
            // Owns nothing.
            None => self,
            Some(Some(inner)) if inner.uses.own().is_none() => {
                inner.uses = Uses::Own(uses);
                self
            }
            // Shared, or with uses of its own already.
            Some(_) => Owner(OwnerInner::with_stream_uses(OwnerKind::Foreign(Box::new(self)), Uses::Own(uses))),
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

    /// Owns memory that came back: `exported` is the owner inside a struct that this crate made. If it is the only one left, the
    /// memory is exclusive again.
    pub(super) fn returned(mut exported: Owner) -> Owner {
        // Memory that comes and goes often would have a long chain of owners.
        while let Some(inner) = &exported.0
            && let (OwnerKind::Returned(first), None) = (&*inner.kind, inner.uses.own())
        {
            exported = first.clone();
        }
        Owner(OwnerInner::new(OwnerKind::Returned(exported)))
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

    /// Returns an owner that keeps another value too, and knows the streams of this one.
    pub(crate) fn with(self, keeper: impl Send + Sync + 'static) -> Owner {
        let uses = self.uses_from_outside();
        Owner(OwnerInner::with_stream_uses(OwnerKind::Both(Box::new((self, Box::new(keeper)))), uses))
    }

    /// Owns a vector of elements.
    pub(crate) fn elements<T: Send + Sync + 'static>(elements: Vec<T>) -> Owner {
        Owner(OwnerInner::new(OwnerKind::Elements(Box::new(elements))))
    }

    /// Owns a container of elements in a device's memory, which is released after the work of the streams in `uses`.
    pub(crate) fn elements_freed_after(elements: impl Send + Sync + 'static, uses: Box<StreamUses>) -> Owner {
        Owner(OwnerInner::with_stream_uses(OwnerKind::Elements(Box::new(elements)), Uses::Own(uses)))
    }

    /// The owner that [`OpaqueContext::into_raw`] has made an address of.
    ///
    /// # Safety
    /// - The address came from there, and its count is passed on.
    #[allow(unsafe_code, reason = "a count travels as an address")]
    pub(crate) unsafe fn from_raw(raw: *mut c_void) -> Owner {
        // SAFETY: passed on from the caller.
        Owner((!raw.is_null()).then(|| unsafe { Arc::from_raw(raw.cast::<OwnerInner>()) }))
    }

    /// Another clone of the owner that [`OpaqueContext::into_raw`] has made an address of.
    ///
    /// # Safety
    /// - The address came from there, and its count is not given back yet.
    #[allow(unsafe_code, reason = "a count travels as an address")]
    pub(crate) unsafe fn clone_raw(raw: *mut c_void) -> Owner {
        // SAFETY: passed on from the caller; the count stays with the address.
        (*ManuallyDrop::new(unsafe { Owner::from_raw(raw) })).clone()
    }
}

// SAFETY: an `Arc` of a `Send + Sync` value may be dropped on any thread; `OwnerInner` holds nothing bound to one.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl OpaqueContext for Owner {
    fn into_raw(mut self) -> *mut c_void {
        self.0.take().map_or(std::ptr::null(), Arc::into_raw).cast_mut().cast()
    }

    unsafe fn drop_raw(raw: *mut c_void) {
        // SAFETY: `raw` came from `into_raw`, whose count is given back here.
        let owner = unsafe { Owner::from_raw(raw) };
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
            Some(OwnerKind::Returned(_)) => "Owner(returned)",
            Some(OwnerKind::Elements(_)) => "Owner(elements)",
            Some(OwnerKind::Foreign(_)) => "Owner(foreign)",
            Some(OwnerKind::Both(_)) => "Owner(both)",
            Some(OwnerKind::Object(_)) => "Owner(object)",
            Some(OwnerKind::Range(_)) => "Owner(range)",
        })
    }
}
