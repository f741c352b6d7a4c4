//! The Rust types of elements.

use half::{bf16, f16};
#[cfg(feature = "ndarray")]
use num_complex::Complex;

use crate::dtype::DType;

/// A Rust type with the same bytes as an element type: the element of typed views.
///
/// Implemented for `bool`, `i8` to `i64`, `u8` to `u64`, `f32`, `f64`, `half`'s `f16` and `bf16`, and with the feature
/// `ndarray` for `num_complex`'s `Complex<f32>` and `Complex<f64>`. The trait is sealed.
///
/// # Example
/// ```
/// use dlfield::{DType, Element};
/// assert_eq!(<f32 as Element>::DTYPE, DType::F32);
/// ```
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The element type.
    const DTYPE: DType;
}

mod sealed {
    /// Implemented for types of this module only.
    pub trait Sealed {}
}

macro_rules! elements {
    ($($(#[$when:meta])? $rust:ty = $dtype:ident),+ $(,)?) => {
        $(
            $(#[$when])?
            impl sealed::Sealed for $rust {}
            $(#[$when])?
            impl Element for $rust {
                const DTYPE: DType = DType::$dtype;
            }
        )+

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn elements_are_as_large_as_their_types_say() {
                $($(#[$when])? assert_eq!(size_of::<$rust>(), <$rust>::DTYPE.itemsize(), "{}", <$rust>::DTYPE);)+
            }
        }
    };
}

elements! {
    bool = BOOL,
    i8 = I8,
    i16 = I16,
    i32 = I32,
    i64 = I64,
    u8 = U8,
    u16 = U16,
    u32 = U32,
    u64 = U64,
    f16 = F16,
    bf16 = BF16,
    f32 = F32,
    f64 = F64,
    #[cfg(feature = "ndarray")]
    Complex<f32> = C64,
    #[cfg(feature = "ndarray")]
    Complex<f64> = C128,
}
