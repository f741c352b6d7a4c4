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
    strides.resize(shape.len(), 0);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn computed(shape: &[i64], layout: &Layout, padding: Padding, unit: i64) -> Option<(Vec<i64>, i64)> {
        let mut strides = Extents::new();
        let elements = compute(&mut strides, shape, layout, padding, unit)?;
        Some((strides.to_vec(), elements))
    }

    #[test]
    fn rows_are_lengthened_only_when_asked() {
        let layout = Layout::c_order(2);
        assert_eq!(computed(&[3, 5], &layout, Padding::None, 4), Some((vec![5, 1], 15)));
        assert_eq!(computed(&[3, 5], &layout, Padding::Row, 4), Some((vec![8, 1], 24)));
    }

    #[test]
    fn common_multiples_are_the_least() {
        for (a, b, least) in [(1, 8, 8), (64, 16, 64), (24, 16, 48), (8, 12, 24), (7, 5, 35), (1 << 62, 1, 1 << 62)] {
            assert_eq!((lcm(a, b), lcm(b, a)), (Some(least), Some(least)), "of {a} and {b}");
        }
        assert_eq!(lcm(1 << 62, 3), None);
    }

    #[test]
    fn sizes_beyond_32_bits_are_right() {
        let field = computed(&[1024, 1024, 4096], &Layout::f_order(3), Padding::None, 1);
        assert_eq!(field, Some((vec![1, 1024, 1 << 20], 1 << 32)));
        assert!(computed(&[1 << 32, 1 << 32], &Layout::c_order(2), Padding::None, 1).is_none());
    }
}
