//! Casts from one element type to another, by NumPy's `same_kind` rule.

mod cast;
mod cast_loop;
mod float16;
mod rows;

pub(super) use self::cast_loop::CastLoop;
use crate::dtype::DType;

/// The conversion of elements in a copy.
#[derive(Clone, Copy)]
pub(super) enum Conversion {
    /// Elements keep their bits.
    None,
    /// Elements are converted from a type of `itemsize` bytes.
    Convert { row: CastLoop, itemsize: usize },
}

/// The kind of a type's numbers. A cast may go to the same kind or to a later one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NumberKind {
    Bool,
    Unsigned,
    Signed,
    Real,
    Complex,
}

/// Returns the kind; `None` for types that this crate does not convert.
fn kind(dtype: DType) -> Option<NumberKind> {
    Some(match dtype {
        DType::BOOL => NumberKind::Bool,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => NumberKind::Unsigned,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => NumberKind::Signed,
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => NumberKind::Real,
        DType::C64 | DType::C128 => NumberKind::Complex,
        _ => return None,
    })
}

/// Returns whether [`crate::Tensor::copy_of`] and [`crate::Tensor::assign`] convert elements of one type to another.
///
/// The rule is NumPy's `same_kind` for bool, integers of 8 bits and more, `float16` to `float64`, complex numbers and
/// `bfloat16`: to any type of the same kind, or of a later one of bool, unsigned, signed, real, complex. `bfloat16` does not
/// cast to `float16`, as in `ml_dtypes`; nor do complex numbers cast to `bfloat16`, which `ml_dtypes` allows by dropping the
/// imaginary part. All other types cast to themselves only.
///
/// # Example
/// ```
/// use dlfield::{DType, can_cast};
/// assert!(can_cast(DType::F64, DType::F32) && can_cast(DType::I64, DType::BF16));
/// assert!(!can_cast(DType::F32, DType::I64) && !can_cast(DType::I8, DType::U64));
/// ```
pub fn can_cast(from: DType, to: DType) -> bool {
    let by_kind = || matches!((kind(from), kind(to)), (Some(from), Some(to)) if from <= to);
    from == to || by_kind() && (from, to) != (DType::BF16, DType::F16)
}

impl Conversion {
    /// Returns the conversion from `from` to `to`; `None` if [`can_cast`] is false.
    pub(super) fn between(from: DType, to: DType) -> Option<Conversion> {
        let integers = |dtype| matches!(kind(dtype), Some(NumberKind::Unsigned | NumberKind::Signed));
        if from == to || can_cast(from, to) && integers(from) && integers(to) && from.itemsize() == to.itemsize() {
            return Some(Conversion::None);
        }
        let row = can_cast(from, to).then(|| rows::between(from, to)).flatten()?;
        Some(Conversion::Convert { row, itemsize: from.itemsize() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cast_that_is_allowed_has_its_loop() {
        for (from, to) in DType::all().flat_map(|from| DType::all().map(move |to| (from, to))) {
            let found = Conversion::between(from, to);
            assert_eq!(found.is_some(), can_cast(from, to), "{from} to {to}");
            let itemsize = match found {
                Some(Conversion::Convert { itemsize, .. }) => itemsize,
                _ => continue,
            };
            assert_eq!(itemsize, from.itemsize());
        }
    }

    /// One row for each type, as `numpy.can_cast(from, to, "same_kind")` returns it with ml_dtypes 0.6, except for casts of
    /// complex numbers to `bfloat16`.
    #[test]
    fn the_rule_is_numpys() {
        const TYPES: &str = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 \
                             bfloat16";
        const RULE: [&str; 15] = [
            "111111111111111",
            ".1111....111111",
            ".1111....111111",
            ".1111....111111",
            ".1111....111111",
            ".11111111111111",
            ".11111111111111",
            ".11111111111111",
            ".11111111111111",
            ".........111111",
            ".........111111",
            ".........111111",
            "............11.",
            "............11.",
            "..........11111",
        ];
        let types: Vec<DType> = TYPES.split(' ').filter_map(DType::from_name).collect();
        for (from, row) in types.iter().zip(RULE) {
            let found: String = types.iter().map(|to| if can_cast(*from, *to) { '1' } else { '.' }).collect();
            assert_eq!(found, row, "{from}");
        }
        assert!(!can_cast(DType::F8_E5M2, DType::F32) && can_cast(DType::F8_E5M2, DType::F8_E5M2));
    }
}
