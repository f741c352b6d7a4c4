//! Casts to and from `float16`: by way of `f32`, with the instructions that the `half` crate finds in the machine.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::cast::{Bf16, Cast, Wide};
use super::cast_loop::{CastLoop, row};
use crate::copy::plan::Step;
use crate::dtype::DType;

/// Elements converted at a time.
const TOGETHER: usize = 64;

/// Bytes from one element to the next in a buffer of `float16`.
const NARROW: isize = size_of::<f16>().cast_signed();

/// Bytes from one element to the next in a buffer of `f32`.
const WIDE: isize = size_of::<Wide>().cast_signed();

/// Returns the loop from `float16` to another type.
pub(super) fn widen(to: DType) -> Option<CastLoop> {
    match to {
        DType::F32 => Some(widened::<f32>),
        DType::F64 => Some(widened::<f64>),
        DType::C64 => Some(widened::<[f32; 2]>),
        DType::C128 => Some(widened::<[f64; 2]>),
        DType::BF16 => Some(widened::<Bf16>),
        _ => None,
    }
}

/// Converts a row of `float16`.
///
/// # Safety
/// - As for [`CastLoop`].
unsafe fn widened<T: Copy>(step: Step, to: *mut u8, from: *const u8)
where
    f32: Cast<T>,
{
    let (mut narrow, mut wide) = ([f16::ZERO; TOGETHER], [0f32; TOGETHER]);
    pieces(step, to, from, |count, to, from| {
        // SAFETY: a piece of the caller's row, no longer than the buffers.
        unsafe {
            row::<u16, u16>(Step { count, to: NARROW, from: step.from }, narrow.as_mut_ptr().cast(), from);
            narrow[..count].convert_to_f32_slice(&mut wide[..count]);
            row::<f32, T>(Step { count, to: step.to, from: WIDE }, to, wide.as_ptr().cast());
        }
    });
}

/// Converts a row to `float16`.
///
/// # Safety
/// - As for [`CastLoop`].
pub(super) unsafe fn narrow<F: Cast<Wide>>(step: Step, to: *mut u8, from: *const u8) {
    let (mut wide, mut narrow) = ([0f32; TOGETHER], [f16::ZERO; TOGETHER]);
    pieces(step, to, from, |count, to, from| {
        // SAFETY: a piece of the caller's row, no longer than the buffers.
        unsafe {
            row::<F, Wide>(Step { count, to: WIDE, from: step.from }, wide.as_mut_ptr().cast(), from);
            narrow[..count].convert_from_f32_slice(&wide[..count]);
            row::<u16, u16>(Step { count, to: step.to, from: NARROW }, to, narrow.as_ptr().cast());
        }
    });
}

/// Calls `piece` for pieces of a row of at most [`TOGETHER`] elements.
#[inline(always)]
fn pieces(step: Step, to: *mut u8, from: *const u8, mut piece: impl FnMut(usize, *mut u8, *const u8)) {
    let (mut to, mut from) = (to, from);
    let mut left = step.count;
    while left > 0 {
        let count = left.min(TOGETHER);
        piece(count, to, from);
        // The addresses after the last piece are not used, and may lie outside the memory.
        to = to.wrapping_offset(step.to.wrapping_mul(count.cast_signed()));
        from = from.wrapping_offset(step.from.wrapping_mul(count.cast_signed()));
        left -= count;
    }
}
