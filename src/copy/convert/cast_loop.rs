//! The loop that converts a row of elements from one type to another.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use super::cast::Cast;
use crate::copy::plan::Step;

/// A loop that converts a row of elements; the step's `to` and `from` are the byte strides of the two sides.
///
/// # Safety
/// - Every address that the step reaches from `from` is readable for an element of the source type, and from `to` writable for
///   one of the target type, without overlap.
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
            // One element for the whole row is read once: the compiler cannot know that the writes do not overlap it.
            let element: T = from.cast::<F>().read_unaligned().cast();
            let mut to = to;
            for _ in 0..step.count {
                to.cast::<T>().write_unaligned(element);
                to = to.wrapping_offset(step.to);
            }
        } else if (step.to, step.from) == (to_size, from_size) {
            // Constant strides let the compiler use vector instructions.
            each::<F, T>(Step { count: step.count, to: to_size, from: from_size }, to, from);
        } else {
            each::<F, T>(step, to, from);
        }
    }
}

/// Converts one element after the other; elements need not be aligned.
///
/// # Safety
/// - As for [`CastLoop`].
#[inline(always)]
unsafe fn each<F: Cast<T>, T>(step: Step, to: *mut u8, from: *const u8) {
    let (mut to, mut from) = (to, from);
    for _ in 0..step.count {
        // SAFETY: both addresses are those of one element of the row.
        unsafe { to.cast::<T>().write_unaligned(from.cast::<F>().read_unaligned().cast()) };
        to = to.wrapping_offset(step.to);
        from = from.wrapping_offset(step.from);
    }
}
