//! Copies and fills on the host, along a plan.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

mod convert;
mod fill;
mod stream;
mod tile;
mod transpose;

use self::fill::Pattern;
pub(super) use self::fill::short_run;
use self::tile::SIDE;
use self::transpose::{Scratch, Square};
use super::convert::Conversion;
use super::plan::{Plan, Step, Steps};

/// From this many bytes on, ordinary stores would fill the caches with data that is not read soon.
const STREAM_MIN_BYTES: usize = 12 << 20;

/// Copies along a plan to elements of `SIZE` bytes, in this thread. `whole` is the number of bytes that all threads write.
///
/// # Safety
/// - Every address that the plan reaches from `to` is writable, and from `from` readable, for one element.
/// - The elements read and the elements written do not overlap.
pub(super) unsafe fn follow<const SIZE: usize>(
    plan: &Plan,
    to: *mut u8,
    from: *const u8,
    conversion: Conversion,
    whole: usize,
) {
    // SAFETY: passed on from the caller.
    unsafe {
        match conversion {
            Conversion::None => copy::<SIZE>(plan, to, from, whole),
            Conversion::Convert { row, itemsize } => convert::follow::<SIZE>(plan, to, from, row, itemsize, whole),
        }
    }
}

/// Copies elements without conversion.
///
/// # Safety
/// - As for [`follow`].
unsafe fn copy<const SIZE: usize>(plan: &Plan, to: *mut u8, from: *const u8, whole: usize) {
    let (to, from) = (to.wrapping_offset(plan.start.0), from.wrapping_offset(plan.start.1));
    let streamed = whole >= STREAM_MIN_BYTES;
    let Some((&inner, outer)) = plan.steps.split_last() else {
        // SAFETY: a plan without loops is one element.
        return unsafe { element(SIZE, to, from) };
    };
    let unit = SIZE.cast_signed();
    // SAFETY: passed on from the caller; each turn of the outer loops gets a part of the plan's elements.
    unsafe {
        if inner.to == unit && inner.from == 0 && outer.iter().all(|step| step.from == 0) {
            let pattern = Pattern::new::<SIZE>(from, inner.count);
            nested(outer, to, from, &mut |to, _| pattern.write(to, inner.count * SIZE, streamed));
        } else if inner.to == unit && inner.from == unit {
            let bytes = inner.count * SIZE;
            if streamed {
                // Non-temporal stores may go in any order, but reads are prefetched only if they are in order.
                let mut outer = Steps::from_slice(outer);
                outer.sort_by_key(|step| std::cmp::Reverse(step.from.unsigned_abs()));
                nested(&outer, to, from, &mut |to, from| stream::copy(to, from, bytes));
            } else {
                nested(outer, to, from, &mut |to, from| std::ptr::copy_nonoverlapping(from, to, bytes));
            }
        } else if let Some(position) = faster(outer, inner, unit, unit)
            && inner.count.min(outer[position].count) >= SIDE
        {
            let rest: Steps = outer[..position].iter().chain(&outer[position + 1..]).copied().collect();
            let ahead = rest.last().map(|step| step.from);
            let square = Square { rows: inner, columns: outer[position], ahead };
            let mut scratch = Scratch::new();
            nested(&rest, to, from, &mut |to, from| {
                transpose::copy::<SIZE>(&square, to, from, &mut scratch, streamed);
            });
        } else {
            nested(outer, to, from, &mut |to, from| run::<SIZE>(inner, to, from));
        }
    }
    if streamed {
        stream::finish();
    }
}

/// Returns the loop that is contiguous in the source, if the innermost one is contiguous in the destination only.
fn faster(outer: &[Step], inner: Step, to_unit: isize, from_unit: isize) -> Option<usize> {
    if inner.to != to_unit {
        return None;
    }
    outer.iter().position(|step| step.from == from_unit)
}

/// Runs the outer loops, and calls `body` with both addresses of every turn.
///
/// # Safety
/// - `body` may be called with every address that the loops reach.
unsafe fn nested(steps: &[Step], to: *mut u8, from: *const u8, body: &mut impl FnMut(*mut u8, *const u8)) {
    match steps {
        [] => body(to, from),
        [outer, inner @ ..] => {
            let (mut to, mut from) = (to, from);
            for _ in 0..outer.count {
                // SAFETY: passed on from the caller.
                unsafe { nested(inner, to, from, body) };
                // The address after the last turn is not used, and may lie outside the memory.
                to = to.wrapping_offset(outer.to);
                from = from.wrapping_offset(outer.from);
            }
        }
    }
}

/// Runs the innermost loop, one element after the other.
///
/// # Safety
/// - As for [`follow`], with one step.
unsafe fn run<const SIZE: usize>(step: Step, to: *mut u8, from: *const u8) {
    let (mut to, mut from) = (to, from);
    for _ in 0..step.count {
        // SAFETY: both addresses are those of one element of the plan.
        unsafe { element(SIZE, to, from) };
        to = to.wrapping_offset(step.to);
        from = from.wrapping_offset(step.from);
    }
}

/// Copies one element, which need not be aligned.
///
/// # Safety
/// - `from` is readable and `to` writable for `size` bytes, without overlap.
#[inline(always)]
unsafe fn element(size: usize, to: *mut u8, from: *const u8) {
    // SAFETY: passed on from the caller.
    unsafe { std::ptr::copy_nonoverlapping(from, to, size) };
}
