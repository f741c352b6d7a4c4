//! Letting go of memory: link by link, and after the work on it.

use std::cell::{Cell, RefCell};
use std::sync::{Mutex, PoisonError};

use super::Kept;
use crate::memory::cuda::Order;

/// How many owners may let go one inside the other. A chain of arrays, each of which keeps the one before through an
/// owner of ours, is let go link by link; to do it all at once would take more stack than there is.
const DEPTH: u32 = 32;

thread_local! {
    /// How many owners are letting go in this thread.
    static UNDER_WAY: Cell<u32> = const { Cell::new(0) };
    /// What waits until the outermost of them is done.
    static WAITING: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// Counts an owner that lets go, for as long as it does, whatever happens in there.
struct LettingGo;

impl Drop for LettingGo {
    fn drop(&mut self) {
        let _ = UNDER_WAY.try_with(|count| count.set(count.get() - 1));
    }
}

/// Lets go at once.
pub(super) fn now(kept: Kept) {
    if matches!(kept, Kept::Block(_)) {
        // Keeps nobody else.
        return;
    }
    // A thread that is about to end counts no more.
    let depth = UNDER_WAY.try_with(|count| count.replace(count.get() + 1)).unwrap_or(0);
    let counted = LettingGo;
    if depth >= DEPTH {
        let mut kept = Some(kept);
        let _ = WAITING.try_with(|waiting| waiting.borrow_mut().extend(kept.take()));
        return;
    }
    drop(kept);
    if depth == 0 {
        // One at a time: what is let go here may make others wait.
        while let Ok(Some(next)) = WAITING.try_with(|waiting| waiting.borrow_mut().pop()) {
            drop(next);
        }
    }
    drop(counted);
}

/// What could not be let go yet, as work on it is being recorded as a graph: tried again with the next.
static LATER: Mutex<Vec<(Box<Order>, Kept)>> = Mutex::new(Vec::new());

/// Lets go after the work on the memory.
#[cold]
pub(super) fn in_order(order: Box<Order>, kept: Kept) {
    let mut waiting = std::mem::take(&mut *LATER.lock().unwrap_or_else(PoisonError::into_inner));
    waiting.push((order, kept));
    for (order, kept) in waiting {
        if order.settle() {
            now(kept);
        } else {
            LATER.lock().unwrap_or_else(PoisonError::into_inner).push((order, kept));
        }
    }
}
