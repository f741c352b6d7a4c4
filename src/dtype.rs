//! Element types: DLPack code and width, and the names that array libraries use.

use std::fmt;

use dlpark::ffi::{DLDataType, DLDataTypeCode};

use crate::error::{DTypeError, DTypeErrorKind};

/// An element type that can be shared without a copy: one row of the table below.
///
/// Types narrower than a byte (`int4`, `float4_e2m1fn`, …) are stored one element per byte, as
/// `ml_dtypes` does; DLPack calls that *padded*.
///
/// # Example
/// ```
/// use dlfield::DType;
/// assert_eq!(DType::F64.itemsize(), 8);
/// assert_eq!(DType::from_name("bfloat16").unwrap().name(), "bfloat16");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DType(u8);

struct Row {
    code: DLDataTypeCode,
    bits: u8,
    name: &'static str,
}

macro_rules! table {
    ($($konst:ident = $index:literal, $code:ident, $bits:literal, $name:literal;)+) => {
        const TABLE: &[Row] = &[$(Row { code: DLDataTypeCode::$code, bits: $bits, name: $name }),+];

        impl DType {
            $(
                #[doc = concat!("`", $name, "`.")]
                pub const $konst: DType = DType($index);
            )+
        }
    };
}

table! {
    BOOL = 0, BOOL, 8, "bool";
    I8 = 1, INT, 8, "int8";
    I16 = 2, INT, 16, "int16";
    I32 = 3, INT, 32, "int32";
    I64 = 4, INT, 64, "int64";
    U8 = 5, UINT, 8, "uint8";
    U16 = 6, UINT, 16, "uint16";
    U32 = 7, UINT, 32, "uint32";
    U64 = 8, UINT, 64, "uint64";
    F16 = 9, FLOAT, 16, "float16";
    F32 = 10, FLOAT, 32, "float32";
    F64 = 11, FLOAT, 64, "float64";
    C64 = 12, COMPLEX, 64, "complex64";
    C128 = 13, COMPLEX, 128, "complex128";
    BF16 = 14, BFLOAT, 16, "bfloat16";
    F8_E3M4 = 15, FLOAT8_E3M4, 8, "float8_e3m4";
    F8_E4M3 = 16, FLOAT8_E4M3, 8, "float8_e4m3";
    F8_E4M3B11FNUZ = 17, FLOAT8_E4M3B11FNUZ, 8, "float8_e4m3b11fnuz";
    F8_E4M3FN = 18, FLOAT8_E4M3FN, 8, "float8_e4m3fn";
    F8_E4M3FNUZ = 19, FLOAT8_E4M3FNUZ, 8, "float8_e4m3fnuz";
    F8_E5M2 = 20, FLOAT8_E5M2, 8, "float8_e5m2";
    F8_E5M2FNUZ = 21, FLOAT8_E5M2FNUZ, 8, "float8_e5m2fnuz";
    F8_E8M0FNU = 22, FLOAT8_E8M0FNU, 8, "float8_e8m0fnu";
    F6_E2M3FN = 23, FLOAT6_E2M3FN, 6, "float6_e2m3fn";
    F6_E3M2FN = 24, FLOAT6_E3M2FN, 6, "float6_e3m2fn";
    F4_E2M1FN = 25, FLOAT4_E2M1FN, 4, "float4_e2m1fn";
    I1 = 26, INT, 1, "int1";
    I2 = 27, INT, 2, "int2";
    I4 = 28, INT, 4, "int4";
    U1 = 29, UINT, 1, "uint1";
    U2 = 30, UINT, 2, "uint2";
    U4 = 31, UINT, 4, "uint4";
}

impl DType {
    /// The number of element types.
    pub(crate) const COUNT: usize = TABLE.len();

    /// Iterates over all element types, in the order of the table.
    ///
    /// # Example
    /// ```
    /// use dlfield::DType;
    /// assert!(DType::all().any(|dtype| dtype == DType::BF16));
    /// ```
    pub fn all() -> impl Iterator<Item = DType> {
        (0u8..).take(TABLE.len()).map(DType)
    }

    fn row(self) -> &'static Row {
        &TABLE[usize::from(self.0)]
    }

    /// Returns the position in the table, from 0: a dense key for lookup tables.
    ///
    /// # Example
    /// ```
    /// use dlfield::DType;
    /// assert!(DType::all().enumerate().all(|(position, dtype)| dtype.index() == position));
    /// ```
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Finds a type by its name in NumPy and `ml_dtypes`.
    ///
    /// # Example
    /// ```
    /// use dlfield::DType;
    /// assert_eq!(DType::from_name("float16"), Some(DType::F16));
    /// assert_eq!(DType::from_name("object"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<DType> {
        DType::all().find(|dtype| dtype.name() == name)
    }

    /// Returns the type's name in NumPy and `ml_dtypes`, for example `"float64"`.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::DType::C64.name(), "complex64");
    /// ```
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the DLPack type code, for example `DLDataTypeCode::FLOAT`.
    ///
    /// # Example
    /// ```
    /// use dlfield::DType;
    /// use dlfield::dlpark::ffi::DLDataTypeCode;
    /// assert_eq!(DType::F32.code(), DLDataTypeCode::FLOAT);
    /// ```
    pub fn code(self) -> DLDataTypeCode {
        self.row().code
    }

    /// Returns the width of one element's value in bits; below 8 for padded sub-byte types.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::DType::I4.bits(), 4);
    /// ```
    pub fn bits(self) -> u8 {
        self.row().bits
    }

    /// Returns the bytes from one element to the next in compact storage: a power of two from 1 to 16.
    ///
    /// # Example
    /// ```
    /// use dlfield::DType;
    /// assert_eq!((DType::C128.itemsize(), DType::I4.itemsize()), (16, 1));
    /// ```
    pub fn itemsize(self) -> usize {
        usize::from(self.bits().div_ceil(8))
    }

    /// Returns whether the value is narrower than the byte that stores it.
    ///
    /// # Example
    /// ```
    /// use dlfield::DType;
    /// assert!(DType::I4.is_sub_byte() && !DType::I8.is_sub_byte());
    /// ```
    pub fn is_sub_byte(self) -> bool {
        self.bits() < 8
    }

    /// Converts a DLPack type.
    ///
    /// # Errors
    /// [`DTypeError`] unless code and width are in the table and there is 1 lane.
    ///
    /// # Example
    /// ```
    /// use dlfield::DType;
    /// assert_eq!(DType::from_dlpack(DType::BF16.to_dlpack()), Ok(DType::BF16));
    /// ```
    pub fn from_dlpack(dtype: DLDataType) -> Result<DType, DTypeError> {
        // The two most frequent types, without a search of the table.
        let found = match (dtype.code, dtype.bits) {
            (DLDataTypeCode::FLOAT, 64) => Some(DType::F64),
            (DLDataTypeCode::FLOAT, 32) => Some(DType::F32),
            (code, bits) => DType::all().find(|known| known.code() == code && known.bits() == bits),
        };
        found.filter(|_| dtype.lanes == 1).ok_or_else(|| {
            let expected =
                "a scalar type (lanes = 1) of bool, int, uint, float, bfloat, complex, float8, float6 or float4";
            let got = format_args!("DLPack code {} with {} bits and {} lanes", dtype.code.0, dtype.bits, dtype.lanes);
            DTypeError::new("dtype", &expected, &got).with_kind(DTypeErrorKind::Unsupported)
        })
    }

    /// Converts the type to DLPack's, with one lane.
    ///
    /// # Example
    /// ```
    /// use dlfield::DType;
    /// assert_eq!(DType::F64.to_dlpack().bits, 64);
    /// ```
    pub fn to_dlpack(self) -> DLDataType {
        DLDataType { code: self.code(), bits: self.bits(), lanes: 1 }
    }
}

/// Returns the error for an element type other than the expected one.
#[cold]
pub(crate) fn mismatch(found: DType, expected: &dyn fmt::Display) -> DTypeError {
    DTypeError::new("dtype", expected, &found).with_kind(DTypeErrorKind::Mismatch)
}

/// Returns the error for a cast that the rule "same_kind" does not allow.
#[cold]
pub(crate) fn no_cast(from: DType, to: DType) -> DTypeError {
    let expected = "a cast of NumPy's types and bfloat16 by the rule \"same_kind\": to the same kind of number, or to a later one \
                    of bool, uint, int, float, complex";
    DTypeError::new("dtype", &expected, &format_args!("a cast of {from} to {to}")).with_kind(DTypeErrorKind::Cast)
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DType({})", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_point_at_their_rows() {
        for (konst, name) in [(DType::BOOL, "bool"), (DType::BF16, "bfloat16"), (DType::U4, "uint4")] {
            assert_eq!(konst.name(), name);
        }
        assert_eq!(DType::all().count(), usize::from(DType::U4.0) + 1);
    }

    #[test]
    fn every_type_survives_dlpack_and_name() {
        for dtype in DType::all() {
            assert_eq!(DType::from_dlpack(dtype.to_dlpack()), Ok(dtype));
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            assert!(dtype.itemsize().is_power_of_two() && dtype.itemsize() <= 16);
        }
    }

    #[test]
    fn lanes_and_unknown_codes_are_refused() {
        let vector = DLDataType { lanes: 4, ..DType::F32.to_dlpack() };
        assert!(DType::from_dlpack(vector).is_err());
        let handle = DLDataType { code: DLDataTypeCode::OPAQUEHANDLE, bits: 64, lanes: 1 };
        assert!(DType::from_dlpack(handle).is_err());
    }
}
