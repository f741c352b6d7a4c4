//! Type strings of NumPy's array interface, e.g. `"<f8"`.
//!
//! Source: NumPy's page on the array interface protocol, key `typestr`.

use crate::dtype::DType;
use crate::error::{Count, DTypeError, DTypeErrorKind};
use std::fmt::Display;

const FIELD: &str = "typestr";

/// Returns the type string of an element type in native byte order; `None` for types that NumPy does not have. Arrays of `ml_dtypes`
/// write `V` (void) and the size for those, which loses the type.
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

/// Returns the element type of a type string: byte order (`<`, `>`, `=` native, `|` not relevant), kind, bytes. Without a byte
/// order it is native, as in NumPy.
///
/// # Errors
/// [`DTypeError`] for the other byte order, for kinds that are not numbers, for widths that other libraries do not have, and for any
/// other string.
///
/// # Example
/// ```
/// use dlfield::{DType, testing::protocol::typestr};
/// assert_eq!(typestr::decode("|b1"), Ok(DType::BOOL));
/// assert!(typestr::decode("|O").unwrap_err().to_string().contains("Python objects"));
/// ```
pub fn decode(text: &str) -> Result<DType, DTypeError> {
    const FOREIGN: u8 = if cfg!(target_endian = "little") { b'>' } else { b'<' };
    let unreadable =
        || DTypeError::new(FIELD, &"byte order, kind and bytes, such as '<f8' or 'f8'", &format_args!("{text:?}"));
    let (order, rest) = split_order(text);
    let mut letters = rest.chars();
    let Some(kind) = letters.next() else { return Err(unreadable()) };
    refuse_kind(text, kind)?;
    let digits = letters.as_str();
    if digits.is_empty() || digits.len() > 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(unreadable());
    }
    let dtype = match (kind, digits) {
        ('b', "1") => DType::BOOL,
        ('i', "1") => DType::I8,
        ('i', "2") => DType::I16,
        ('i', "4") => DType::I32,
        ('i', "8") => DType::I64,
        ('u', "1") => DType::U8,
        ('u', "2") => DType::U16,
        ('u', "4") => DType::U32,
        ('u', "8") => DType::U64,
        ('f', "2") => DType::F16,
        ('f', "4") => DType::F32,
        ('f', "8") => DType::F64,
        ('c', "8") => DType::C64,
        ('c', "16") => DType::C128,
        ('b' | 'i' | 'u' | 'f' | 'c', _) => {
            let expected = "b1, i or u of 1 to 8 bytes, f2, f4, f8, c8 or c16";
            return Err(not_shareable(
                FIELD,
                text,
                expected,
                "has a width that other libraries do not support",
                "convert it",
            ));
        }
        _ => return Err(unreadable()),
    };
    if order == Some(FOREIGN) && dtype.itemsize() > 1 {
        return Err(foreign_order(FIELD, text));
    }
    Ok(dtype)
}

/// Returns the bytes of a void type string, `"|V2"`, which does not name its element type; `None` for other strings.
pub fn void_size(text: &str) -> Option<usize> {
    let digits = split_order(text).1.strip_prefix('V')?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Returns the byte order, if the string has one, and the rest.
fn split_order(text: &str) -> (Option<u8>, &str) {
    match text.as_bytes().first() {
        Some(order @ (b'|' | b'<' | b'>' | b'=')) => (Some(*order), &text[1..]),
        _ => (None, text),
    }
}

/// Rejects the kinds that are not numbers; the error names what they hold.
fn refuse_kind(text: &str, kind: char) -> Result<(), DTypeError> {
    let (why, fix) = match kind {
        'O' => ("holds Python objects, which cannot be shared as memory", "convert it"),
        'S' | 'U' | 'T' => ("holds text", ""),
        'M' => ("holds dates", "view it as int64"),
        'm' => ("holds time spans", "view it as int64"),
        'V' => ("holds raw bytes, or is structured", "view it as its type, or take one field of it at a time"),
        't' => ("holds several bits per byte", "unpack it"),
        _ => return Ok(()),
    };
    Err(not_shareable(FIELD, text, NUMBERS, why, fix))
}

/// The elements that can be shared.
pub(super) const NUMBERS: &str = "numbers or bool";

/// Returns the error for elements that are not numbers, or whose width no other library has.
#[cold]
pub(super) fn not_shareable(argument: &str, got: &str, expected: &str, why: &str, fix: &str) -> DTypeError {
    DTypeError::new(argument, &expected, &format_args!("{got:?}, which {why}"))
        .with_fix(&fix)
        .with_kind(DTypeErrorKind::Unsupported)
}

/// Returns the error for elements in non-native byte order.
#[cold]
pub(super) fn foreign_order(argument: &str, got: &str) -> DTypeError {
    DTypeError::new(argument, &"native byte order", &format_args!("{got:?}"))
        .with_fix(&"convert it")
        .with_kind(DTypeErrorKind::ByteOrder)
}

/// Returns the error for elements of a size that contradicts their description; `expected` are the sizes that fit.
#[cold]
pub(super) fn wrong_size(argument: &str, got: &str, itemsize: i64, expected: &dyn Display) -> DTypeError {
    let got = format_args!("{got:?} with elements of {}", Count(itemsize, "byte"));
    DTypeError::new(argument, expected, &got).with_kind(DTypeErrorKind::Mismatch)
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

    #[test]
    fn what_is_written_is_read() {
        for dtype in DType::all() {
            let Some(text) = encode(dtype) else { continue };
            for order in ["<", "=", "|", ""] {
                assert_eq!(decode(&format!("{order}{}", &text[1..])), Ok(dtype));
            }
            let foreign = decode(&format!(">{}", &text[1..]));
            assert_eq!(foreign.is_ok(), dtype.itemsize() == 1);
        }
    }

    #[test]
    fn each_kind_is_refused_by_name() {
        for (text, named) in [
            (">f8", "byte order"),
            ("|O", "Python objects"),
            ("|O8", "Python objects"),
            ("|S3", "text"),
            ("<U4", "text"),
            ("|T16", "text"),
            ("<M8[s]", "dates"),
            ("<m8[ns]", "time spans"),
            ("|V8", "structured"),
            ("|t1", "bits"),
            ("<f16", "width"),
            ("<c32", "width"),
            ("<i3", "width"),
            ("|b2", "width"),
            ("<f08", "width"),
            ("f", "expected byte order"),
            ("float64", "expected byte order"),
            ("O", "Python objects"),
            ("V8", "structured"),
            ("", "expected byte order"),
            ("<", "expected byte order"),
            ("<f", "expected byte order"),
            ("<f8 ", "expected byte order"),
            ("<f-8", "expected byte order"),
            ("<x8", "expected byte order"),
            ("<ü8", "expected byte order"),
        ] {
            let message = decode(text).expect_err(text).to_string();
            assert!(message.starts_with("typestr: ") && message.contains(named), "{text}: {message}");
        }
    }
}
