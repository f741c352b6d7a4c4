//! Sizes by name: extents on which all fields of a call agree.

use std::fmt;
use std::sync::Arc;

use crate::descriptor::Descriptor;
use crate::error::{LayoutError, Result};

/// What a stencil wants of one extent.
///
/// # Example
/// ```
/// use dlfield::{DType, Dims, FieldSpec, Signature, Size, Spec, Tensor};
///
/// # fn main() -> dlfield::Result<()> {
/// let spec = |size| FieldSpec::new(DType::F64, Dims::standard(1)).shape(&[size]);
/// let signature = Signature::new([("centers", spec(Size::parse("I")?)), ("faces", spec(Size::parse("I + 1")?))])?;
/// let (four, five) = (Tensor::zeros(&Spec::new(&[4], DType::F64))?, Tensor::zeros(&Spec::new(&[5], DType::F64))?);
/// assert!(signature.bind(&[("centers", four.descriptor()), ("faces", five.descriptor())]).is_ok());
/// let error = signature.bind(&[("centers", four.descriptor()), ("faces", four.descriptor())]).unwrap_err();
/// assert!(error.to_string().starts_with("field \"faces\": expected I = 4, as in field \"centers\", got 3, as 4 points are I+1"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Size {
    /// Any extent.
    Any,
    /// This extent.
    Fixed(i64),
    /// The size of this name plus an offset; all fields of a call agree on the size.
    Named {
        /// The name.
        name: Arc<str>,
        /// What the extent has more than the size.
        offset: i64,
    },
}

impl Size {
    /// Parses a name with an optional offset: `"I"`, `"I+1"`, `"I - 2"`. A name has letters, digits and `_`, and no digit in
    /// front.
    ///
    /// # Errors
    /// [`LayoutError`] for any other text, and for offsets of 2**32 and more.
    ///
    /// # Example
    /// ```
    /// use dlfield::Size;
    /// assert_eq!(Size::parse("I - 2").unwrap(), Size::Named { name: "I".into(), offset: -2 });
    /// assert!(Size::parse("2 I").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Size, LayoutError> {
        let wrong = || {
            let expected = "None, an integer, or a size's name with an optional offset, as \"I\" or \"I+1\"";
            LayoutError::new("shape", &expected, &format_args!("{text:?}"))
        };
        let (name, offset) = match text.find(['+', '-']) {
            None => (text.trim(), 0),
            Some(sign) => {
                let digits = text[sign + 1..].trim();
                let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
                let offset = digits.parse::<u32>().ok().filter(|_| plain).map(i64::from).ok_or_else(wrong)?;
                (text[..sign].trim(), if text[sign..].starts_with('-') { -offset } else { offset })
            }
        };
        let named = name.chars().all(|letter| letter == '_' || letter.is_alphanumeric());
        if !named || name.chars().next().is_none_or(char::is_numeric) {
            return Err(wrong());
        }
        Ok(Size::Named { name: name.into(), offset })
    }
}

/// A fixed extent, or any for `None`.
impl From<Option<i64>> for Size {
    fn from(extent: Option<i64>) -> Size {
        extent.map_or(Size::Any, Size::Fixed)
    }
}

/// `*` for any extent, a number, or a name with its offset.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Any => f.write_str("*"),
            Size::Fixed(extent) => write!(f, "{extent}"),
            Size::Named { name, offset: 0 } => f.write_str(name),
            Size::Named { name, offset } => write!(f, "{name}{offset:+}"),
        }
    }
}

pub(super) fn dimension(field: &Descriptor, axis: usize) -> String {
    let label = field.dims().and_then(|dims| dims.iter().nth(axis));
    label.map_or_else(|| format!("axis {axis}"), |label| format!("dimension {:?}", label.to_string()))
}
