//! Copies and fills on the host, along a plan.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

mod convert;
mod fill;
#[cfg(target_arch = "x86_64")]
mod gather;
mod rows;
mod stream;
mod tile;
mod transpose;

use self::fill::Pattern;
pub(super) use self::fill::short_run;
use self::rows::Rows;
use self::tile::SIDE;
use self::transpose::{Scratch, Square};
use super::convert::Conversion;
use super::plan::{Plan, Step, Steps};

/// From this many bytes on, ordinary stores would fill the caches with data that is not read soon.
const STREAM_MIN_BYTES: usize = 12 << 20;

/// From this many bytes on, rows that are not next to each other are prefetched: they are seldom in the second-level cache.
const PREFETCH_MIN_BYTES: usize = 1 << 20;

/// Rows that are scattered over this many bytes, such as the halo of a large field, are seldom in that cache either.
const PREFETCH_MIN_REACH: usize = 8 << 20;

/// Rows of fewer bytes are not worth them if their last line is never whole.
const SHORT_BYTES: usize = 256;

/// Rows of this many bytes are worth non-temporal stores wherever they begin, and if they follow each other in the source.
const LONG_BYTES: usize = 2 << 10;

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
    let Some((inner, outer)) = plan.steps.split_last() else {
        // SAFETY: a plan without loops is one element.
        return unsafe { element(SIZE, to, from) };
    };
    let unit = SIZE.cast_signed();
    // SAFETY: passed on from the caller; each turn of the outer loops gets a part of the plan's elements.
    unsafe {
        if inner.to == unit && inner.from == 0 && outer.iter().all(|step| step.from == 0) {
            let pattern = Pattern::new::<SIZE>(from, inner.count);
            nested(outer, to, from, &mut |to, _| pattern.write(to, inner.count * SIZE, streamed));
        } else if inner.to == unit && inner.from == unit && streamed && in_lines(to, inner.count * SIZE, outer) {
            // Non-temporal stores may go in any order, but reads are prefetched only if they are in order.
            let mut outer = Steps::from_slice(outer);
            outer.sort_by_key(|step| std::cmp::Reverse(step.from.unsigned_abs()));
            let (ahead, bytes) = (Ahead::of(&outer, inner), inner.count * SIZE);
            if ahead.bytes == 0 {
                nested(&outer, to, from, &mut |to, from| stream::copy(to, from, bytes));
            } else {
                nested(&outer, to, from, &mut |to, from| {
                    ahead.ask(from);
                    stream::copy(to, from, bytes);
                });
            }
        } else if inner.from != unit
            && let Some(position) = faster(outer, *inner, unit, unit)
            && inner.count.min(outer[position].count) >= SIDE
        {
            let rest: Steps = outer[..position].iter().chain(&outer[position + 1..]).copied().collect();
            let ahead = rest.last().map(|step| step.from);
            let square = Square { rows: *inner, columns: outer[position], ahead };
            let mut scratch = Scratch::new();
            nested(&rest, to, from, &mut |to, from| {
                transpose::copy::<SIZE>(&square, to, from, &mut scratch, streamed);
            });
        } else {
            let large = whole >= PREFETCH_MIN_BYTES || reach(&plan.steps) >= PREFETCH_MIN_REACH;
            rows::<SIZE>(inner, outer, to, from, large);
        }
    }
    if streamed {
        stream::finish();
    }
}

/// Copies row by row.
///
/// # Safety
/// - As for [`follow`], with the loops `outer` around `inner`.
unsafe fn rows<const SIZE: usize>(inner: &Step, outer: &[Step], to: *mut u8, from: *const u8, large: bool) {
    let row = loops_of::<SIZE>(inner);
    let Some((second, rest)) = outer.split_last() else {
        // SAFETY: passed on from the caller.
        return unsafe { row(&rows::ONCE, inner, to, from) };
    };
    let ahead = if large { Ahead::of(outer, inner) } else { Ahead::NOTHING };
    // SAFETY: passed on from the caller.
    unsafe {
        if ahead.bytes == 0 {
            return nested(rest, to, from, &mut |to, from| row(second, inner, to, from));
        }
        nested(outer, to, from, &mut |to, from| {
            ahead.ask(from);
            row(&rows::ONCE, inner, to, from);
        });
    }
}

/// Returns the loops for rows of elements of `SIZE` bytes that are as far apart as those of `inner`.
fn loops_of<const SIZE: usize>(inner: &Step) -> Rows {
    let unit = SIZE.cast_signed();
    if inner.to != unit {
        return rows::any::<SIZE>;
    }
    if inner.from == unit {
        return rows::whole::<SIZE>;
    }
    #[cfg(target_arch = "x86_64")]
    if SIZE < 16
        && inner.from % unit == 0
        && let Some(stepped) = gather::of::<SIZE>(inner.from / unit)
    {
        return stepped;
    }
    rows::gathered::<SIZE>
}

/// The next row in the source, if it has to be prefetched.
struct Ahead {
    /// Bytes from the start of a row to that of the next one.
    apart: isize,
    /// Bytes of a row; 0 if the next one is not prefetched.
    bytes: usize,
}

impl Ahead {
    const NOTHING: Ahead = Ahead { apart: 0, bytes: 0 };

    /// The hardware goes on with what follows a row. Over a gap of this many bytes, that is not the next row.
    const GAP: usize = 512;

    /// Over longer gaps most prefetches would have to look up another page, which takes longer than they save in rows shorter
    /// than `LONG`.
    const FAR: usize = 8 << 10;
    const LONG: usize = 1 << 10;

    fn of(outer: &[Step], inner: &Step) -> Ahead {
        let bytes = inner.count.saturating_mul(inner.from.unsigned_abs());
        let most = if bytes < Ahead::LONG { Ahead::FAR } else { usize::MAX };
        match outer.last() {
            Some(next) if inner.from > 0 && bytes >= Ahead::GAP && (Ahead::GAP..=most).contains(&gap(next, bytes)) => {
                Ahead { apart: next.from, bytes }
            }
            _ => Ahead::NOTHING,
        }
    }

    fn ask(&self, from: *const u8) {
        stream::ask::<false>(from.wrapping_offset(self.apart), self.bytes);
    }
}

/// Returns the bytes from the first to the last element in the source.
fn reach(steps: &[Step]) -> usize {
    steps.iter().fold(0, |bytes, step| {
        bytes.saturating_add(step.from.unsigned_abs().saturating_mul(step.count.saturating_sub(1)))
    })
}

/// Returns the bytes between a row of `bytes` bytes and the next one in the source; 0 if these overlap.
fn gap(next: &Step, bytes: usize) -> usize {
    next.from.unsigned_abs().saturating_sub(bytes)
}

/// Returns whether rows that are contiguous on both sides are worth non-temporal stores. Each row writes parts of lines at its
/// ends, whose lengths the processor mispredicts unless they are the same in every other row. That matters less in long rows, and
/// where reads take longer than writes.
fn in_lines(to: *const u8, bytes: usize, outer: &[Step]) -> bool {
    let half = |distance: usize| distance.is_multiple_of(stream::LINE / 2);
    let apart = outer.last().is_some_and(|next| gap(next, bytes) >= Ahead::GAP);
    let long = if apart { Ahead::GAP } else { LONG_BYTES };
    let alike = half(to.addr()) && outer.iter().all(|step| half(step.to.unsigned_abs()));
    bytes >= long || alike && (bytes >= SHORT_BYTES || half(bytes))
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

/// Copies one element, which need not be aligned.
///
/// # Safety
/// - `from` is readable and `to` writable for `size` bytes, without overlap.
#[inline(always)]
unsafe fn element(size: usize, to: *mut u8, from: *const u8) {
    // SAFETY: passed on from the caller.
    unsafe { std::ptr::copy_nonoverlapping(from, to, size) };
}
