//! Loops that convert a row of elements, one for each pair of types.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use super::cast::{Bf16, Bool};
use super::cast_loop::{CastLoop, row};
use super::float16;
use crate::dtype::DType;

/// Selects the loop from one type to another.
macro_rules! loops {
    ($from:ty => $wanted:expr; $($dtype:ident: $to:ty),+; $($half:ident)?) => {
        match $wanted {
            $(DType::$dtype => Some(row::<$from, $to> as CastLoop),)+
            $(DType::F16 => Some(float16::$half::<$from> as CastLoop),)?
            _ => None,
        }
    };
    (integer $from:ty => $wanted:expr) => {
        // Integers wrap around, so signed and unsigned results have the same bits.
        loops!(
            $from => $wanted;
            U8: u8, I8: u8, U16: u16, I16: u16, U32: u32, I32: u32, U64: u64, I64: u64,
            F32: f32, F64: f64, C64: [f32; 2], C128: [f64; 2], BF16: Bf16; narrow
        )
    };
}

/// Returns the loop for two types that can be cast and differ in more than the sign of integers.
pub(super) fn between(from: DType, to: DType) -> Option<CastLoop> {
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
