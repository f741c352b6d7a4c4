//! Index expressions of views, and their errors.

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

/// An invalid index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// More entries than dimensions.
    #[error("index: {got} entries for {ndim} dimensions; allowed are at most {ndim}")]
    TooMany {
        /// Entries given.
        got: usize,
        /// Number of dimensions.
        ndim: usize,
    },
    /// A position outside the field.
    #[error("index: {got} at axis {axis} of extent {extent}; allowed is {}", positions(*extent))]
    OutOfBounds {
        /// The dimension.
        axis: usize,
        /// The position.
        got: i64,
        /// Its extent.
        extent: i64,
    },
    /// A range that leaves the field or has step 0.
    #[error("index: range of {len} from {start} by {step} at axis {axis} is outside the extent {extent}")]
    Range {
        /// The dimension.
        axis: usize,
        /// First position.
        start: i64,
        /// Number of positions.
        len: i64,
        /// Distance.
        step: i64,
        /// Its extent.
        extent: i64,
    },
}

/// The positions that an axis has, for an error.
fn positions(extent: i64) -> String {
    if extent == 0 { "none: there are no elements".to_owned() } else { format!("-{extent} to {}", extent - 1) }
}
