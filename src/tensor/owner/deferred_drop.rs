//! Dropping owners: limits how deep drops nest, and waits for the work on their memory.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem::{ManuallyDrop, forget};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use super::OwnerKind;
use crate::memory::cuda::StreamUses;
use crate::memory::fork::ForkLock;

/// How many drops of owners may nest. In a chain of arrays, each of which owns the one before, the drop of one drops the next;
/// without a limit a long chain would overflow the stack.
const DEPTH: u32 = 32;

/// The drops of owners that run in a thread.
struct ThreadDrops {
    /// How many drops run now, nested in each other.
    depth: Cell<u32>,
    /// Owners to drop at the end of the outermost drop. Without a destructor: an owner in a thread-local variable may be
    /// dropped after this variable's own destructor would have run.
    waiting: RefCell<ManuallyDrop<Vec<OwnerKind>>>,
    /// Whether `waiting` has entries, which is rare.
    any_waits: Cell<bool>,
}

thread_local! {
    // One variable for all three: finding a thread-local costs more than reading it.
    static HERE: ThreadDrops = const {
        ThreadDrops {
            depth: Cell::new(0),
            waiting: RefCell::new(ManuallyDrop::new(Vec::new())),
            any_waits: Cell::new(false),
        }
    };
}

/// Counts one running drop, also if it panics.
struct DeferredDrop {
    is_outermost: bool,
}

impl DeferredDrop {
    /// Returns `None` at the limit.
    fn begin() -> Option<DeferredDrop> {
        HERE.with(|here| {
            let depth = here.depth.get();
            (depth < DEPTH).then(|| {
                here.depth.set(depth + 1);
                DeferredDrop { is_outermost: depth == 0 }
            })
        })
    }
}

impl Drop for DeferredDrop {
    fn drop(&mut self) {
        HERE.with(|here| {
            let panic = if self.is_outermost && here.any_waits.get() { here.drop_waiting() } else { None };
            here.depth.set(here.depth.get() - 1);
            // A second panic while unwinding would abort.
            if let Some(panic) = panic.filter(|_| !thread::panicking()) {
                resume_unwind(panic);
            }
        });
    }
}

impl ThreadDrops {
    #[cold]
    fn defer(&self, owner: OwnerKind) {
        self.waiting.borrow_mut().push(owner);
        self.any_waits.set(true);
    }

    /// Drops them one after the other, as a drop may defer more. A panic does not stop the rest; the first one is returned.
    #[cold]
    fn drop_waiting(&self) -> Option<Box<dyn Any + Send>> {
        let mut panic = None;
        while let Some(next) = self.next() {
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(next)));
            panic = panic.or(dropped.err());
        }
        panic
    }

    /// Takes one of the waiting owners; after the last one, the list's memory is freed.
    fn next(&self) -> Option<OwnerKind> {
        let mut waiting = self.waiting.borrow_mut();
        let next = waiting.pop();
        if next.is_none() {
            **waiting = Vec::new();
            self.any_waits.set(false);
        }
        next
    }
}

/// Drops an owner now, or at the end of the outermost drop.
pub(super) fn now(owner: OwnerKind) {
    if !owner.nests() {
        return;
    }
    match DeferredDrop::begin() {
        Some(_counted) => drop(owner),
        None => HERE.with(|here| here.defer(owner)),
    }
}

/// Owners that could not be dropped yet: during graph capture, or while other processes have their memory open. Later drops try again, the oldest first.
static LATER: ForkLock<VecDeque<(Box<StreamUses>, OwnerKind)>> = ForkLock::new(VecDeque::new());

/// How many of them each drop tries again.
const TRIED: usize = 4;

/// Drops an owner after the work on its memory is done.
#[cold]
pub(super) fn after_work(uses: Box<StreamUses>, owner: OwnerKind) {
    retry(TRIED);
    try_after_work(uses, owner);
}

/// Tries again to drop some of the owners that could not be dropped yet. Returns whether any was dropped.
pub(in crate::tensor) fn retry(count: usize) -> bool {
    let mut any = false;
    let waiting = LATER.with(|later| later.len()).unwrap_or(0);
    for _ in 0..count.min(waiting) {
        let oldest = LATER.with(VecDeque::pop_front).flatten();
        // Code of other libraries runs here, not under the lock.
        let Some((uses, owner)) = oldest else { break };
        any |= try_after_work(uses, owner);
    }
    any
}

/// Drops an owner, or keeps it for later if the work on its memory cannot be waited for now, or another process has it open. Returns whether it was dropped.
fn try_after_work(uses: Box<StreamUses>, owner: OwnerKind) -> bool {
    let done = uses.wait_before_free().is_ok() && owner.is_alone();
    if done {
        now(owner);
    } else {
        let mut waiting = Some((uses, owner));
        if LATER.with(|later| later.extend(waiting.take())).is_none() {
            // Never, then: in a child of `fork` that has lost the list, the work cannot be waited for either.
            forget(waiting);
        }
    }
    done
}

impl OwnerKind {
    /// Returns whether this may own another owner. Blocks and elements do not.
    #[inline]
    pub(super) fn nests(&self) -> bool {
        !matches!(self, OwnerKind::Block(_) | OwnerKind::Elements(_))
    }

    /// Returns whether no other process has the memory open, nor can open it any more.
    fn is_alone(&self) -> bool {
        match self {
            OwnerKind::Block(block) => block.is_alone(),
            _ => true,
        }
    }
}
