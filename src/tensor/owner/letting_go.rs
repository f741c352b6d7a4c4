//! Letting go of memory: link by link, and after the work on it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::Kept;
use crate::memory::cuda::Order;

/// How many owners may let go one inside the other. A chain of arrays, each of which keeps the one before through an
/// owner of ours, is let go link by link; to do it all at once would take more stack than there is.
const DEPTH: u32 = 32;

/// What a thread knows of its owners that let go.
struct Here {
    /// How many are letting go.
    under_way: Cell<u32>,
    /// What waits until the outermost of them is done. Without a destructor: owners that are themselves in a thread's
    /// variables may let go after those of others are gone.
    waiting: RefCell<ManuallyDrop<Vec<Kept>>>,
    /// Whether anything waits, which it seldom does.
    any_waits: Cell<bool>,
}

thread_local! {
    // One variable: to find one takes longer than to read it.
    static HERE: Here = const {
        Here {
            under_way: Cell::new(0),
            waiting: RefCell::new(ManuallyDrop::new(Vec::new())),
            any_waits: Cell::new(false),
        }
    };
}

/// Counts an owner that lets go, for as long as it does, whatever happens in there.
struct LettingGo {
    is_outermost: bool,
}

impl LettingGo {
    /// `None` if as many are under way as there may be.
    fn begin() -> Option<LettingGo> {
        HERE.with(|here| {
            let depth = here.under_way.get();
            (depth < DEPTH).then(|| {
                here.under_way.set(depth + 1);
                LettingGo { is_outermost: depth == 0 }
            })
        })
    }
}

impl Drop for LettingGo {
    fn drop(&mut self) {
        HERE.with(|here| {
            let panic = if self.is_outermost && here.any_waits.get() { here.let_all_go() } else { None };
            here.under_way.set(here.under_way.get() - 1);
            // One that is on its way already goes on.
            if let Some(panic) = panic.filter(|_| !thread::panicking()) {
                resume_unwind(panic);
            }
        });
    }
}

impl Here {
    #[cold]
    fn wait(&self, kept: Kept) {
        self.waiting.borrow_mut().push(kept);
        self.any_waits.set(true);
    }

    /// One at a time: what is let go here may make others wait. One that panics keeps none of the others; the first panic is
    /// returned.
    #[cold]
    fn let_all_go(&self) -> Option<Box<dyn Any + Send>> {
        let mut panic = None;
        while let Some(next) = self.next() {
            let gone = catch_unwind(AssertUnwindSafe(|| drop(next)));
            panic = panic.or(gone.err());
        }
        panic
    }

    /// One of those that wait; when there are none any more, their list goes too.
    fn next(&self) -> Option<Kept> {
        let mut waiting = self.waiting.borrow_mut();
        let next = waiting.pop();
        if next.is_none() {
            **waiting = Vec::new();
            self.any_waits.set(false);
        }
        next
    }
}

/// Lets go at once.
pub(super) fn now(kept: Kept) {
    if matches!(kept, Kept::Block(_)) {
        // Keeps nobody else.
        return;
    }
    match LettingGo::begin() {
        Some(_counted) => drop(kept),
        None => HERE.with(|here| here.wait(kept)),
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
