//! The two innermost loops of a copy: rows of any stride.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use super::element;
use crate::copy::plan::Step;

/// Copies the elements of two nested loops, whose inner one has strides that the function is for. They are borrowed: a copy of a
/// loop that was just written field by field would have to wait for these writes.
///
/// # Safety
/// - Every address that the loops reach is readable from `from` and writable from `to`, for one element, without overlap.
pub(super) type Rows = unsafe fn(outer: &Step, inner: &Step, to: *mut u8, from: *const u8);

/// The outer loop of a single row.
pub(super) const ONCE: Step = Step { count: 1, to: 0, from: 0 };

/// Rows longer than this are copied by the C library. Its function takes twice as long for rows of some hundred bytes that are not
/// aligned in the destination.
const SHORT_BYTES: usize = 8 << 10;

/// Rows that are contiguous on both sides.
///
/// # Safety
/// - As for [`Rows`].
pub(super) unsafe fn whole<const SIZE: usize>(outer: &Step, inner: &Step, to: *mut u8, from: *const u8) {
    // SAFETY: passed on from the caller.
    unsafe { runs(outer, inner.count * SIZE, to, from) }
}

/// Rows of `bytes` contiguous bytes.
///
/// # Safety
/// - As for [`Rows`], with a row of this length at every address of the loop.
pub(super) unsafe fn runs(outer: &Step, bytes: usize, to: *mut u8, from: *const u8) {
    // SAFETY: passed on from the caller; each function gets rows of the lengths that it is for.
    unsafe {
        match bytes {
            0..4 => each(outer, to, from, |to, from| {
                for at in 0..bytes {
                    element(1, to.add(at), from.add(at));
                }
            }),
            4..8 => each(outer, to, from, |to, from| ends::<4>(bytes, to, from)),
            8..16 => each(outer, to, from, |to, from| ends::<8>(bytes, to, from)),
            16..32 => each(outer, to, from, |to, from| ends::<16>(bytes, to, from)),
            #[cfg(target_arch = "x86_64")]
            WIDE..=SHORT_BYTES if is_x86_feature_detected!("avx2") => wide(outer, bytes, to, from),
            32..=SHORT_BYTES => each(outer, to, from, |to, from| {
                for at in (0..bytes - 32).step_by(32) {
                    element(32, to.add(at), from.add(at));
                }
                element(32, to.add(bytes - 32), from.add(bytes - 32));
            }),
            _ => each(outer, to, from, |to, from| std::ptr::copy_nonoverlapping(from, to, bytes)),
        }
    }
}

/// Bytes that [`wide`] copies at a time.
#[cfg(target_arch = "x86_64")]
const WIDE: usize = 64;

/// Rows of `bytes` contiguous bytes, at least [`WIDE`]. Where rows are not in the first-level cache, the number of loads and stores
/// that can wait limits the speed; with these instructions each has 32 bytes.
///
/// # Safety
/// - As for [`runs`]; the machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn wide(outer: &Step, bytes: usize, to: *mut u8, from: *const u8) {
    // SAFETY: passed on from the caller; all parts are inside the row.
    unsafe {
        each(outer, to, from, |to, from| {
            for at in (0..bytes - WIDE).step_by(WIDE) {
                element(WIDE, to.add(at), from.add(at));
            }
            element(WIDE, to.add(bytes - WIDE), from.add(bytes - WIDE));
        });
    }
}

/// Copies the first and the last `PART` bytes of a row, which may have some in common.
///
/// # Safety
/// - Both addresses are those of `bytes` bytes, without overlap: at least `PART`, at most twice as many.
#[inline(always)]
unsafe fn ends<const PART: usize>(bytes: usize, to: *mut u8, from: *const u8) {
    // SAFETY: passed on from the caller.
    unsafe {
        element(PART, to, from);
        element(PART, to.add(bytes - PART), from.add(bytes - PART));
    }
}

/// Rows that are contiguous in the destination: a constant stride there makes the loop shorter.
///
/// # Safety
/// - As for [`Rows`].
pub(super) unsafe fn gathered<const SIZE: usize>(outer: &Step, inner: &Step, to: *mut u8, from: *const u8) {
    let inner = Step { count: inner.count, to: SIZE.cast_signed(), from: inner.from };
    // SAFETY: passed on from the caller.
    unsafe { each(outer, to, from, |to, from| run(SIZE, &inner, to, from)) }
}

/// Rows of any strides.
///
/// # Safety
/// - As for [`Rows`].
pub(super) unsafe fn any<const SIZE: usize>(outer: &Step, inner: &Step, to: *mut u8, from: *const u8) {
    // SAFETY: passed on from the caller.
    unsafe { each(outer, to, from, |to, from| run(SIZE, inner, to, from)) }
}

/// Calls `row` with both addresses of every turn of a loop.
///
/// # Safety
/// - `row` may be called with every address that the loop reaches.
#[inline(always)]
pub(super) unsafe fn each(outer: &Step, to: *mut u8, from: *const u8, row: impl Fn(*mut u8, *const u8)) {
    let (mut to, mut from) = (to, from);
    for _ in 0..outer.count {
        row(to, from);
        // The address after the last turn is not used, and may lie outside the memory.
        to = to.wrapping_offset(outer.to);
        from = from.wrapping_offset(outer.from);
    }
}

/// Copies one row, element by element. A constant size makes the loop fast.
///
/// # Safety
/// - As for [`Rows`], with one loop.
#[inline(always)]
pub(super) unsafe fn run(size: usize, step: &Step, to: *mut u8, from: *const u8) {
    // SAFETY: both addresses are those of one element of the row.
    unsafe { each(step, to, from, |to, from| element(size, to, from)) }
}
