//! The bytes that a strided field occupies.

/// Returns the bytes that the elements occupy, relative to element 0: the lowest, and one past the highest.
///
/// `strides` count elements. `None` for a field without elements. The sums are 128-bit and saturate, so invalid input stays far
/// outside any address space.
///
/// # Example
/// ```
/// assert_eq!(dlfield::testing::byte_span(&[3, 4], &[-4, 1], 8), Some((-64, 32)));
/// ```
pub fn byte_span(shape: &[i64], strides: &[i64], itemsize: usize) -> Option<(i128, i128)> {
    let (mut low, mut high) = (0i128, 0i128);
    for (extent, stride) in shape.iter().zip(strides) {
        if *extent == 0 {
            return None;
        }
        let reach = (i128::from(*extent) - 1) * i128::from(*stride);
        if reach < 0 { low = low.saturating_add(reach) } else { high = high.saturating_add(reach) }
    }
    let itemsize = i128::try_from(itemsize).unwrap_or(i128::MAX);
    Some((low.saturating_mul(itemsize), high.saturating_add(1).saturating_mul(itemsize)))
}

/// Returns the addresses of elements whose strides count bytes, from the lowest byte to one past the highest; `None` without
/// elements, and the whole address space for invalid input. `start` is the address of element 0.
pub(crate) fn byte_strided_reach(
    start: usize,
    shape: &[i64],
    byte_strides: &[i64],
    itemsize: usize,
) -> Option<(usize, usize)> {
    let (low, high) = byte_span(shape, byte_strides, 1)?;
    let at = |distance: i128| usize::try_from(i128::try_from(start).unwrap_or(i128::MAX).saturating_add(distance)).ok();
    let last = i128::try_from(itemsize).unwrap_or(i128::MAX).saturating_sub(1);
    Some(at(low).zip(at(high.saturating_add(last))).unwrap_or((0, usize::MAX)))
}

/// Returns whether the elements are contiguous in the order of the given axes (largest stride first).
///
/// Ignores the strides of extents of 1, and all strides of a field without elements: they lead nowhere.
///
/// # Example
/// ```
/// use dlfield::testing::is_contiguous;
/// assert!(is_contiguous(&[2, 3], &[3, 1], 0..2));
/// assert!(is_contiguous(&[2, 3], &[1, 2], (0..2).rev()));
/// ```
pub fn is_contiguous(shape: &[i64], strides: &[i64], axes: impl DoubleEndedIterator<Item = usize>) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut expected = 1i64;
    for axis in axes.rev() {
        if shape[axis] != 1 {
            if strides[axis] != expected {
                return false;
            }
            expected = expected.saturating_mul(shape[axis]);
        }
    }
    true
}

/// Returns whether the elements are contiguous in some order of the axes.
///
/// # Example
/// ```
/// use dlfield::testing::is_compact;
/// assert!(is_compact(&[2, 3, 4], &[4, 8, 1]));
/// assert!(!is_compact(&[2, 3], &[4, 1]));
/// ```
pub fn is_compact(shape: &[i64], strides: &[i64]) -> bool {
    let mut axes: smallvec::SmallVec<[usize; 6]> = (0..shape.len()).collect();
    axes.sort_unstable_by_key(|axis| (std::cmp::Reverse(strides[*axis]), *axis));
    is_contiguous(shape, strides, axes.into_iter())
}

/// Returns whether no two elements share an address: every stride must reach past the elements of all smaller ones.
///
/// Other strides count as sharing even if they put every element elsewhere; no field is laid out like that.
///
/// # Example
/// ```
/// use dlfield::testing::is_unshared;
/// assert!(is_unshared(&[3, 4], &[-8, 2]));
/// assert!(!is_unshared(&[3, 4], &[0, 1]));
/// ```
pub fn is_unshared(shape: &[i64], strides: &[i64]) -> bool {
    let steps = shape.iter().zip(strides).filter(|(extent, _)| **extent != 1);
    let mut steps: smallvec::SmallVec<[(u64, u64); 6]> =
        steps.map(|(extent, step)| (step.unsigned_abs(), extent.unsigned_abs())).collect();
    steps.sort_unstable();
    let mut reach = 1u64;
    let apart = steps.iter().all(|(step, extent)| {
        let apart = *step >= reach;
        reach = reach.saturating_add(step.saturating_mul(extent.saturating_sub(1)));
        apart
    });
    apart || shape.contains(&0)
}

/// Returns the bytes from element 0 to the element at `index`; `None` if that overflows.
pub(crate) fn offset(index: &[i64], strides: &[i64], itemsize: i64) -> Option<i64> {
    index.iter().zip(strides).try_fold(0i64, |sum, (position, stride)| {
        position.checked_mul(*stride)?.checked_mul(itemsize)?.checked_add(sum)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_reach_both_ways() {
        assert_eq!(byte_strided_reach(1000, &[3, 4], &[-32, 8], 8), Some((936, 1032)));
        assert_eq!(byte_strided_reach(1000, &[], &[], 8), Some((1000, 1008)));
        // Strides that are not multiples of the itemsize, as fields of structs have.
        assert_eq!(byte_strided_reach(1000, &[3], &[3], 2), Some((1000, 1008)));
        assert_eq!(byte_strided_reach(1000, &[3, 0], &[32, 8], 8), None);
    }

    #[test]
    fn addresses_beyond_memory_reach_everywhere() {
        let everywhere = Some((0, usize::MAX));
        assert_eq!(byte_strided_reach(16, &[3], &[-16], 8), everywhere);
        assert_eq!(byte_strided_reach(usize::MAX - 8, &[2], &[8], 8), everywhere);
        assert_eq!(byte_strided_reach(1000, &[i64::MAX], &[i64::MAX], 8), everywhere);
        assert_eq!(byte_strided_reach(1000, &[1], &[0], usize::MAX), everywhere);
    }
}
