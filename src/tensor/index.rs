//! Index expressions of views, and their errors.

use crate::error::{Count, IndexError, IndexErrorKind};

/// The positions that a view takes from one dimension.
///
/// # Example
/// ```
/// use dlfield::{DType, Index, Spec, Tensor};
/// let field = Tensor::zeros(&Spec::new(&[6, 5, 4], DType::F64)).unwrap();
/// let index = [Index::At(-1), Index::Range { start: 1, len: 2, step: 2 }, Index::All];
/// assert_eq!(field.view(&index).unwrap().descriptor().shape(), [2, 4]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Index {
    /// One position; negative ones count from the end. The dimension and its label disappear.
    At(i64),
    /// `len` positions from `start`, `step` apart; the dimension keeps its label.
    Range {
        /// First position.
        start: i64,
        /// Number of positions.
        len: i64,
        /// Distance between positions, not 0; negative ones go backwards.
        step: i64,
    },
    /// All positions.
    All,
}

/// Returns the error for more entries than dimensions.
#[cold]
pub(crate) fn too_many(got: usize, ndim: usize) -> IndexError {
    let got = format_args!("{got} for {}", Count(ndim, "dimension"));
    IndexError::new("index", &format_args!("at most {}", Count(ndim, "entry")), &got).with_kind(IndexErrorKind::TooMany)
}

/// Returns the error for a position outside the field.
#[cold]
pub(super) fn out_of_bounds(axis: usize, got: i64, extent: i64) -> IndexError {
    let expected = match extent {
        0 => format!("no position, as there are no elements at axis {axis}"),
        _ => format!("-{extent} to {} at axis {axis} of extent {extent}", extent - 1),
    };
    IndexError::new("index", &expected, &got)
}
