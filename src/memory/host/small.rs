//! Blocks of at most 64 KiB, those for their alignment included. Freed ones are kept for reuse: the C library's allocator takes
//! several times as long as the rest of an allocation to merge and to split blocks of more than 1 KiB.
//!
//! - Blocks are of size classes, four for each power of two: at most a fifth of a block is not used.
//! - A thread keeps the blocks that it frees, up to [`CAPACITY`], and frees them when it ends. So this needs no lock, and a child
//!   of `fork` has the blocks of the thread that forked.
//! - A thread counts what it allocates less what it frees, modulo 2^64. The sum over all threads is what lives.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::allocator_block::AllocatorBlock;
use crate::memory::counters::Counter;
use crate::memory::fork::ForkLock;
use crate::memory::{Contents, Totals};

/// Bytes of the largest block.
pub(in crate::memory) const LARGEST: usize = 64 << 10;

/// Bytes of all blocks that a thread keeps.
const CAPACITY: usize = 512 << 10;

const CLASSES: usize = class_of(LARGEST) + 1;

thread_local! {
    static POOL: RefCell<Pool> = RefCell::new(Pool::new());
}

/// The blocks that a thread keeps.
struct Pool {
    /// By class, the newest last: its memory is still in the processor's caches.
    classes: [Vec<AllocatorBlock>; CLASSES],
    counts: Arc<Counts>,
}

/// Numbers that one thread writes and others read.
#[derive(Default)]
struct Counts {
    live: Counter,
    /// Bytes of the blocks that are kept.
    kept: AtomicUsize,
}

/// The counts of all threads. A new thread goes on with those of one that has ended.
static COUNTS: ForkLock<Vec<Arc<Counts>>> = ForkLock::new(Vec::new());

/// Counts for threads that have no pool any more, as they are about to end.
static ENDING: Counter = Counter::new();

/// Returns the class of blocks of at least this many bytes.
const fn class_of(bytes: usize) -> usize {
    let last = if bytes > 32 { bytes - 1 } else { 32 };
    let power = last.ilog2() as usize;
    (power - 5) * 4 + (last >> (power - 2)) % 4
}

/// Returns the bytes of each block of a class.
const fn bytes_of(class: usize) -> usize {
    (class % 4 + 5) << (class / 4 + 3)
}

/// Allocates a block of at least `all` bytes, of which `bytes` are counted; returns whether it was used before, too.
#[inline]
pub(super) fn allocate(bytes: usize, all: usize, contents: Contents) -> Option<(AllocatorBlock, bool)> {
    let class = class_of(all);
    POOL.try_with(|pool| pool.borrow_mut().allocate(bytes, class, contents)).unwrap_or_else(|_| {
        let block = AllocatorBlock::allocate(bytes_of(class), contents)?;
        ENDING.add(bytes);
        Some((block, false))
    })
}

/// Frees a block of [`allocate`].
#[inline]
pub(super) fn free(bytes: usize, block: AllocatorBlock) {
    if POOL.try_with(move |pool| pool.borrow_mut().free(bytes, block)).is_err() {
        ENDING.remove(bytes);
    }
}

/// Returns the blocks that live, and the bytes of those that threads keep.
pub(in crate::memory) fn counted() -> (Totals, usize) {
    let threads = COUNTS.with(|threads| threads.clone()).unwrap_or_default();
    threads.iter().fold((ENDING.read(), 0), |(live, kept), counts| {
        let Totals { blocks, bytes } = counts.live.read();
        let live = Totals { blocks: live.blocks.wrapping_add(blocks), bytes: live.bytes.wrapping_add(bytes) };
        (live, kept + counts.kept.load(Ordering::Relaxed))
    })
}

impl Pool {
    fn new() -> Pool {
        let counts = COUNTS.with(|threads| {
            // Exclusive where the thread has ended.
            let ended = threads.iter_mut().position(|counts| Arc::get_mut(counts).is_some());
            let position = ended.unwrap_or(threads.len());
            if ended.is_none() {
                threads.push(Arc::default());
            }
            Arc::clone(&threads[position])
        });
        // Where the list is given up, nobody reads them.
        Pool { classes: [const { Vec::new() }; CLASSES], counts: counts.unwrap_or_default() }
    }

    #[inline]
    fn allocate(&mut self, bytes: usize, class: usize, contents: Contents) -> Option<(AllocatorBlock, bool)> {
        let (block, was_used) = match self.classes[class].pop() {
            Some(block) => (block, true),
            None => (AllocatorBlock::allocate(bytes_of(class), contents)?, false),
        };
        if was_used {
            self.counts.kept.store(self.kept() - block.len(), Ordering::Relaxed);
        }
        self.counts.live.add_alone(bytes);
        Some((block, was_used))
    }

    #[inline]
    fn free(&mut self, bytes: usize, block: AllocatorBlock) {
        self.counts.live.remove_alone(bytes);
        let kept = self.kept() + block.len();
        if kept <= CAPACITY {
            self.counts.kept.store(kept, Ordering::Relaxed);
            self.classes[class_of(block.len())].push(block);
        }
    }

    #[inline]
    fn kept(&self) -> usize {
        self.counts.kept.load(Ordering::Relaxed)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.counts.kept.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: usize) -> AllocatorBlock {
        allocate(bytes, bytes, Contents::Undefined).expect("small").0
    }

    #[test]
    fn classes_cover_all_sizes_and_waste_a_fifth_at_most() {
        assert!((0..CLASSES).all(|class| class_of(bytes_of(class)) == class));
        assert!((1..=LARGEST).all(|bytes| bytes_of(class_of(bytes)) >= bytes));
        assert!((33..=LARGEST).all(|bytes| bytes_of(class_of(bytes)) * 4 < bytes * 5));
        assert_eq!(bytes_of(CLASSES - 1), LARGEST);
    }

    #[test]
    fn the_newest_block_of_a_class_comes_back() {
        let [first, second] = [block(4000), block(4000)];
        let newest = second.base();
        free(4000, first);
        free(4000, second);
        assert_ne!(block(5000).base(), newest);
        assert_eq!(block(4096).base(), newest);
    }

    #[test]
    fn a_thread_keeps_no_more_than_its_limit_and_nothing_at_its_end() {
        let of_this_thread = || POOL.with_borrow(|pool| Arc::clone(&pool.counts));
        let counts = std::thread::spawn(move || {
            let blocks: Vec<_> =
                (0..20).flat_map(|_| [LARGEST, LARGEST / 2]).map(|bytes| (bytes, block(bytes))).collect();
            blocks.into_iter().for_each(|(bytes, block)| free(bytes, block));
            let counts = of_this_thread();
            let kept = counts.kept.load(Ordering::Relaxed);
            assert!(kept <= CAPACITY && kept > CAPACITY - LARGEST, "{kept}");
            counts
        });
        let counts = counts.join().expect("no panic");
        assert_eq!(counts.kept.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_block_is_counted_off_in_the_thread_that_frees_it_also_at_its_end() {
        /// Frees and allocates while the variables of the thread are dropped.
        struct Late(Option<AllocatorBlock>);

        impl Drop for Late {
            fn drop(&mut self) {
                self.0.take().into_iter().for_each(|block| free(123, block));
                free(456, block(456));
            }
        }

        thread_local! {
            static LATE: RefCell<Late> = const { RefCell::new(Late(None)) };
        }
        let late = block(123);
        std::thread::spawn(move || {
            LATE.with_borrow_mut(|kept| kept.0 = Some(late));
            free(789, block(789));
        })
        .join()
        .expect("no panic");
    }
}
