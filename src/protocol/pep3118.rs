//! Element formats of Python's buffer protocol, e.g. `"d"`.
//!
//! Source: PEP 3118 with the native sizes of the `struct` module.

use std::ffi::CStr;

use crate::dtype::DType;

/// The format of an element type, `None` for types the buffer protocol has no letter for.
pub fn encode(dtype: DType) -> Option<&'static CStr> {
    Some(match dtype {
        DType::BOOL => c"?",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        // C's long has 64 bits except on Windows, and NumPy says "l" for int64 where it has.
        DType::I64 if size_of::<std::ffi::c_long>() == 8 => c"l",
        DType::I64 => c"q",
        DType::U8 => c"B",
        DType::U16 => c"H",
        DType::U32 => c"I",
        DType::U64 if size_of::<std::ffi::c_long>() == 8 => c"L",
        DType::U64 => c"Q",
        DType::F16 => c"e",
        DType::F32 => c"f",
        DType::F64 => c"d",
        DType::C64 => c"Zf",
        DType::C128 => c"Zd",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_beyond_the_struct_module_have_no_format() {
        assert_eq!(encode(DType::F64), Some(c"d"));
        for dtype in [DType::BF16, DType::F8_E5M2, DType::I4] {
            assert_eq!(encode(dtype), None);
        }
    }
}
