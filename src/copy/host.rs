//! The loops over host memory.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use std::ptr;

use super::Step;

/// Follows a plan: copies elements of `itemsize` bytes from `from` to `to`.
///
/// # Safety
/// - Every address the plan reaches from `to` is writable, and from `from` readable, for `itemsize` bytes.
/// - What is read and what is written do not overlap.
pub(super) unsafe fn copy(steps: &[Step], to: *mut u8, from: *const u8, itemsize: usize) {
    // SAFETY: passed on from the caller.
    unsafe {
        match itemsize {
            1 => nested::<1>(steps, to, from),
            2 => nested::<2>(steps, to, from),
            4 => nested::<4>(steps, to, from),
            8 => nested::<8>(steps, to, from),
            _ => nested::<16>(steps, to, from),
        }
    }
}

/// The loops for one element size.
///
/// # Safety
/// As for [`copy`].
unsafe fn nested<const SIZE: usize>(steps: &[Step], to: *mut u8, from: *const u8) {
    match steps {
        // SAFETY: a plan without loops is one element.
        [] => unsafe { element::<SIZE>(to, from) },
        // SAFETY: the innermost loop is the caller's.
        [step] => unsafe { run::<SIZE>(*step, to, from) },
        [outer, inner @ ..] => {
            let (mut to, mut from) = (to, from);
            for _ in 0..outer.count {
                // SAFETY: each turn of the outer loop is a field of the inner plan.
                unsafe { nested::<SIZE>(inner, to, from) };
                // The address after the last turn is not used, and may lie outside the memory.
                to = to.wrapping_offset(outer.to);
                from = from.wrapping_offset(outer.from);
            }
        }
    }
}

/// The innermost loop.
///
/// # Safety
/// As for [`copy`], with one step.
unsafe fn run<const SIZE: usize>(step: Step, to: *mut u8, from: *const u8) {
    if step.to.unsigned_abs() == SIZE && step.from == step.to && step.to > 0 {
        // SAFETY: both sides are one stretch of count elements.
        return unsafe { ptr::copy_nonoverlapping(from, to, step.count * SIZE) };
    }
    let (mut to, mut from) = (to, from);
    for _ in 0..step.count {
        // SAFETY: the address of one element of the plan.
        unsafe { element::<SIZE>(to, from) };
        to = to.wrapping_offset(step.to);
        from = from.wrapping_offset(step.from);
    }
}

/// One element, which need not be aligned.
///
/// # Safety
/// - `from` is readable and `to` writable for `SIZE` bytes, without overlap.
#[inline(always)]
unsafe fn element<const SIZE: usize>(to: *mut u8, from: *const u8) {
    // SAFETY: arrays of bytes have no alignment, and the caller vouches for the memory.
    unsafe { ptr::copy_nonoverlapping(from.cast::<[u8; SIZE]>(), to.cast::<[u8; SIZE]>(), 1) };
}
