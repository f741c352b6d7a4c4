//! Large copies by several threads of a pool of rayon's.
//!
//! The pool is this crate's own, and nothing is done there but parts of copies. Who waits in rayon's common pool is given work
//! of the program meanwhile, which may wait for the copy in turn.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::convert::Conversion;
use super::host;
use super::plan::Plan;

/// From so many bytes on either side it pays to wake other threads.
const SHARED_FROM: usize = 2 << 20;

/// Parts for each thread: one that is late leaves less to wait for.
const PARTS: usize = 4;

/// Elements that are not divided among threads, so that no two write to the same cache line.
const TOGETHER: usize = 512;

/// The pool of [`set_num_threads`].
static POOL: RwLock<Option<Arc<ThreadPool>>> = RwLock::new(None);

/// The process that the pool's threads belong to: a child of a fork has none of them.
static HOME: OnceLock<u32> = OnceLock::new();

/// The pool where nobody has called it, of as many threads as `RAYON_NUM_THREADS` says, or there are cores; none if the
/// system has no threads to give.
static DEFAULT: OnceLock<Option<Arc<ThreadPool>>> = OnceLock::new();

/// How many threads large copies and fills are divided among: as many as `RAYON_NUM_THREADS` says, or there are cores, unless
/// [`set_num_threads`] has said otherwise. 1 in the child of a fork, where a pool would hang, and in threads of rayon's, which
/// are at parallel work already.
pub fn num_threads() -> usize {
    pool().map_or(1, |pool| pool.current_num_threads())
}

/// The pool that the calling thread may wait for.
fn pool() -> Option<Arc<ThreadPool>> {
    if home() != std::process::id() || rayon::current_thread_index().is_some() {
        return None;
    }
    let stated = POOL.read().unwrap_or_else(PoisonError::into_inner).clone();
    stated.or_else(|| DEFAULT.get_or_init(|| ThreadPoolBuilder::new().build().ok().map(Arc::new)).clone())
}

/// The process that may use the pools: the first that asked for threads or for their number.
fn home() -> u32 {
    *HOME.get_or_init(std::process::id)
}

/// Divides large copies and fills among so many threads from now on; 0 for as many as [`num_threads`] says
/// otherwise.
///
/// # Errors
/// The system has no more threads to give.
///
/// # Example
/// ```
/// dlfield::set_num_threads(2).unwrap();
/// assert_eq!(dlfield::num_threads(), 2);
/// ```
pub fn set_num_threads(threads: usize) -> Result<(), ThreadPoolBuildError> {
    home();
    let pool = match threads {
        0 => None,
        _ => Some(Arc::new(ThreadPoolBuilder::new().num_threads(threads).build()?)),
    };
    *POOL.write().unwrap_or_else(PoisonError::into_inner) = pool;
    Ok(())
}

/// What is to be done along a plan or a part of it, by several threads.
#[derive(Clone, Copy)]
struct Work {
    to: *mut u8,
    from: *const u8,
    /// Bytes of an element that is written.
    itemsize: usize,
    conversion: Conversion,
    /// Bytes that are written by all threads past what is in the caches.
    whole: usize,
}

// SAFETY: the threads write to different elements, and read what nobody writes.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Work {
    /// # Safety
    /// - As for [`copy`].
    unsafe fn follow(self, plan: &Plan) {
        let Work { to, from, itemsize, conversion, whole } = self;
        // SAFETY: passed on from the caller.
        unsafe {
            match itemsize {
                1 => host::follow::<1>(plan, to, from, conversion, whole),
                2 => host::follow::<2>(plan, to, from, conversion, whole),
                4 => host::follow::<4>(plan, to, from, conversion, whole),
                8 => host::follow::<8>(plan, to, from, conversion, whole),
                _ => host::follow::<16>(plan, to, from, conversion, whole),
            }
        }
    }
}

/// Follows a plan to elements of `itemsize` bytes. `fresh` memory that is written in order has just been cleared by the
/// system, and its pages lie in the caches: nothing is gained by going past those.
///
/// # Safety
/// - Every address the plan reaches from `to` is writable, and from `from` readable, for one element.
/// - What is read and what is written do not overlap.
pub(super) unsafe fn copy(
    plan: &Plan,
    to: *mut u8,
    from: *const u8,
    itemsize: usize,
    conversion: Conversion,
    fresh: bool,
) {
    let from_itemsize = match conversion {
        Conversion::None => itemsize,
        Conversion::Convert { itemsize, .. } => itemsize,
    };
    let whole = plan.elements().saturating_mul(itemsize);
    let work = Work { to, from, itemsize, conversion, whole: if fresh { 0 } else { whole } };
    let moved = plan.elements().saturating_mul(itemsize.max(from_itemsize));
    let pool = if moved < SHARED_FROM || !plan.is_apart(itemsize) { None } else { pool() };
    let divided = pool.filter(|pool| pool.current_num_threads() > 1).and_then(|pool| {
        let parts = divide(plan, from_itemsize, pool.current_num_threads() * PARTS);
        parts.map(|parts| (pool, parts))
    });
    let Some((pool, (position, ranges))) = divided else {
        // SAFETY: passed on from the caller.
        return unsafe { work.follow(plan) };
    };
    pool.install(|| {
        ranges.into_par_iter().for_each(|range| {
            // SAFETY: passed on from the caller; the parts have no element in common.
            unsafe { work.follow(&plan.part(position, range)) };
        });
    });
}

/// Which loop to divide, and into which ranges; `None` where there is nothing to divide.
fn divide(plan: &Plan, from_itemsize: usize, parts: usize) -> Option<(usize, Vec<Range<usize>>)> {
    let (inner, outer) = plan.steps.split_last()?;
    // The outermost that has enough turns and is no run of memory on either side; else the longest, in pieces that share
    // no cache line.
    let enough = outer.iter().position(|step| step.count >= parts && step.from.unsigned_abs() != from_itemsize);
    let longest = (0..plan.steps.len()).max_by_key(|position| plan.steps[*position].count)?;
    let (position, unit) = match enough {
        Some(position) => (position, 1),
        None if longest == outer.len() => (longest, TOGETHER),
        None => (longest, 1),
    };
    let count = if position == outer.len() { inner.count } else { outer[position].count };
    let each = count.div_ceil(parts).next_multiple_of(unit);
    (each < count).then(|| (position, (0..count).step_by(each).map(|start| start..(start + each).min(count)).collect()))
}
