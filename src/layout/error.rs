//! The error of layouts.

use std::fmt;

use super::extents::MAX_NDIM;

/// An invalid shape, layout, alignment, halo or origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// More than [`MAX_NDIM`] dimensions.
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
    /// A negative number of points that a kernel reads outside of its domain.
    #[error("boundary: {got:?} at axis {axis}; allowed is 0 or more each")]
    NegativeBoundary {
        /// The dimension.
        axis: usize,
        /// The points below and above the domain.
        got: (i64, i64),
    },
    /// An origin with fewer points below it than a kernel reads there.
    #[error(
        "origin: {got:?}; allowed is {least:?} or more, as the kernel reads points below its domain: pass a field with a halo, or \
         state it: from_dlpack(array, origin={})",
        tuple(least)
    )]
    Boundary {
        /// The origin found.
        got: Vec<i64>,
        /// The smallest origin allowed in each dimension.
        least: Vec<i64>,
    },
    /// A field of 2**63 bytes or more.
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
    /// An argument whose length differs from the number of dimensions.
    #[error("{argument}: {got} entries for {ndim} dimensions; allowed is one entry for each dimension")]
    Length {
        /// The argument.
        argument: &'static str,
        /// Entries given.
        got: usize,
        /// Dimensions of the field.
        ndim: usize,
    },
    /// A view of another shape with another number of elements.
    #[error("shape: {to:?} for a field of shape {from:?}; allowed is a shape with as many elements")]
    Reshape {
        /// The shape of the field.
        from: Vec<i64>,
        /// The shape asked for.
        to: Vec<i64>,
    },
    /// A view of another shape that no strides can describe.
    #[error(
        "shape: {to:?} for a field of shape {from:?} with strides of {strides:?} elements is no view of it; allowed is a \
         split or merge of contiguous dimensions: reshape a copy in C order, from_array(field, backend=\"C\")"
    )]
    ReshapeCopies {
        /// The shape of the field.
        from: Vec<i64>,
        /// The strides of the field, in elements.
        strides: Vec<i64>,
        /// The shape asked for.
        to: Vec<i64>,
    },
    /// A layout that is not a permutation.
    #[error(
        "layout: {got:?} for {ndim} dimensions; allowed is each of 0 to {} once, 0 for the largest stride",
        ndim.saturating_sub(1)
    )]
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
    #[error(
        "alignment_size: {got} bytes is too large for {itemsize}-byte elements: the common multiple overflows 64 bits"
    )]
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
    /// Memory that is too small for the field that is to be laid into it.
    #[error(
        "buffer: {got} bytes for a field of {wanted}, before which {skipped} are left out to align it to {alignment} bytes: \
         {missing} bytes are missing"
    )]
    BufferTooSmall {
        /// Bytes of the memory.
        got: usize,
        /// Bytes of the field with its padding.
        wanted: usize,
        /// Bytes before the first aligned address.
        skipped: usize,
        /// The alignment, in bytes.
        alignment: usize,
        /// Bytes that are missing.
        missing: usize,
    },
    /// An aligned index before the field, or beyond the index after its last one.
    #[error("aligned_index: {got} at axis {axis} of extent {extent}; allowed is 0 to {extent}")]
    AlignedIndex {
        /// The dimension.
        axis: usize,
        /// The index.
        got: i64,
        /// Extent of the dimension.
        extent: i64,
    },
    /// An aligned index whose distance from index 0 overflows 64 bits of bytes.
    #[error("aligned_index: {got:?} is more bytes away from index 0 than 64-bit sizes can count")]
    AlignedIndexOverflow {
        /// The index.
        got: Vec<i64>,
    },
    /// Halo widths that are negative, or together wider than the field.
    #[error(
        "halo: ({lower}, {upper}) at axis {axis} of extent {extent}; allowed is 0 or more each, together at most the extent, which \
         includes them"
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
    /// Two fields whose shapes must be equal and are not.
    #[error("shape: {got:?}; wanted is {wanted:?}")]
    Shapes {
        /// The shape wanted.
        wanted: Vec<i64>,
        /// The shape found.
        got: Vec<i64>,
    },
    /// Operands with different extents along one label.
    #[error(
        "shape: dimension {label:?} has {} points in operand {} and {} in operand {}; allowed are equal sizes, or 1",
        first.1, first.0, second.1, second.0
    )]
    Operands {
        /// The dimension.
        label: String,
        /// Position and extent of one operand.
        first: (usize, i64),
        /// Position and extent of the other.
        second: (usize, i64),
    },
    /// Operands whose halos or origins differ along one label.
    #[error("{}", domains_differ(label, first, second))]
    Halos {
        /// The dimension.
        label: String,
        /// One operand.
        first: Box<Ghosts>,
        /// The other.
        second: Box<Ghosts>,
    },
    /// An extent that cannot be repeated to the extent wanted.
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
    /// An extent that differs from the one a stencil has fixed.
    #[error("shape: {got} points in {dimension}; wanted are {wanted}")]
    Extent {
        /// The dimension: its label, or its number.
        dimension: String,
        /// Its extent.
        got: i64,
        /// The extent that is fixed.
        wanted: i64,
    },
    /// The text of a named size that cannot be parsed.
    #[error(
        "shape: {got:?}; allowed is None, an integer, or a size's name with an optional offset, as \"I\" or \"I+1\""
    )]
    SizeText {
        /// The text.
        got: String,
    },
    /// An extent below the offset of its named size.
    #[error("shape: {got} points in {dimension}, for {size}; wanted are {least} or more")]
    SizeBelowZero {
        /// The dimension: its label, or its number.
        dimension: String,
        /// The name of the size, with the offset.
        size: String,
        /// The extent.
        got: i64,
        /// The least extent.
        least: i64,
    },
    /// An origin whose address is not aligned as a stencil needs.
    #[error(
        "alignment_size: the first compute point is at {address:#x}; wanted is a multiple of {wanted} bytes: allocate the \
         field with alignment_size={wanted} and its origin as aligned_index"
    )]
    Alignment {
        /// The address of the element at the origin.
        address: usize,
        /// Bytes that it must be a multiple of.
        wanted: i64,
    },
    /// A start of the memory that is not aligned as a preset says.
    #[error(
        "alignment_size: the element at index 0 is at {address:#x}; wanted is a multiple of {wanted} bytes: allocate the \
         field with the preset of its FieldSpec"
    )]
    BaseAlignment {
        /// The address of the element at index 0.
        address: usize,
        /// Bytes that it must be a multiple of.
        wanted: i64,
    },
    /// A field with gaps, or one that does not cover its whole allocation.
    #[error(
        "strides: {strides:?} elements for shape {shape:?} leave gaps, or do not cover the whole allocation; allowed is \
         a compact field that covers its allocation: take a view, or a compact copy"
    )]
    Gaps {
        /// The shape.
        shape: Vec<i64>,
        /// The strides, in elements.
        strides: Vec<i64>,
    },
    /// A field to write whose elements share memory with each other.
    #[error(
        "strides: {strides:?} elements for shape {shape:?} may make elements share memory, and the field is written; allowed \
         are strides that are each larger than the span of all smaller ones: pass a copy"
    )]
    SharedElements {
        /// The shape.
        shape: Vec<i64>,
        /// The strides, in elements.
        strides: Vec<i64>,
    },
    /// Arrays to visit together whose shapes differ.
    #[error(
        "shape: {got:?} of the array at position {position}; the first array has {wanted:?}; allowed are arrays of one shape: \
         slice or broadcast them first"
    )]
    ZippedShapes {
        /// The position of the array among the arguments, from 0 on.
        position: usize,
        /// Its shape.
        got: Vec<usize>,
        /// The shape of the first array.
        wanted: Vec<usize>,
    },
    /// A number of dimensions other than the one wanted.
    #[error("ndim: {got} dimensions of shape {shape:?}; wanted are {wanted}")]
    Rank {
        /// Number of dimensions.
        got: usize,
        /// The number wanted.
        wanted: usize,
        /// Extents.
        shape: Vec<i64>,
    },
    /// Elements in an order other than the one wanted.
    #[error(
        "strides: {strides:?} elements for shape {shape:?} are not {wanted}; wanted are contiguous elements in that order: \
         pass a copy"
    )]
    Order {
        /// Extents.
        shape: Vec<i64>,
        /// Strides in elements.
        strides: Vec<i64>,
        /// The order wanted, for example `"C order"`.
        wanted: &'static str,
    },
    /// Elements that are not aligned for their type.
    #[error("data: the address {address:#x} is not aligned; wanted is a multiple of {wanted} bytes: pass a copy")]
    Unaligned {
        /// Address of an element.
        address: usize,
        /// Bytes that it must be a multiple of.
        wanted: usize,
    },
    /// A sub-array element type whose shape is not the end of the data's shape.
    #[error(
        "dtype: sub-array of shape {wanted:?}, but the data has shape {shape:?}; allowed is data that ends with it"
    )]
    SubArray {
        /// The data's shape.
        shape: Vec<i64>,
        /// The sub-array's shape.
        wanted: Vec<i64>,
    },
    /// An unknown padding.
    #[error("padding: {got:?}; allowed is 'none' or 'row'")]
    Padding {
        /// What was given.
        got: String,
    },
}

/// Integers as a tuple of Python.
#[cold]
fn tuple(numbers: &[i64]) -> String {
    match numbers {
        [number] => format!("({number},)"),
        numbers => format!("({})", numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// The text of [`LayoutError::Halos`].
#[cold]
fn domains_differ(label: &str, first: &Ghosts, second: &Ghosts) -> String {
    if [first, second].iter().all(|each| each.halo.iter().all(|widths| *widths == (0, 0))) {
        return format!(
            "origin: {} has origin {:?}, and {} has origin {:?}, so that elements of one index are different points along \
             {label:?}; slice both to the points that they share, or state one origin for both: from_dlpack(field, origin=...)",
            first.operand, first.origin, second.operand, second.origin
        );
    }
    format!(
        "halo: {first}, and {second}, so that their domains differ along {label:?}; allowed are equal halos: take the \
         domain_view of both, or give both the same halo"
    )
}

/// Halo and origin of an operand, for an error.
///
/// # Example
/// ```
/// use dlfield::arithmetic::check_halos;
/// use dlfield::{DType, LayoutError, Spec, Tensor};
/// let field = |width| Tensor::zeros(&Spec::new(&[6], DType::F64).halo(&[(width, width)])).unwrap();
/// let Err(LayoutError::Halos { first, .. }) = check_halos(&[&field(1), &field(2)]) else { unreachable!() };
/// assert_eq!(first.to_string(), "operand 0 has halo [(1, 1)] and origin [1]");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ghosts {
    /// The operand's name.
    pub operand: String,
    /// Its `(lower, upper)` halo widths.
    pub halo: Vec<(i64, i64)>,
    /// Its origin.
    pub origin: Vec<i64>,
}

impl fmt::Display for Ghosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has halo {:?} and origin {:?}", self.operand, self.halo, self.origin)
    }
}
