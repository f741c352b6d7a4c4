//! Layout arithmetic: computes where each element of a field is. Pure, checked, 64-bit.
//!
//! [`Spec::place`] turns a [`Spec`], what a user wants to allocate, into an [`AllocationLayout`], the offset of every element,
//! or into a [`LayoutError`] that names the argument at fault.

mod allocation_layout;
mod error;
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
pub use error::{Ghosts, LayoutError};
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
    if got == ndim { Ok(()) } else { Err(LayoutError::Length { argument, got, ndim }) }
}
