//! Layout arithmetic: computes where each element of a field is. Pure, checked, 64-bit.
//!
//! [`Spec::place`] turns a [`Spec`], what a user wants to allocate, into an [`AllocationLayout`], the offset of every element,
//! or into a [`LayoutError`] that names the argument at fault.

mod allocation_layout;
mod error;
mod extents;
mod metadata;
mod order;
mod overlap;
mod padding;
mod promise;
mod span;
mod spec;
mod strides;

pub use allocation_layout::AllocationLayout;
pub(crate) use allocation_layout::offset;
pub use error::{Ghosts, LayoutError};
pub use extents::{Extents, Halo, MAX_NDIM};
pub use metadata::Metadata;
pub(crate) use metadata::{check_halo, check_origin};
pub use order::Layout;
pub use overlap::{Strided, overlap};
pub use padding::Padding;
pub(crate) use promise::Promise;
pub use span::{byte_span, is_compact, is_contiguous, is_unshared};
pub use spec::Spec;
pub(crate) use strides::{gcd, lcm};

/// Checks that an argument has one entry per dimension.
#[doc(hidden)]
pub fn check_len(argument: &'static str, got: usize, ndim: usize) -> Result<(), LayoutError> {
    if got == ndim { Ok(()) } else { Err(LayoutError::Length { argument, got, ndim }) }
}
