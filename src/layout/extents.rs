//! Numbers per dimension.

use smallvec::SmallVec;

/// One number per dimension. Up to six dimensions need no allocation: a grid and three data dimensions.
pub type Extents = SmallVec<[i64; 6]>;

/// The halo of a field: `(lower, upper)` widths in elements, one pair per dimension.
pub type Halo = SmallVec<[(i64, i64); 4]>;

/// The largest number of dimensions of a field: NumPy's limit, so that every tensor has an array view.
pub const MAX_NDIM: usize = 64;
