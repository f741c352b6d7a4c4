//! The nested loops over the elements of arrays of one shape: their order, and the offsets that they visit.

use std::cmp::Reverse;

use smallvec::SmallVec;

/// One loop: the number of turns, and the elements to advance in each array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop<const N: usize> {
    pub(super) len: usize,
    pub(super) strides: [isize; N],
}

impl<const N: usize> Loop<N> {
    /// Returns whether this loop is to be outside another one.
    #[inline]
    fn is_outside(&self, inner: &Loop<N>, leader: usize) -> bool {
        let (this, other) = (self.strides[leader].unsigned_abs(), inner.strides[leader].unsigned_abs());
        // The leader's strides are equal only if it is read: where both are 0, or its rows overlap.
        let others = |one: &Loop<N>| one.strides.map(isize::unsigned_abs);
        this > other || this == other && others(self) > others(inner)
    }
}

/// Returns the position of the array that decides the order: the first one that is written, or the first one with most elements
/// in memory.
#[inline]
fn leader<const N: usize>(shape: &[usize], strides: [(&[isize], bool); N]) -> usize {
    let elements = |array: &usize| {
        let distinct = shape.iter().zip(strides[*array].0).filter(|(_, stride)| **stride != 0);
        distinct.fold(1usize, |elements, (len, _)| elements.saturating_mul(*len))
    };
    let written = strides.iter().position(|(_, is_written)| *is_written);
    written.or_else(|| (0..N).min_by_key(|array| Reverse(elements(array)))).unwrap_or(0)
}

/// Nested loops, innermost first, that visit each index of N arrays of one shape once.
#[derive(Debug)]
pub(super) struct Loops<const N: usize> {
    loops: SmallVec<[Loop<N>; 6]>,
    /// Elements from that at index 0 to the first one visited, in each array.
    start: [isize; N],
    is_empty: bool,
}

impl<const N: usize> Loops<N> {
    /// Orders the dimensions of arrays: `strides` has those of each, in elements, and whether it is written.
    pub(super) fn new(shape: &[usize], strides: [(&[isize], bool); N]) -> Loops<N> {
        let mut loops = Loops { loops: SmallVec::new(), start: [0; N], is_empty: shape.contains(&0) };
        if loops.is_empty {
            return loops;
        }
        let leader = leader(shape, strides);
        // The last dimension first, so that those of arrays in C order come in their order.
        for (axis, len) in shape.iter().enumerate().rev().filter(|(_, len)| **len != 1) {
            let dimension =
                loops.forwards(Loop { len: *len, strides: strides.map(|(strides, _)| strides[axis]) }, leader);
            let inner = loops.loops.iter().rposition(|inner| !inner.is_outside(&dimension, leader));
            loops.loops.insert(inner.map_or(0, |inner| inner + 1), dimension);
        }
        loops.merge();
        loops
    }

    /// Reverses a loop that would visit memory backwards.
    #[inline]
    fn forwards(&mut self, mut dimension: Loop<N>, leader: usize) -> Loop<N> {
        let leading = match dimension.strides[leader] {
            0 => dimension.strides.into_iter().find(|stride| *stride != 0).unwrap_or(0),
            leading => leading,
        };
        if leading < 0 {
            // The elements are in memory, so their distances fit.
            let last = dimension.len.cast_signed() - 1;
            for (start, stride) in self.start.iter_mut().zip(&mut dimension.strides) {
                *start = start.wrapping_add(last.wrapping_mul(*stride));
                *stride = stride.wrapping_neg();
            }
        }
        dimension
    }

    /// Merges loops that continue each other in all arrays.
    #[inline]
    fn merge(&mut self) {
        // In place: `loops[..merged]` is done, the loops from `position` on are not.
        let mut merged = 0;
        for position in 0..self.loops.len() {
            let outer = self.loops[position];
            let continues = |inner: &Loop<N>| {
                let reach = |stride: isize| isize::try_from(inner.len).ok().and_then(|len| stride.checked_mul(len));
                inner.strides.iter().zip(outer.strides).all(|(inner, outer)| reach(*inner) == Some(outer))
            };
            match self.loops[..merged].last_mut() {
                Some(inner) if continues(inner) => inner.len *= outer.len,
                _ => {
                    self.loops[merged] = outer;
                    merged += 1;
                }
            }
        }
        self.loops.truncate(merged);
    }

    /// Returns the innermost loop. A single element counts as contiguous.
    #[inline]
    pub(super) fn innermost(&self) -> Loop<N> {
        self.loops.first().copied().unwrap_or(Loop { len: 1, strides: [1; N] })
    }

    /// Calls `run` with the offset in each array of each start of the innermost loop, in elements from that at index 0.
    #[inline]
    pub(super) fn fold<B>(&self, init: B, mut run: impl FnMut(B, [isize; N]) -> B) -> B {
        let (mut result, mut start) = (init, self.start);
        if self.is_empty {
            return result;
        }
        // The second loop is nested here, as most arrays have no further ones; the outer ones keep their counts in a list.
        let second = self.loops.get(1).copied().unwrap_or(Loop { len: 1, strides: [0; N] });
        let outer = self.loops.get(2..).unwrap_or_default();
        let mut turns: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer.len());
        loop {
            let mut offsets = start;
            for _ in 0..second.len {
                result = run(result, offsets);
                advance(&mut offsets, second.strides);
            }
            let mut loops = outer.iter().zip(&mut turns);
            loop {
                let Some((dimension, turn)) = loops.next() else { return result };
                *turn += 1;
                advance(&mut start, dimension.strides);
                if *turn < dimension.len {
                    break;
                }
                *turn = 0;
                let back = dimension.len.cast_signed().wrapping_neg();
                advance(&mut start, dimension.strides.map(|stride| stride.wrapping_mul(back)));
            }
        }
    }
}

/// Adds the strides; the sum behind the last turn may be outside the array, and nothing is there.
#[inline]
fn advance<const N: usize>(offsets: &mut [isize; N], strides: [isize; N]) {
    for (offset, stride) in offsets.iter_mut().zip(strides) {
        *offset = offset.wrapping_add(stride);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the loops, outermost first.
    fn loops<const N: usize>(shape: &[usize], strides: [(&[isize], bool); N]) -> Vec<(usize, [isize; N])> {
        let loops = Loops::new(shape, strides).loops;
        loops.iter().rev().map(|dimension| (dimension.len, dimension.strides)).collect()
    }

    #[test]
    fn contiguous_dimensions_become_one_loop() {
        assert_eq!(loops(&[4, 5, 6], [(&[30, 6, 1], false)]), [(120, [1])]);
        assert_eq!(loops(&[4, 5, 6], [(&[1, 4, 20], false)]), [(120, [1])]);
        assert_eq!(loops(&[4, 5, 6], [(&[6, 24, 1], true)]), [(120, [1])]);
        assert_eq!(loops(&[4, 1, 6], [(&[8, -7, 1], false)]), [(4, [8]), (6, [1])]);
        assert_eq!(loops(&[4, 5, 6], [(&[60, 12, 2], false)]), [(120, [2])]);
        assert_eq!(loops(&[4, 6], [(&[6, 1], true), (&[8, 1], false)]), [(4, [6, 8]), (6, [1, 1])]);
    }

    #[test]
    fn written_arrays_decide_the_order_before_large_ones() {
        assert_eq!(loops(&[4, 5], [(&[5, 1], false), (&[1, 4], true)]), [(5, [1, 4]), (4, [5, 1])]);
        assert_eq!(loops(&[4, 5], [(&[0, 1], false), (&[1, 4], false)]), [(5, [1, 4]), (4, [0, 1])]);
        assert_eq!(loops(&[4, 5], [(&[5, 1], false), (&[1, 4], false)]), [(4, [5, 1]), (5, [1, 4])]);
    }

    #[test]
    fn ties_are_broken_by_the_other_arrays() {
        assert_eq!(loops(&[4, 5, 6], [(&[0, 0, 1], false), (&[9, 90, 0], false)]).last(), Some(&(6, [1, 0])));
        assert_eq!(loops(&[4, 5], [(&[0, 0], false), (&[0, 0], false)]), [(20, [0, 0])]);
    }

    #[test]
    fn loops_that_run_backwards_are_reversed_in_all_arrays() {
        let found = Loops::new(&[4, 5], [(&[-5, 1], true), (&[5, 1], false)]);
        assert_eq!((found.start, &found.loops[1]), ([-15, 15], &Loop { len: 4, strides: [5, -5] }));
        let found = Loops::new(&[4], [(&[0], false), (&[-2], false)]);
        assert_eq!((found.start, &found.loops[0]), ([0, -6], &Loop { len: 4, strides: [0, 2] }));
    }

    #[test]
    fn six_dimensions_need_no_allocation() {
        let loops = Loops::new(&[2; 6], [(&[200_000, 20_000, 2_000, 200, 20, 2], false)]).loops;
        assert_eq!((loops.len(), loops.spilled()), (6, false));
    }
}
