//! The strides of a new allocation.

use super::overlap::gcd;
use super::{Extents, Layout, Padding};

/// Computes the strides in elements of rows that follow each other; the last axis in `layout`'s order is contiguous. Returns
/// the number of elements to allocate, the last row's padding included, or `None` if a size overflows.
///
/// `unit` is the alignment in elements; [`Padding::Row`] lengthens each row to a multiple of it. Extents of 0 count as 1, as in
/// NumPy, so that strides stay distinct.
pub(super) fn compute(
    strides: &mut Extents,
    shape: &[i64],
    layout: &Layout,
    padding: Padding,
    unit: i64,
) -> Option<i64> {
    // What needs no allocation is made in place, without a loop.
    match shape.len() {
        few if few <= strides.inline_size() => *strides = Extents::from_buf_and_len([0; 6], few),
        many => strides.resize(many, 0),
    }
    let mut elements = 1i64;
    for (position, axis) in layout.axes_by_stride().enumerate() {
        strides[axis] = elements;
        let extent = shape[axis].max(1);
        let extent = match padding {
            Padding::Row if position == 0 => round_up(extent, unit)?,
            _ => extent,
        };
        elements = elements.checked_mul(extent)?;
    }
    Some(elements)
}

/// Returns the smallest multiple of `unit` that is at least `value`; both are positive. `None` if it overflows.
pub(super) fn round_up(value: i64, unit: i64) -> Option<i64> {
    match value % unit {
        0 => Some(value),
        rest => value.checked_add(unit - rest),
    }
}

/// Returns the least common multiple of two positive numbers; `None` if it overflows.
#[inline]
pub(crate) fn lcm(a: i64, b: i64) -> Option<i64> {
    // Nearly all alignments are powers of two, and divisions are slow.
    if a & (a - 1) == 0 && b & (b - 1) == 0 {
        return Some(a.max(b));
    }
    (a / gcd(a, b)).checked_mul(b)
}
