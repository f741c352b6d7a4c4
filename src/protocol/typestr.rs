//! Type strings of NumPy's array interface, e.g. `"<f8"`.
//!
//! Source: NumPy's page on the array interface protocol, key `typestr`.

use crate::dtype::DType;

/// The type string of an element type in native byte order; `None` for types that NumPy itself has not got. Arrays of
/// `ml_dtypes` call those `V` (void) with their size, which loses what they are.
pub fn encode(dtype: DType) -> Option<&'static str> {
    const LITTLE: bool = cfg!(target_endian = "little");
    let text = match dtype {
        DType::BOOL => "|b1",
        DType::I8 => "|i1",
        DType::U8 => "|u1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        _ => return None,
    };
    (LITTLE || text.starts_with('|')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_of_numpy_have_a_string() {
        assert_eq!(encode(DType::BOOL), Some("|b1"));
        assert_eq!(encode(DType::C128), Some("<c16"));
        for dtype in [DType::BF16, DType::F8_E4M3FN, DType::I4] {
            assert_eq!(encode(dtype), None);
        }
    }
}
