//! Freed small host blocks are kept with their owner for reuse: the C library's allocator takes several times as long as the
//! rest of an allocation to merge and to split blocks of more than 1 KiB, and making an owner takes as long as filling one in.
//!
//! Each thread has a cache of its own, which needs no lock; it ends with its thread.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use super::{OwnerInner, OwnerKind};
use crate::memory::counters::{Counter, Totals};
use crate::memory::fork_lock::ForkLock;
use crate::memory::{Contents, LARGEST_SMALL as LARGEST};

/// Bytes of all blocks in the cache of a thread.
const CAPACITY: usize = 512 << 10;

/// Blocks of one size in the cache of a thread.
const DEPTH: usize = 16;

/// Lists in the cache of a thread. Blocks of two sizes that share a list displace each other. Modulo this prime number, all
/// powers of two up to the largest size differ.
const LISTS: usize = 37;

thread_local! {
    static CACHE: RefCell<SmallBlocks> = const { RefCell::new(SmallBlocks::new()) };
}

/// Unused blocks of a thread.
struct SmallBlocks {
    lists: [List; LISTS],
    /// Bytes of all of them.
    bytes: usize,
    /// How many they are, with the bytes that were requested, also where other threads read it once there was any.
    kept: Totals,
    counter: Option<Arc<Counter>>,
}

/// The counters of all threads that keep blocks.
static COUNTERS: ForkLock<Vec<Weak<Counter>>> = ForkLock::new(Vec::new());

/// Returns the blocks that all threads keep. They count as live where blocks are counted.
pub(super) fn kept() -> Totals {
    let add = |sum: Totals, kept: Totals| Totals { blocks: sum.blocks + kept.blocks, bytes: sum.bytes + kept.bytes };
    let read = |counters: &mut Vec<Weak<Counter>>| {
        counters.iter().filter_map(Weak::upgrade).map(|counter| counter.read()).fold(Totals::default(), add)
    };
    COUNTERS.with(read).unwrap_or_default()
}

/// Size and alignment of a block in bytes, as they were requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Size {
    bytes: usize,
    alignment: usize,
}

/// Unused blocks of one size, the newest last: its memory is still in the processor's caches.
struct List {
    size: Size,
    /// Each has one owner, the list, and is of the kind `Block`.
    owners: Vec<Arc<OwnerInner>>,
}

/// Takes a block out of the cache of this thread: its owner and its address.
#[inline]
pub(super) fn take(bytes: usize, alignment: usize, contents: Contents) -> Option<(Arc<OwnerInner>, *mut u8)> {
    // A thread that is about to end has no cache any more.
    let taken = CACHE.try_with(|cache| cache.try_borrow_mut().ok()?.take(Size { bytes, alignment }));
    let mut owner = taken.ok().flatten()?;
    let inner = Arc::get_mut(&mut owner)?;
    *inner.exported.get_mut() = false;
    // It still counts a guard that was forgotten.
    *inner.readers.get_mut() = 0;
    let OwnerKind::Block(block) = &mut *inner.kind else { return None };
    if contents == Contents::Zeros {
        block.clear_host();
    }
    let start = block.as_ptr();
    Some((owner, start))
}

/// Whether [`put`] may keep this owner: nobody shares it, and it owns a block.
#[inline]
pub(super) fn may_keep(owner: &Arc<OwnerInner>) -> bool {
    Arc::strong_count(owner) == 1 && matches!(*owner.kind, OwnerKind::Block(_))
}

/// Puts an owner that nobody shares into the cache of this thread, if it owns a small host block. Drops other owners.
// Not inline: the drop of owners that are not kept takes less time without the registers that this needs.
#[inline(never)]
pub(super) fn put(owner: Arc<OwnerInner>) {
    let OwnerKind::Block(block) = &*owner.kind else { return };
    let size = Size { bytes: block.len(), alignment: block.alignment() };
    // There are no weak references, so the only owner stays the only one. `take` looks again, in a way that makes the work of
    // other threads on the memory visible here.
    if block.is_on_host() && size.all() <= LARGEST && owner.uses.own().is_none() {
        let _ = CACHE.try_with(|cache| cache.try_borrow_mut().map(|mut cache| cache.put(size, owner)));
    }
}

impl Size {
    const NONE: Size = Size { bytes: 0, alignment: 0 };

    /// Bytes that were allocated.
    fn all(self) -> usize {
        self.bytes.saturating_add(self.alignment)
    }
}

impl SmallBlocks {
    const fn new() -> SmallBlocks {
        SmallBlocks {
            lists: [const { List { size: Size::NONE, owners: Vec::new() } }; LISTS],
            bytes: 0,
            kept: Totals { blocks: 0, bytes: 0 },
            counter: None,
        }
    }

    /// Returns the list of blocks of this size, which may have blocks of another one.
    fn list(&mut self, size: Size) -> &mut List {
        &mut self.lists[size.bytes / 8 % LISTS]
    }

    fn take(&mut self, size: Size) -> Option<Arc<OwnerInner>> {
        let list = self.list(size);
        if list.size != size {
            return None;
        }
        let owner = list.owners.pop()?;
        self.bytes -= size.all();
        self.count(Totals { blocks: self.kept.blocks - 1, bytes: self.kept.bytes - size.bytes });
        Some(owner)
    }

    fn put(&mut self, size: Size, owner: Arc<OwnerInner>) {
        if self.list(size).size != size {
            self.empty_list_for(size);
        }
        if self.bytes + size.all() <= CAPACITY && self.list(size).owners.len() < DEPTH {
            self.list(size).owners.push(owner);
            self.bytes += size.all();
            self.count(Totals { blocks: self.kept.blocks + 1, bytes: self.kept.bytes + size.bytes });
        }
    }

    /// Frees the blocks of another size whose list is that of `size`.
    #[cold]
    fn empty_list_for(&mut self, size: Size) {
        let list = self.list(size);
        let (freed, of) = (list.owners.len(), list.size);
        list.owners.clear();
        list.size = size;
        self.bytes -= of.all() * freed;
        self.count(Totals { blocks: self.kept.blocks - freed, bytes: self.kept.bytes - of.bytes * freed });
    }

    #[inline]
    fn count(&mut self, kept: Totals) {
        self.kept = kept;
        match &self.counter {
            Some(counter) => counter.set(kept),
            None => self.begin_to_count(),
        }
    }

    #[cold]
    fn begin_to_count(&mut self) {
        // Not waited for: in a child of `fork`, a thread of the parent may have it for ever.
        self.counter = COUNTERS.try_with(|counters| {
            let counter = Arc::new(Counter::new());
            counter.set(self.kept);
            counters.retain(|counter| counter.strong_count() > 0);
            counters.push(Arc::downgrade(&counter));
            counter
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owner;
    use super::*;
    use crate::device::Device;
    use crate::memory::Block;

    /// Whether every byte of all lists is counted, and none holds too much.
    fn is_consistent(cache: &SmallBlocks) -> bool {
        let bytes: usize = cache.lists.iter().map(|list| list.size.all() * list.owners.len()).sum();
        let short = |list: &List| list.owners.len() <= DEPTH;
        bytes == cache.bytes && bytes <= CAPACITY && cache.lists.iter().all(short)
    }

    const fn size(bytes: usize) -> Size {
        Size { bytes, alignment: 64 }
    }

    fn owner(bytes: usize) -> Arc<OwnerInner> {
        let block = Block::allocate(Device::CPU, bytes, 64, Contents::Undefined).expect("small");
        OwnerInner::new(OwnerKind::Block(block)).expect("an owner")
    }

    /// An owner of a block that comes from the cache if it has one, and the block's bytes.
    fn allocated<'m>(bytes: usize, contents: Contents) -> (Owner, &'m mut [u8]) {
        let (owner, start) = Owner::allocate(Device::CPU, bytes, 64, contents).expect("small");
        // SAFETY: the tests use the bytes while they have the owner only, and write undefined ones before they read them.
        #[allow(unsafe_code, reason = "the owner has no elements")]
        (owner, unsafe { std::slice::from_raw_parts_mut(start, bytes) })
    }

    #[test]
    fn the_newest_block_of_a_size_comes_back() {
        let mut cache = SmallBlocks::new();
        assert!(cache.take(size(4096)).is_none());
        let owners = [owner(4096), owner(4096)];
        let newest = Arc::as_ptr(&owners[1]);
        owners.into_iter().for_each(|owner| cache.put(size(4096), owner));
        assert!(cache.take(size(4104)).is_none());
        assert!(cache.take(Size { bytes: 4096, alignment: 128 }).is_none());
        assert_eq!(cache.take(size(4096)).map(|owner| Arc::as_ptr(&owner)), Some(newest));
        assert!(is_consistent(&cache) && cache.take(size(4096)).is_some() && cache.take(size(4096)).is_none());
        assert_eq!(cache.bytes, 0);
    }

    #[test]
    fn little_is_kept_of_any_sizes() {
        let mut cache = SmallBlocks::new();
        for round in 0..4 * DEPTH {
            for bytes in (0..=LARGEST).step_by(1000 + round) {
                cache.put(size(bytes), owner(bytes));
                assert!(is_consistent(&cache), "{bytes} bytes in round {round}");
            }
        }
        for _ in 0..2 * DEPTH {
            cache.put(size(LARGEST), owner(LARGEST));
        }
        assert!(is_consistent(&cache));
    }

    #[test]
    fn usual_sizes_do_not_displace_each_other() {
        let mut cache = SmallBlocks::new();
        let sizes = || (2..16).map(|power| 1 << power);
        sizes().for_each(|bytes| cache.put(size(bytes), owner(bytes)));
        assert!(sizes().all(|bytes| cache.take(size(bytes)).is_some()));
    }

    #[test]
    fn zeros_are_zero_in_used_memory_too() {
        for bytes in [1, 63, 64, 4000, 4096, 60_000, 100_000] {
            for _ in 0..4 {
                let (_owner, memory) = allocated(bytes, Contents::Zeros);
                assert!(memory.iter().all(|byte| *byte == 0), "{bytes} bytes");
                memory.fill(0xA5);
            }
        }
    }

    #[test]
    fn shared_memory_comes_back_after_its_last_owner_only_and_without_its_mark() {
        let (first, memory) = allocated(4096, Contents::Undefined);
        let (second, start) = (first.clone(), memory.as_ptr());
        assert!(first.mark_exported());
        drop(first);
        assert_ne!(allocated(4096, Contents::Undefined).1.as_ptr(), start);
        drop(second);
        let (again, memory) = allocated(4096, Contents::Undefined);
        assert_eq!(memory.as_ptr(), start);
        assert!(again.check_not_exported().is_ok());
    }

    #[test]
    fn kept_blocks_are_counted_also_while_another_thread_counts_them() {
        drop(allocated(4096, Contents::Undefined));
        let (begin, begun) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let counting = move |_: &mut Vec<Weak<Counter>>| {
                begin.send(()).expect("the test waits");
                std::thread::sleep(std::time::Duration::from_millis(20));
            };
            scope.spawn(move || COUNTERS.with(counting));
            begun.recv().expect("the thread counts");
            assert!(kept().bytes >= 4096);
        });
    }

    #[test]
    fn large_blocks_and_memory_of_others_are_freed() {
        drop(allocated(LARGEST, Contents::Undefined));
        drop(Owner::foreign(()));
        CACHE.with_borrow(|cache| assert_eq!(cache.bytes, 0));
    }

    #[test]
    fn a_thread_that_ends_frees_its_blocks_and_may_still_allocate() {
        /// Allocates and frees while the variables of the thread are dropped.
        struct Late;

        impl Drop for Late {
            fn drop(&mut self) {
                drop(allocated(4096, Contents::Zeros));
            }
        }

        thread_local! {
            static LATE: Late = const { Late };
        }
        std::thread::spawn(|| {
            LATE.with(|_| ());
            drop(allocated(4096, Contents::Zeros));
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_block_may_be_freed_in_another_thread() {
        let (owner, _) = allocated(4096, Contents::Zeros);
        std::thread::spawn(|| drop(owner)).join().expect("no panic");
    }
}
