//! The oracle: enumerates indices and addresses one by one, in 128 bits.

use std::collections::HashSet;

use dlfield::{Descriptor, MAX_NDIM};

/// Returns every index of a shape, last index fastest.
pub fn indices(shape: &[i64]) -> Vec<Vec<i64>> {
    let mut all = vec![Vec::new()];
    for extent in shape {
        let longer = |head: &Vec<i64>| {
            let head = head.clone();
            (0..*extent).map(move |last| head.iter().copied().chain([last]).collect())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Returns the bytes from element 0 to the element at `index`.
pub fn offset(index: &[i64], strides: &[i64], itemsize: usize) -> i128 {
    index.iter().zip(strides).map(|(at, stride)| i128::from(*at) * i128::from(*stride)).sum::<i128>() * wide(itemsize)
}

/// Returns the bytes from element 0 to every element, in increasing order.
pub fn offsets(shape: &[i64], strides: &[i64], itemsize: usize) -> Vec<i128> {
    let mut all: Vec<i128> = indices(shape).iter().map(|index| offset(index, strides, itemsize)).collect();
    all.sort_unstable();
    all
}

/// Returns the address of every byte of every element.
pub fn bytes(field: &Descriptor) -> HashSet<i128> {
    let (start, itemsize) = (wide(field.ptr().addr()), field.itemsize());
    let element = |index: &Vec<i64>| {
        let first = start + offset(index, field.strides(), itemsize);
        first..first + wide(itemsize)
    };
    indices(field.shape()).iter().flat_map(element).collect()
}

/// Returns the position of an index in the list of [`indices`].
pub fn position(index: &[i64], shape: &[i64]) -> usize {
    index.iter().zip(shape).fold(0, |position, (at, extent)| position * size(*extent) + size(*at))
}

/// Returns the lowest byte and the one after the highest, from element 0; `None` without elements. Saturates at 128 bits.
pub fn span(shape: &[i64], byte_strides: &[i128], itemsize: usize) -> Option<(i128, i128)> {
    if shape.contains(&0) {
        return None;
    }
    let reaches =
        || shape.iter().zip(byte_strides).map(|(extent, step)| (i128::from(*extent) - 1).saturating_mul(*step));
    let low = reaches().filter(|reach| *reach < 0).fold(0, i128::saturating_add);
    Some((low, reaches().filter(|reach| *reach > 0).fold(wide(itemsize), i128::saturating_add)))
}

/// Returns whether a field with element 0 at this address is valid: 64 bits count its bytes, and all are in the address space.
pub fn is_valid(address: i128, shape: &[i64], byte_strides: &[i128], itemsize: usize) -> bool {
    let most = i128::from(i64::MAX);
    let extents = shape.iter().map(|extent| i128::from(*extent));
    let bytes = extents.filter(|extent| *extent != 0).fold(wide(itemsize), i128::saturating_mul);
    let inside = |(low, high): (i128, i128)| {
        let (start, end) = (address.saturating_add(low), address.saturating_add(high));
        // No memory lies in the first 64 KiB.
        start >= 1 << 16 && end <= i128::from(u64::MAX) && high.saturating_sub(low) <= most
    };
    let legal = shape.len() <= MAX_NDIM && shape.len() == byte_strides.len() && shape.iter().all(|extent| *extent >= 0);
    legal && bytes <= most && span(shape, byte_strides, itemsize).is_none_or(inside)
}

/// Returns byte strides in C order, in which extents of 0 count as 1. Saturates at 128 bits.
pub fn c_order(shape: &[i64], itemsize: usize) -> Vec<i128> {
    let after = |axis: usize| shape[axis + 1..].iter().map(|extent| i128::from((*extent).max(1)));
    (0..shape.len()).map(|axis| after(axis).fold(wide(itemsize), i128::saturating_mul)).collect()
}

pub fn count(shape: &[i64]) -> i128 {
    shape.iter().map(|extent| i128::from(*extent)).product()
}

/// The expected result of [`dlfield::Spec::place`] for sizes that no test can enumerate.
pub struct Bytes {
    pub strides: Vec<i128>,
    /// Bytes from the first row to the end of the last row's padding; extents of 0 count as 1.
    pub length: i128,
    /// The same if there are elements, else 0.
    pub held: i128,
    /// Bytes from element 0 to the aligned one.
    pub aligned: i128,
    /// Alignment of the aligned element in bytes: a multiple of the alignment and of the element size.
    pub alignment: i128,
    /// The least common multiple of that and 64.
    pub block_alignment: i128,
}

impl Bytes {
    /// Computes strides in 128 bits; `None` if those do not suffice. `axes` start with the largest stride.
    pub fn of(
        shape: &[i64],
        axes: &[usize],
        itemsize: usize,
        alignment_size: i64,
        aligned_index: &[i64],
        padded: bool,
    ) -> Option<Bytes> {
        let alignment = lcm(i128::from(alignment_size), wide(itemsize));
        let mut strides = vec![0; shape.len()];
        let mut length = wide(itemsize);
        for axis in axes.iter().rev() {
            strides[*axis] = length / wide(itemsize);
            length = length.checked_mul(i128::from(shape[*axis].max(1)))?;
            if padded && Some(axis) == axes.last() {
                length = length.checked_add(alignment - 1)? / alignment * alignment;
            }
        }
        let mut aligned = 0i128;
        for (at, stride) in aligned_index.iter().zip(&strides) {
            aligned = aligned.checked_add(i128::from(*at).checked_mul(*stride)?.checked_mul(wide(itemsize))?)?;
        }
        let held = if shape.contains(&0) { 0 } else { length };
        Some(Bytes { strides, length, held, aligned, alignment, block_alignment: lcm(alignment, 64) })
    }

    /// Returns whether 64-bit sizes hold all of this with room to align the block, also the strides of an empty field.
    pub fn fits(&self) -> bool {
        let first = (-self.aligned).rem_euclid(self.alignment);
        let block = first.saturating_add(self.held).saturating_add(self.block_alignment);
        let sizes = [self.aligned, self.alignment, self.length, self.block_alignment, block];
        sizes.iter().all(|bytes| *bytes <= i128::from(i64::MAX))
    }
}

/// Returns the least common multiple of two positive numbers of at most 64 and 16 bits.
fn lcm(a: i128, b: i128) -> i128 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// Converts a length to a type in which nothing overflows.
pub fn wide(length: usize) -> i128 {
    i128::try_from(length).unwrap()
}

/// Converts a number that is known to be a length.
pub fn size(number: impl TryInto<usize>) -> usize {
    number.try_into().ok().expect("a length")
}
