//! Element formats of Python's buffer protocol, e.g. `"d"`.
//!
//! Source: PEP 3118 with the native and standard sizes of the `struct` module.

use std::ffi::{CStr, c_int, c_long, c_longlong, c_short};

use crate::dtype::DType;
use crate::error::DTypeError;
use crate::protocol::typestr::{NUMBERS, foreign_order, not_shareable, wrong_size};

const FIELD: &str = "format";

/// Returns the format of an element type; `None` if the buffer protocol has no letter for it.
pub fn encode(dtype: DType) -> Option<&'static CStr> {
    Some(match dtype {
        DType::BOOL => c"?",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        // C's long has 64 bits except on Windows; where it has, NumPy writes "l" for int64.
        DType::I64 if size_of::<c_long>() == 8 => c"l",
        DType::I64 => c"q",
        DType::U8 => c"B",
        DType::U16 => c"H",
        DType::U32 => c"I",
        DType::U64 if size_of::<c_long>() == 8 => c"L",
        DType::U64 => c"Q",
        DType::F16 => c"e",
        DType::F32 => c"f",
        DType::F64 => c"d",
        DType::C64 => c"Zf",
        DType::C128 => c"Zd",
        _ => return None,
    })
}

/// Returns the element type of a format and an element size in bytes. No format means `"B"`.
///
/// An integer may have the size that its letter has in C or in the `struct` module's standard sizes, regardless of the prefix:
/// `ctypes` writes `"<l"` for eight bytes.
///
/// # Errors
/// [`DTypeError`] for the other byte order, for letters that are not numbers, for structures and counts, and for a size that
/// the letter never has.
///
/// # Example
/// ```
/// use dlfield::{DType, testing::protocol::pep3118};
/// assert_eq!(pep3118::decode(Some("<l"), 8), Ok(DType::I64));
/// assert_eq!(pep3118::decode(None, 1), Ok(DType::U8));
/// assert!(pep3118::decode(Some("T{<i:a:}"), 4).is_err());
/// ```
pub fn decode(format: Option<&str>, itemsize: i64) -> Result<DType, DTypeError> {
    let text = format.unwrap_or("B");
    let letters = text.strip_prefix(['@', '^', '=', '<', '>', '!']).unwrap_or(text);
    let candidates: &[DType] = match letters {
        "?" => &[DType::BOOL],
        "b" => &[DType::I8],
        "B" => &[DType::U8],
        "h" => &[signed(size_of::<c_short>()), DType::I16],
        "H" => &[unsigned(size_of::<c_short>()), DType::U16],
        "i" => &[signed(size_of::<c_int>()), DType::I32],
        "I" => &[unsigned(size_of::<c_int>()), DType::U32],
        "l" => &[signed(size_of::<c_long>()), DType::I32],
        "L" => &[unsigned(size_of::<c_long>()), DType::U32],
        "q" => &[signed(size_of::<c_longlong>()), DType::I64],
        "Q" => &[unsigned(size_of::<c_longlong>()), DType::U64],
        "n" => &[signed(size_of::<isize>())],
        "N" => &[unsigned(size_of::<usize>())],
        "e" => &[DType::F16],
        "f" => &[DType::F32],
        "d" => &[DType::F64],
        // Python's struct module has F and D from 3.14 on.
        "Zf" | "F" => &[DType::C64],
        "Zd" | "D" => &[DType::C128],
        _ => return Err(refused(text, letters)),
    };
    let foreign: &[char] = if cfg!(target_endian = "little") { &['>', '!'] } else { &['<'] };
    if text.starts_with(foreign) && candidates[0].itemsize() > 1 {
        return Err(foreign_order(FIELD, text));
    }
    let fits = |dtype: &&DType| usize::try_from(itemsize) == Ok(dtype.itemsize());
    candidates.iter().find(fits).copied().ok_or_else(|| {
        let mut sizes: Vec<String> = candidates.iter().map(|dtype| dtype.itemsize().to_string()).collect();
        sizes.dedup();
        wrong_size(FIELD, text, itemsize, &format_args!("elements of {} bytes", sizes.join(" or ")))
    })
}

/// Returns the signed integer of a C size in bytes.
const fn signed(size: usize) -> DType {
    match size {
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    }
}

/// Returns the unsigned integer of a C size in bytes.
const fn unsigned(size: usize) -> DType {
    match size {
        2 => DType::U16,
        4 => DType::U32,
        _ => DType::U64,
    }
}

/// Whether elements of a format are addresses: of numbers, of functions or, as `ctypes` writes them, of text.
pub(crate) fn is_address(format: &str) -> bool {
    let letters = format.strip_prefix(['@', '^', '=', '<', '>', '!']).unwrap_or(format);
    letters.starts_with(['&', 'X']) || matches!(letters, "P" | "z" | "Z")
}

/// Returns the error for a format without an element type, which names what the format means.
fn refused(text: &str, letters: &str) -> DTypeError {
    const LETTER: &str = "a single letter of the struct module such as 'd', or 'Zd'";
    let (expected, why, fix) = match letters {
        "g" | "Zg" | "G" => {
            ("elements up to d and Zd", "has a width that other libraries do not support", "convert it")
        }
        "c" | "s" | "p" | "u" | "w" => (NUMBERS, "holds text", ""),
        _ if is_address(text) => (NUMBERS, "holds addresses", ""),
        "O" => (NUMBERS, "holds Python objects, which cannot be shared as memory", ""),
        "x" => (NUMBERS, "holds nothing but padding", ""),
        _ if letters.starts_with('(') || letters.starts_with(|first: char| first.is_ascii_digit()) => {
            ("one value per element", "has several values", "make the count a dimension of the shape")
        }
        _ if letters.starts_with('T') => (NUMBERS, "is structured", "take one field of it at a time"),
        _ if letters.len() > 1 && letters.bytes().all(|byte| byte.is_ascii_graphic()) => {
            (LETTER, "is structured, or no format", "")
        }
        _ => return DTypeError::new(FIELD, &LETTER, &format_args!("{text:?}")),
    };
    not_shareable(FIELD, text, expected, why, fix)
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

    #[test]
    fn what_is_written_is_read() {
        for dtype in DType::all() {
            let Some(format) = encode(dtype) else { continue };
            let (text, size) = (format.to_str().expect("ASCII"), i64::try_from(dtype.itemsize()).expect("at most 16"));
            for prefix in ["", "@", "=", "<", "^"] {
                assert_eq!(decode(Some(&format!("{prefix}{text}")), size), Ok(dtype));
            }
            for prefix in [">", "!"] {
                assert_eq!(decode(Some(&format!("{prefix}{text}")), size).is_ok(), size == 1);
            }
            assert!(decode(Some(text), size + 1).is_err() && decode(Some(text), -size).is_err());
        }
    }

    #[test]
    fn another_size_is_refused_with_those_of_the_letter() {
        let message = decode(Some("l"), 2).expect_err("no long has 2 bytes").to_string();
        assert!(message.contains("\"l\"") && message.contains("2 bytes") && message.contains('4'), "{message}");
    }

    #[test]
    fn each_format_is_refused_by_name() {
        for (text, named) in [
            (">d", "byte order"),
            ("!i", "byte order"),
            ("g", "width"),
            ("Zg", "width"),
            ("c", "text"),
            ("s", "text"),
            ("w", "text"),
            ("P", "addresses"),
            ("&<d", "addresses"),
            ("X{}", "addresses"),
            ("<z", "addresses"),
            ("Z", "addresses"),
            ("O", "Python objects"),
            ("x", "padding"),
            ("3i", "several"),
            ("(2,3)f", "several"),
            ("T{<i:a:<f:b:}", "structured"),
            ("ii", "structured"),
            ("", "single letter"),
            ("<", "single letter"),
            ("y", "single letter"),
            ("<<d", "structured, or no format"),
            ("é", "single letter"),
        ] {
            let message = decode(Some(text), 8).expect_err(text).to_string();
            assert!(message.starts_with("format: ") && message.contains(named), "{text}: {message}");
        }
    }
}
