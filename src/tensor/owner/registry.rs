//! The list of large blocks, for a report of the memory. Small ones are only counted: entering them here would take as long as
//! allocating them.

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::{Owner, OwnerInner, OwnerKind};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::layout::extents::Extents;
use crate::memory::fork::ForkLock;
use crate::memory::{Block, Totals, counted};

/// A live block that dlfield has allocated.
#[derive(Clone, Debug)]
pub struct BlockInfo {
    /// Address of the first byte.
    pub address: usize,
    /// Bytes that were requested.
    pub bytes: usize,
    /// Device of the memory.
    pub device: Device,
    /// The field that it was allocated for; `None` if it is not known.
    pub field: Option<BlockField>,
    /// How many tensors, views and exports share it.
    pub owners: usize,
    /// Whether another library, or another process, has had access to it.
    pub exported: bool,
}

/// What a block was allocated for.
#[derive(Clone, Debug)]
pub struct BlockField {
    /// Bytes of the elements.
    pub nbytes: i64,
    /// Extents.
    pub shape: Extents,
    /// Element type.
    pub dtype: DType,
    /// Labels.
    pub dims: Dims,
}

/// What [`report`] returns.
#[derive(Clone, Debug)]
pub struct MemoryReport {
    /// All large blocks, by address.
    pub blocks: Vec<BlockInfo>,
    /// Blocks up to 64 KiB on the host, which are not listed.
    pub small: Totals,
    /// Large blocks according to the allocation counters. Blocks that wait to be freed, for the work of a device or
    /// for other processes, are not listed.
    pub large: Totals,
    /// Bytes of freed blocks that are kept for reuse.
    pub cached_bytes: usize,
}

/// The entries by the address of their owner's shared part, which removes them before it is freed. Once the list is given up,
/// nobody reads it, so that entries need not be removed.
static LIST: ForkLock<BTreeMap<usize, BlockInfo>> = ForkLock::new(BTreeMap::new());

/// Enters the block of a new owner.
#[cold]
pub(super) fn enter(owner: &Arc<OwnerInner>, device: Device) {
    let OwnerKind::Block(block) = &*owner.kind else { return };
    let info = BlockInfo {
        address: block.as_ptr().addr(),
        bytes: block.len(),
        device,
        field: None,
        owners: 0,
        exported: false,
    };
    LIST.with(|list| list.insert(Arc::as_ptr(owner).expose_provenance(), info));
}

/// Removes the block of an owner that is being dropped, unless it is small.
#[inline]
pub(super) fn remove(owner: &OwnerInner, block: &Block) {
    if !block.is_small() {
        LIST.with(|list| list.remove(&std::ptr::from_ref(owner).addr()));
    }
}

/// Takes the content out of an owner if it is the only one, and removes its entry.
pub(super) fn into_inner(owner: Arc<OwnerInner>) -> Option<OwnerInner> {
    let key = Arc::as_ptr(&owner).addr();
    let mut owner = Some(owner);
    let taken = LIST.with(|list| {
        let inner = owner.take().and_then(Arc::into_inner);
        if inner.is_some() {
            list.remove(&key);
        }
        inner
    });
    // Where the list is not used, nothing reads its entries.
    taken.unwrap_or_else(|| owner.take().and_then(Arc::into_inner))
}

impl Owner {
    /// Says for which field the block was allocated.
    #[inline(always)]
    pub(in crate::tensor) fn describe_block(&self, field: &Descriptor) {
        if let Some(inner) = &self.0
            && matches!(&*inner.kind, OwnerKind::Block(block) if !block.is_small())
        {
            describe(inner, field);
        }
    }
}

#[cold]
fn describe(owner: &Arc<OwnerInner>, field: &Descriptor) {
    LIST.with(|list| {
        if let Some(entry) = list.get_mut(&Arc::as_ptr(owner).addr()) {
            entry.field = Some(BlockField {
                nbytes: field.nbytes(),
                shape: Extents::from_slice(field.shape()),
                dtype: field.dtype(),
                dims: field.dims().cloned().unwrap_or_else(|| Dims::standard(field.ndim())),
            });
        }
    });
}

/// Lists all large blocks, and counts all others. Other threads may allocate meanwhile.
pub fn report() -> MemoryReport {
    #[allow(unsafe_code, reason = "the owners of the list's entries are only looked at")]
    let read = |(key, entry): (&usize, &BlockInfo)| {
        let inner = std::ptr::with_exposed_provenance::<OwnerInner>(*key);
        // SAFETY: the owner removes its entry before it is freed, for which it has to wait for this function. It may be in its
        // drop: so of the shared part no more is looked at than the counts, by a `Weak`, and the mark, which nobody changes
        // then. The count that the `Weak` stands for is not given back.
        let (owners, mark) = unsafe { (ManuallyDrop::new(Weak::from_raw(inner)).strong_count(), &(*inner).exported) };
        let exported = mark.load(Ordering::Relaxed);
        BlockInfo { owners, exported, ..entry.clone() }
    };
    let listed = LIST.with(|list| list.iter().map(read).collect::<Vec<_>>());
    let mut blocks = listed.unwrap_or_default();
    // A block whose last owner is going is no longer used.
    blocks.retain(|block| block.owners > 0);
    blocks.sort_by_key(|block| block.address);
    let (small, large, cached_bytes) = counted();
    MemoryReport { blocks, small, large, cached_bytes }
}
