//! The loop that converts a row of elements from one type to another.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use super::cast::Cast;
use crate::copy::plan::Step;

/// A loop over elements that converts each: `to` and `from` of the step are the distances on the two sides.
///
/// # Safety
/// - Every address the step reaches is readable from `from` for an element of the one type, and writable from `to` for
///   one of the other, without overlap.
pub(in crate::copy) type CastLoop = unsafe fn(step: Step, to: *mut u8, from: *const u8);

/// Converts a row.
///
/// # Safety
/// - As for [`CastLoop`].
pub(super) unsafe fn row<F: Cast<T>, T: Copy>(step: Step, to: *mut u8, from: *const u8) {
    let (to_size, from_size) = (size_of::<T>().cast_signed(), size_of::<F>().cast_signed());
    // SAFETY: passed on from the caller.
    unsafe {
        if step.from == 0 && step.count > 0 {
            // One element for the whole row: without the caller's word that nothing overlaps it would be read each time.
            let element: T = from.cast::<F>().read_unaligned().cast();
            let mut to = to;
            for _ in 0..step.count {
                to.cast::<T>().write_unaligned(element);
                to = to.wrapping_offset(step.to);
            }
        } else if (step.to, step.from) == (to_size, from_size) {
            // Distances that the compiler knows become vectors.
            each::<F, T>(Step { count: step.count, to: to_size, from: from_size }, to, from);
        } else {
            each::<F, T>(step, to, from);
        }
    }
}

/// One element after the other, which need not be aligned.
///
/// # Safety
/// - As for [`CastLoop`].
#[inline(always)]
unsafe fn each<F: Cast<T>, T>(step: Step, to: *mut u8, from: *const u8) {
    let (mut to, mut from) = (to, from);
    for _ in 0..step.count {
        // SAFETY: the addresses of one element of the row.
        unsafe { to.cast::<T>().write_unaligned(from.cast::<F>().read_unaligned().cast()) };
        to = to.wrapping_offset(step.to);
        from = from.wrapping_offset(step.from);
    }
}
