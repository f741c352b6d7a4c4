//! Layout arithmetic: computes where each element of a field is. Pure, checked, 64-bit.
//!
//! [`Spec::place`] turns a [`Spec`], what a user wants to allocate, into an [`AllocationLayout`], the offset of every element,
//! or into a [`LayoutError`] that names the argument at fault.

mod allocation_layout;
mod error;
mod extents;
mod order;
mod overlap;
mod padding;
mod span;
mod spec;
mod strides;

pub use allocation_layout::AllocationLayout;
pub(crate) use allocation_layout::offset;
pub use error::{Ghosts, LayoutError};
pub use extents::{Extents, Halo, MAX_NDIM};
pub use order::Layout;
pub use overlap::{Strided, overlap};
pub use padding::Padding;
pub use span::{byte_span, is_compact, is_contiguous, is_unshared};
pub use spec::Spec;
pub(crate) use strides::{gcd, lcm};

/// Checks that an argument has one entry per dimension.
#[doc(hidden)]
pub fn check_len(argument: &'static str, got: usize, ndim: usize) -> Result<(), LayoutError> {
    if got == ndim { Ok(()) } else { Err(LayoutError::Length { argument, got, ndim }) }
}

/// Checks halo widths against the extents: 0 or more, together at most the extent.
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

/// Checks that the origin is in the field or one past its end.
pub(crate) fn check_origin(origin: &[i64], shape: &[i64]) -> Result<(), LayoutError> {
    check_len("origin", origin.len(), shape.len())?;
    for (axis, (got, extent)) in origin.iter().copied().zip(shape.iter().copied()).enumerate() {
        if !(0..=extent).contains(&got) {
            return Err(LayoutError::Origin { axis, got, extent });
        }
    }
    Ok(())
}
