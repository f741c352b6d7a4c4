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
///
/// Other types are rejected when the crate is compiled:
/// ```compile_fail,E0277
/// // error: `String` is not an element type
/// dlfield::Tensor::from(vec![String::new()]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type",
    label = "not the type of an array's elements",
    note = "element types are bool, i8 to i64, u8 to u64, f32 and f64, `f16` and `bf16` of the crate `half`, and `Complex` of \
            `num_complex`, in the versions of these crates that dlfield uses",
    note = "an argument of elements known at run time only is `In<'_, dlfield::python::Any, D>`"
)]
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
