//! The padding between rows.

use crate::error::LayoutError;
use std::fmt;
use std::str::FromStr;

/// The padding between the rows of a field.
///
/// # Example
/// ```
/// use dlfield::{DType, Padding, Spec};
/// let spec = Spec::new(&[3, 5], DType::F64).alignment_size(64);
/// assert_eq!(spec.clone().padding(Padding::Row).place().unwrap().strides, [8, 1]);
/// assert_eq!(spec.padding(Padding::None).place().unwrap().strides, [5, 1]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Padding {
    /// Rows follow each other without gaps.
    None,
    /// Each row is lengthened so that the next one is aligned at the aligned index too. The last row is lengthened as well: a
    /// kernel that works in whole vectors may run to the end of any row.
    Row,
}

impl Padding {
    /// Returns the default padding; both sizes are in bytes. Rows are lengthened only for an alignment above the element
    /// size: single elements have a smaller one anyway.
    ///
    /// # Example
    /// ```
    /// use dlfield::Padding;
    /// assert_eq!(Padding::default_for(8, 8), Padding::None);
    /// assert_eq!(Padding::default_for(64, 8), Padding::Row);
    /// ```
    pub fn default_for(alignment_size: i64, itemsize: i64) -> Padding {
        if alignment_size <= itemsize { Padding::None } else { Padding::Row }
    }
}

impl FromStr for Padding {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Padding, LayoutError> {
        match text {
            "none" => Ok(Padding::None),
            "row" => Ok(Padding::Row),
            _ => Err(LayoutError::new("padding", &"'none' or 'row'", &format_args!("{text:?}"))),
        }
    }
}

impl fmt::Display for Padding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Padding::None => "none",
            Padding::Row => "row",
        })
    }
}
