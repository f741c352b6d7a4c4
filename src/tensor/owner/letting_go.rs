//! Letting go of memory: link by link, and after the work on it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Kept;
use crate::memory::cuda::Order;

/// How many owners may let go one inside the other. A chain of arrays, each of which keeps the one before through an
/// owner of ours, is let go link by link; to do it all at once would take more stack than there is.
const DEPTH: u32 = 32;

thread_local! {
    /// How many owners are letting go in this thread.
    static UNDER_WAY: Cell<u32> = const { Cell::new(0) };
    /// What waits until the outermost of them is done. Without a destructor: owners that are themselves in a thread's
    /// variables may let go after those of others are gone.
    static WAITING: RefCell<ManuallyDrop<Vec<Kept>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Counts an owner that lets go, for as long as it does, whatever happens in there.
struct LettingGo {
    is_outermost: bool,
}

impl LettingGo {
    /// `None` if as many are under way as there may be.
    fn begin() -> Option<LettingGo> {
        let depth = UNDER_WAY.get();
        (depth < DEPTH).then(|| {
            UNDER_WAY.set(depth + 1);
            LettingGo { is_outermost: depth == 0 }
        })
    }
}

impl Drop for LettingGo {
    fn drop(&mut self) {
        if self.is_outermost {
            // One at a time: what is let go here may make others wait.
            while let Some(next) = next() {
                drop(next);
            }
        }
        UNDER_WAY.set(UNDER_WAY.get() - 1);
    }
}

/// One of those that wait; when there are none any more, their list goes too.
fn next() -> Option<Kept> {
    WAITING.with_borrow_mut(|waiting| {
        let next = waiting.pop();
        if next.is_none() && waiting.capacity() > 0 {
            **waiting = Vec::new();
        }
        next
    })
}

/// Lets go at once.
pub(super) fn now(kept: Kept) {
    if matches!(kept, Kept::Block(_)) {
        // Keeps nobody else.
        return;
    }
    match LettingGo::begin() {
        Some(_counted) => drop(kept),
        None => WAITING.with_borrow_mut(|waiting| waiting.push(kept)),
    }
}

/// What could not be let go yet, as work on it is being recorded as a graph, say. Tried again with the next, the oldest first.
static LATER: Mutex<VecDeque<(Box<Order>, Kept)>> = Mutex::new(VecDeque::new());

/// How many of those that wait are tried again with each that is let go.
const TRIED: usize = 4;

/// Lets go after the work on the memory.
#[cold]
pub(super) fn in_order(order: Box<Order>, kept: Kept) {
    again(TRIED);
    settle(order, kept);
}

/// Tries again to let go of some of what could not go yet. Whether any went.
pub(in crate::tensor) fn again(count: usize) -> bool {
    let mut any = false;
    // In a statement of its own, so that the lock is not held for the loop.
    let waiting = later().len();
    for _ in 0..count.min(waiting) {
        // Nobody's code runs under the lock.
        let oldest = later().pop_front();
        let Some((order, kept)) = oldest else { break };
        any |= settle(order, kept);
    }
    any
}

/// Lets go of memory, unless there is work on it that nothing can wait for.
fn settle(order: Box<Order>, kept: Kept) -> bool {
    let settled = order.settle().is_ok();
    if settled {
        now(kept);
    } else {
        later().push_back((order, kept));
    }
    settled
}

fn later() -> MutexGuard<'static, VecDeque<(Box<Order>, Kept)>> {
    LATER.lock().unwrap_or_else(PoisonError::into_inner)
}
