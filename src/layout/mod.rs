//! Layout arithmetic: computes where each element of a field is. Pure, checked, 64-bit.
//!
//! [`Spec::place`] turns a [`Spec`], what a user wants to allocate, into an [`AllocationLayout`], the offset of every element,
//! or into a [`LayoutError`] that names the argument at fault.

use crate::error::{Count, LayoutError, LayoutErrorKind, Tuple};

mod allocation_layout;
pub(crate) mod extents;
mod metadata;
mod order;
pub(crate) mod overlap;
mod padding;
mod promise;
pub(crate) mod span;
mod spec;
mod strides;

pub use allocation_layout::AllocationLayout;
pub use extents::MAX_NDIM;
pub(crate) use extents::{Extents, Halo};
pub use metadata::Metadata;
pub(crate) use metadata::{check_halo, check_origin};
pub use order::Layout;
pub(crate) use overlap::{Strided, gcd, overlap};
pub use padding::Padding;
pub(crate) use promise::Promise;
pub(crate) use span::byte_strided_reach;
pub(crate) use span::is_compact;
pub(crate) use span::is_unshared;
pub(crate) use span::{byte_span, is_contiguous, offset};
pub use spec::Spec;
pub(crate) use strides::lcm;

/// Checks that an argument has one entry per dimension.
pub(crate) fn check_len(argument: &'static str, got: usize, ndim: usize) -> Result<(), LayoutError> {
    if got == ndim { Ok(()) } else { Err(wrong_count(argument, got, ndim)) }
}

/// Returns the error for an argument whose length differs from the number of dimensions.
#[cold]
pub(crate) fn wrong_count(argument: &str, got: usize, ndim: usize) -> LayoutError {
    let got = format_args!("{} for {}", Count(got, "entry"), Count(ndim, "dimension"));
    LayoutError::new(argument, &"one entry for each dimension", &got)
}

/// Returns the error for more dimensions than a field can have.
#[cold]
pub(crate) fn too_many_dims(got: usize) -> LayoutError {
    LayoutError::new("shape", &format_args!("at most {MAX_NDIM} dimensions"), &got)
}

/// Returns the error for a negative extent.
#[cold]
pub(crate) fn negative_extent(axis: usize, got: i64) -> LayoutError {
    LayoutError::new("shape", &"extents of 0 or more", &format_args!("{got} at axis {axis}"))
}

/// Returns the error for an alignment below one byte.
#[cold]
pub(crate) fn wrong_alignment_size(got: i64) -> LayoutError {
    LayoutError::new("alignment_size", &"1 byte or more", &got)
}

/// Returns the error for an alignment whose common multiple with the element size or the block alignment overflows.
#[cold]
pub(crate) fn alignment_too_large(got: i64, itemsize: usize) -> LayoutError {
    let expected =
        format_args!("a number of bytes whose common multiple with {itemsize}-byte elements has at most 64 bits");
    LayoutError::new("alignment_size", &expected, &got).with_kind(LayoutErrorKind::TooLarge)
}

/// Returns the error for an aligned index that is not in the field, nor the index after its last one.
#[cold]
pub(crate) fn wrong_aligned_index(axis: usize, got: i64, extent: i64) -> LayoutError {
    LayoutError::new("aligned_index", &format_args!("0 to {extent} at axis {axis} of extent {extent}"), &got)
}

/// Returns the error for a field to write whose elements may share memory with each other.
#[cold]
pub(crate) fn shared_elements(shape: &[i64], strides: &[i64]) -> LayoutError {
    let expected = "strides that are each larger than the span of all smaller ones, as the field is written";
    let got = format_args!(
        "strides of {} elements for shape {}, by which elements may share memory",
        Tuple(strides),
        Tuple(shape)
    );
    LayoutError::new("strides", &expected, &got).with_fix(&"pass a copy").with_kind(LayoutErrorKind::Overlap)
}

/// Returns the error for a shape other than the expected one.
#[cold]
pub(crate) fn shape_mismatch(expected: &[i64], got: &[i64]) -> LayoutError {
    LayoutError::new("shape", &Tuple(expected), &Tuple(got)).with_kind(LayoutErrorKind::Mismatch)
}

/// Returns the error for a number of dimensions other than the expected one.
#[cold]
pub(crate) fn rank_mismatch(expected: usize, shape: &[i64]) -> LayoutError {
    let got = format_args!("{} of shape {}", shape.len(), Tuple(shape));
    LayoutError::new("ndim", &Count(expected, "dimension"), &got).with_kind(LayoutErrorKind::Mismatch)
}
