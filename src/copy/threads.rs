//! Divides large copies among the threads of a rayon pool.
//!
//! The pool belongs to this crate and runs only parts of copies: a thread that waits in rayon's global pool runs other work of
//! the program meanwhile, and that may wait for the copy in turn.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::convert::Conversion;
use super::plan::Plan;
use super::{host, parts};
use crate::memory::fork::this_process;

/// From this many bytes on either side, copies are divided if the other threads are awake.
const DIVIDE_MIN_BYTES: usize = 3 << 17;

/// From this many bytes on, it pays to wake them: the system call alone takes as long as copying half of these bytes.
const WAKE_MIN_BYTES: usize = 1 << 20;

/// A thread of the pool that runs out of work looks for more for about 100 µs before it sleeps. A copy that begins this soon
/// after another one finds it awake, or is one of many, so that it pays to wake it once.
const AWAKE_NANOSECONDS: u64 = 50_000;

/// Parts per thread: with several, a slow thread delays the end less.
const PARTS: usize = 4;

/// Loops over contiguous elements are divided at multiples of this number, so that no two threads write to one cache line.
const TOGETHER: usize = 512;

/// The pool set by [`set_num_threads`].
static POOL: RwLock<Option<Arc<ThreadPool>>> = RwLock::new(None);

/// When the last copy that could be divided ended. A race between threads costs only time.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The process of the pools' threads: the first that asked for threads or for their number. A fork's child has none of them, and
/// there a lock of the pools may stay locked for ever.
static HOME: AtomicU32 = AtomicU32::new(0);

/// The default pool, with `RAYON_NUM_THREADS` threads, or one per core; `None` if the system cannot start them.
static DEFAULT: OnceLock<Option<Arc<ThreadPool>>> = OnceLock::new();

/// Returns the number of threads for large copies and fills: `RAYON_NUM_THREADS`, or the number of cores, unless
/// [`set_num_threads`] was called. It is 1 in the child of a fork, where a pool would hang, and in rayon's threads, which run
/// in parallel already.
///
/// # Example
/// ```
/// assert!(dlfield::num_threads() >= 1);
/// ```
pub fn num_threads() -> usize {
    pool().map_or(1, |pool| pool.current_num_threads())
}

/// Returns whether this process has the pools' threads, or may start them.
fn is_home() -> bool {
    let this = this_process();
    HOME.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|home| home == this, |_| true)
}

/// Returns the pool that the calling thread may wait for.
fn pool() -> Option<Arc<ThreadPool>> {
    if !is_home() || rayon::current_thread_index().is_some() {
        return None;
    }
    let configured = POOL.read().unwrap_or_else(PoisonError::into_inner).clone();
    configured.or_else(|| DEFAULT.get_or_init(|| ThreadPoolBuilder::new().build().ok().map(Arc::new)).clone())
}

/// Threads that the system cannot start.
///
/// # Example
/// ```no_run
/// if let Err(error) = dlfield::set_num_threads(1000) {
///     eprintln!("copies use {} threads: {error}", dlfield::num_threads());
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ThreadError(ThreadPoolBuildError);

/// Sets the number of threads for large copies and fills; 0 restores the default of [`num_threads`]. It does nothing in the child
/// of a fork, which copies alone, if the parent has asked for threads or for their number.
///
/// # Errors
/// [`ThreadError`] if the system cannot start that many threads.
///
/// # Example
/// ```
/// dlfield::set_num_threads(2).unwrap();
/// assert_eq!(dlfield::num_threads(), 2);
/// ```
pub fn set_num_threads(threads: usize) -> Result<(), ThreadError> {
    if !is_home() {
        return Ok(());
    }
    let pool = match threads {
        0 => None,
        _ => Some(Arc::new(ThreadPoolBuilder::new().num_threads(threads).build().map_err(ThreadError)?)),
    };
    *POOL.write().unwrap_or_else(PoisonError::into_inner) = pool;
    Ok(())
}

/// A copy along a plan, or part of one, by several threads.
#[derive(Clone, Copy)]
struct Work {
    to: *mut u8,
    from: *const u8,
    /// Bytes of an element in the destination.
    itemsize: usize,
    conversion: Conversion,
    /// Bytes that all threads write, which decide on non-temporal stores; 0 for ordinary ones.
    whole: usize,
}

// SAFETY: the threads write to different elements, and no thread writes what another reads.
unsafe impl Send for Work {}
// SAFETY: the threads write to different elements, and no thread writes what another reads.
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

/// Copies along a plan to elements of `itemsize` bytes. The system has just cleared `fresh` memory, whose pages are in the
/// caches if it is written in order, so non-temporal stores gain nothing there.
///
/// # Safety
/// - Every address that the plan reaches from `to` is writable, and from `from` readable, for one element.
/// - The elements read and the elements written do not overlap.
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
    let pool = if moved < DIVIDE_MIN_BYTES || !plan.is_apart(itemsize) { None } else { pool() };
    let Some(pool) = pool.filter(|pool| pool.current_num_threads() > 1) else {
        // SAFETY: passed on from the caller.
        return unsafe { work.follow(plan) };
    };
    let (threads, count) = (pool.current_num_threads(), pool.current_num_threads() * PARTS);
    let pays =
        moved >= WAKE_MIN_BYTES || since_start().saturating_sub(LAST.load(Ordering::Relaxed)) < AWAKE_NANOSECONDS;
    match if pays { divide(plan, from_itemsize, count) } else { None } {
        Some((position, ranges)) => {
            let (plan, count) = (plan.clone(), ranges.len());
            parts::each(&pool, threads, count, move |number| {
                // SAFETY: passed on from the caller, which gets back control when all parts are done; the parts have no
                // element in common.
                unsafe { work.follow(&plan.part(position, ranges[number].clone())) };
            });
        }
        // SAFETY: passed on from the caller.
        None => unsafe { work.follow(plan) },
    }
    LAST.store(since_start(), Ordering::Relaxed);
}

/// Returns the nanoseconds since the first call.
fn since_start() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the loop to divide, and its ranges; `None` if there is nothing to divide.
fn divide(plan: &Plan, from_itemsize: usize, parts: usize) -> Option<(usize, Vec<Range<usize>>)> {
    let (inner, outer) = plan.steps.split_last()?;
    // The outermost loop with enough turns that is not contiguous on either side; else the longest one, in ranges that share no
    // cache line.
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
