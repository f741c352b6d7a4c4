//! Loops that convert a row of elements, one for each pair of types.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use super::cast::{Bf16, Bool, Cast};
use super::{Row, float16};
use crate::copy::plan::Step;
use crate::dtype::DType;

/// The loop from one type to those it becomes.
macro_rules! loops {
    ($from:ty => $wanted:expr; $($dtype:ident: $to:ty),+; $($half:ident)?) => {
        match $wanted {
            $(DType::$dtype => Some(row::<$from, $to> as Row),)+
            $(DType::F16 => Some(float16::$half::<$from> as Row),)?
            _ => None,
        }
    };
    (integer $from:ty => $wanted:expr) => {
        // Integers wrap around: the sign of the result is a way to read its bits.
        loops!(
            $from => $wanted;
            U8: u8, I8: u8, U16: u16, I16: u16, U32: u32, I32: u32, U64: u64, I64: u64,
            F32: f32, F64: f64, C64: [f32; 2], C128: [f64; 2], BF16: Bf16; narrow
        )
    };
}

/// The loop for a pair of types that can be cast, and differ in more than the sign of integers.
pub(super) fn between(from: DType, to: DType) -> Option<Row> {
    match from {
        DType::BOOL => loops!(integer Bool => to),
        DType::U8 => loops!(integer u8 => to),
        DType::U16 => loops!(integer u16 => to),
        DType::U32 => loops!(integer u32 => to),
        DType::U64 => loops!(integer u64 => to),
        DType::I8 => loops!(integer i8 => to),
        DType::I16 => loops!(integer i16 => to),
        DType::I32 => loops!(integer i32 => to),
        DType::I64 => loops!(integer i64 => to),
        DType::F16 => float16::widen(to),
        DType::BF16 => loops!(Bf16 => to; F32: f32, F64: f64, C64: [f32; 2], C128: [f64; 2];),
        DType::F32 => loops!(f32 => to; F64: f64, C64: [f32; 2], C128: [f64; 2], BF16: Bf16; narrow),
        DType::F64 => loops!(f64 => to; F32: f32, C64: [f32; 2], C128: [f64; 2], BF16: Bf16; narrow),
        DType::C64 => loops!([f32; 2] => to; C128: [f64; 2];),
        DType::C128 => loops!([f64; 2] => to; C64: [f32; 2];),
        _ => None,
    }
}

/// Converts a row.
///
/// # Safety
/// - As for [`Row`].
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
/// - As for [`Row`].
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
