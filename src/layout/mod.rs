//! Layout arithmetic: where each element of a field lies. Pure, checked, 64-bit.
//!
//! A [`Spec`] says what a user wants; [`Spec::place`] turns it into a [`AllocationLayout`] that says where every
//! element goes, or a [`LayoutError`] that names the argument at fault.

mod allocation_layout;
mod order;
mod overlap;
mod padding;
mod span;
mod spec;
mod strides;

use std::fmt;

use smallvec::SmallVec;

pub use allocation_layout::AllocationLayout;
pub(crate) use allocation_layout::offset;
pub use order::Layout;
pub use overlap::{Strided, overlap};
pub use padding::Padding;
pub use span::{byte_span, is_compact, is_contiguous, is_unshared};
pub use spec::Spec;
pub(crate) use strides::{gcd, lcm};

/// One number per dimension. Six dimensions fit without an allocation: a grid and three data dimensions.
pub type Extents = SmallVec<[i64; 6]>;

/// `(lower, upper)` ghost widths, one pair per dimension.
pub type Halo = SmallVec<[(i64, i64); 4]>;

/// The most dimensions a field may have: NumPy's limit, so that every tensor has an array view.
pub const MAX_NDIM: usize = 64;

/// What is wrong with a shape, a layout or an alignment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// More dimensions than any array library takes.
    #[error("shape: {got} dimensions; allowed are at most {MAX_NDIM}")]
    TooManyDims {
        /// Dimensions asked for.
        got: usize,
    },
    /// A negative extent.
    #[error("shape: extent {got} at axis {axis}; allowed is 0 or more")]
    NegativeExtent {
        /// The dimension.
        axis: usize,
        /// The extent.
        got: i64,
    },
    /// A field that no 64-bit address space holds.
    #[error(
        "shape: {shape:?} with {itemsize}-byte elements, layout and padding needs more bytes than 64-bit sizes can \
         count; allowed are less than 2**63"
    )]
    Overflow {
        /// The shape.
        shape: Vec<i64>,
        /// Bytes of one element.
        itemsize: usize,
    },
    /// A keyword with another length than the number of dimensions.
    #[error("{argument}: {got} entries for {ndim} dimensions; allowed is one entry for each dimension")]
    Length {
        /// The keyword.
        argument: &'static str,
        /// Entries given.
        got: usize,
        /// Dimensions of the field.
        ndim: usize,
    },
    /// A layout that is no permutation.
    #[error("layout: {got:?} for {ndim} dimensions; allowed is a permutation of 0..{ndim}, 0 for the largest stride")]
    NotPermutation {
        /// The layout given.
        got: Vec<i64>,
        /// Dimensions of the field.
        ndim: usize,
    },
    /// An alignment below one byte.
    #[error("alignment_size: {got} bytes; allowed is 1 or more")]
    AlignmentSize {
        /// Bytes asked for.
        got: i64,
    },
    /// An alignment whose common multiple with the element size or the block alignment overflows.
    #[error("alignment_size: {got} bytes is too large to align {itemsize}-byte elements to")]
    AlignmentOverflow {
        /// Bytes asked for.
        got: i64,
        /// Bytes of one element.
        itemsize: usize,
    },
    /// Alignments of two operands whose common multiple overflows.
    #[error(
        "alignment_size: {left} and {right} bytes have no common multiple below 2**63: copy one to another alignment"
    )]
    AlignmentMultiple {
        /// Bytes of one operand, or of several together.
        left: i64,
        /// Bytes of the next.
        right: i64,
    },
    /// An index to align outside the field.
    #[error("aligned_index: {got} at axis {axis} of extent {extent}; allowed is 0 to {extent}")]
    AlignedIndex {
        /// The dimension.
        axis: usize,
        /// The index.
        got: i64,
        /// Extent of the dimension.
        extent: i64,
    },
    /// An index to align that is so far away that bytes cannot be counted to it.
    #[error("aligned_index: {got:?} is more bytes away from index 0 than 64-bit sizes can count")]
    AlignedIndexOverflow {
        /// The index.
        got: Vec<i64>,
    },
    /// Ghost widths that are negative or wider than the field.
    #[error(
        "halo: ({lower}, {upper}) at axis {axis} of extent {extent}; allowed is 0 or more each, together at most the extent"
    )]
    Halo {
        /// The dimension.
        axis: usize,
        /// Lower width.
        lower: i64,
        /// Upper width.
        upper: i64,
        /// Extent of the dimension.
        extent: i64,
    },
    /// An origin outside the field.
    #[error("origin: {got} at axis {axis} of extent {extent}; allowed is 0 to {extent}")]
    Origin {
        /// The dimension.
        axis: usize,
        /// The index.
        got: i64,
        /// Extent of the dimension.
        extent: i64,
    },
    /// Two fields that should have the same shape.
    #[error("shape: {got:?}; wanted is {wanted:?}")]
    Shapes {
        /// The shape that is fixed.
        wanted: Vec<i64>,
        /// The shape that differs.
        got: Vec<i64>,
    },
    /// Operands with different sizes along one label.
    #[error(
        "shape: dimension {label:?} has {} points in operand {} and {} in operand {}; allowed are equal sizes, or 1",
        first.1, first.0, second.1, second.0
    )]
    Operands {
        /// The dimension.
        label: String,
        /// Position and size of the one.
        first: (usize, i64),
        /// Position and size of the other.
        second: (usize, i64),
    },
    /// Operands whose halos differ along one label.
    #[error(
        "halo: {first}, and {second}, so that their domains would not meet along {label:?}; allowed are equal ones: take the \
         domain_view of both, or give both the same halo"
    )]
    Halos {
        /// The dimension.
        label: String,
        /// The one.
        first: Box<Ghosts>,
        /// The other.
        second: Box<Ghosts>,
    },
    /// An extent that cannot be repeated to another one.
    #[error(
        "shape: {got} points in dimension {label:?} cannot become {wanted}; allowed are {wanted}, or 1 to repeat it"
    )]
    Stretch {
        /// The dimension.
        label: String,
        /// Its extent.
        got: i64,
        /// The extent wanted.
        wanted: i64,
    },
    /// An extent that a stencil has fixed to another number.
    #[error("shape: {got} points in dimension {label:?}; wanted are {wanted}")]
    Extent {
        /// The dimension.
        label: String,
        /// Its extent.
        got: i64,
        /// The extent that is fixed.
        wanted: i64,
    },
    /// A first compute point at an address that a stencil cannot start at.
    #[error(
        "alignment_size: the first compute point is at {address:#x}; wanted is a multiple of {wanted} bytes: allocate the \
         field with alignment_size={wanted} and its origin as aligned_index"
    )]
    Alignment {
        /// The address of the element at the origin.
        address: usize,
        /// Bytes.
        wanted: i64,
    },
    /// A field whose elements are not all there is of its memory.
    #[error(
        "strides: {strides:?} elements for shape {shape:?} leave gaps, or the elements are not all there is of the \
         allocation; allowed is a compact field with its whole memory: take a view, or a compact copy"
    )]
    Gaps {
        /// The shape.
        shape: Vec<i64>,
        /// The strides, in elements.
        strides: Vec<i64>,
    },
    /// A field to be written whose elements share memory with each other.
    #[error(
        "strides: {strides:?} elements for shape {shape:?} put several elements into the same memory, and the field is \
         written; allowed are strides that each reach past the elements of all smaller ones: pass a copy"
    )]
    SharedElements {
        /// The shape.
        shape: Vec<i64>,
        /// The strides, in elements.
        strides: Vec<i64>,
    },
    /// Another number of dimensions than is wanted.
    #[error("ndim: {got} dimensions of shape {shape:?}; wanted are {wanted}")]
    Rank {
        /// Number of dimensions.
        got: usize,
        /// The number wanted.
        wanted: usize,
        /// Extents.
        shape: Vec<i64>,
    },
    /// Elements in another order than is wanted.
    #[error(
        "strides: {strides:?} elements for shape {shape:?} are not {wanted}; wanted are elements that follow each other \
         without gaps in that order: pass a copy"
    )]
    Order {
        /// Extents.
        shape: Vec<i64>,
        /// Strides in elements.
        strides: Vec<i64>,
        /// The order wanted, e.g. `"C order"`.
        wanted: &'static str,
    },
    /// Elements at addresses where the processor does not want them.
    #[error("data: the elements are at {address:#x}, off the multiples of {wanted} bytes that they need: pass a copy")]
    Unaligned {
        /// Address of an element.
        address: usize,
        /// Bytes it has to be a multiple of.
        wanted: usize,
    },
    /// A sub-array element type whose dimensions are not the data's last.
    #[error(
        "dtype: sub-array of shape {wanted:?}, but the data has shape {shape:?}; allowed is data that ends with it"
    )]
    SubArray {
        /// The data's shape.
        shape: Vec<i64>,
        /// The sub-array's shape.
        wanted: Vec<i64>,
    },
    /// A padding nobody knows.
    #[error("padding: {got:?}; allowed is 'none' or 'row'")]
    Padding {
        /// What was given.
        got: String,
    },
}

/// Where an operand of arithmetic says that its domain lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ghosts {
    /// What the operand is called.
    pub operand: String,
    /// Its ghost widths.
    pub halo: Vec<(i64, i64)>,
    /// Its first compute point.
    pub origin: Vec<i64>,
}

impl fmt::Display for Ghosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has halo {:?} and origin {:?}", self.operand, self.halo, self.origin)
    }
}

/// Checks that a keyword has one entry per dimension.
pub(crate) fn check_len(argument: &'static str, got: usize, ndim: usize) -> Result<(), LayoutError> {
    if got == ndim { Ok(()) } else { Err(LayoutError::Length { argument, got, ndim }) }
}

/// Checks ghost widths against the extents they are part of.
pub(crate) fn check_halo(halo: &[(i64, i64)], shape: &[i64]) -> Result<(), LayoutError> {
    check_len("halo", halo.len(), shape.len())?;
    for (axis, ((lower, upper), extent)) in halo.iter().copied().zip(shape.iter().copied()).enumerate() {
        let fits = lower >= 0 && upper >= 0 && lower.checked_add(upper).is_some_and(|both| both <= extent);
        if !fits {
            return Err(LayoutError::Halo { axis, lower, upper, extent });
        }
    }
    Ok(())
}

/// Checks that the first compute point lies in the field or just behind it.
pub(crate) fn check_origin(origin: &[i64], shape: &[i64]) -> Result<(), LayoutError> {
    check_len("origin", origin.len(), shape.len())?;
    for (axis, (got, extent)) in origin.iter().copied().zip(shape.iter().copied()).enumerate() {
        if !(0..=extent).contains(&got) {
            return Err(LayoutError::Origin { axis, got, extent });
        }
    }
    Ok(())
}
