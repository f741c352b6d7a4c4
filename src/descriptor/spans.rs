//! Borrowed memory by address, to find what may overlap among thousands of borrows.

use std::collections::BTreeMap;

/// As many lengths of ranges as an address has bits: length `n` stands for more than 2ⁿ⁻¹ bytes, and at most 2ⁿ.
const LENGTHS: usize = usize::BITS as usize + 1;

/// Borrows by their lowest address and their own number.
type ByAddress<B> = BTreeMap<(usize, usize), B>;

/// Borrows of memory in the order of their addresses: those that read, then those that write.
///
/// Ranges of similar length share a map. A range that meets another one begins inside it, or before it by less than its own
/// length, so the length bounds the search: in one map, a single large range would extend the search among all small ones.
#[derive(Debug)]
pub struct Spans<B>([[ByAddress<B>; LENGTHS]; 2]);

impl<B: Copy> Default for Spans<B> {
    fn default() -> Spans<B> {
        Spans::new()
    }
}

impl<B: Copy> Spans<B> {
    /// Has no borrows.
    pub const fn new() -> Spans<B> {
        Spans([const { [const { BTreeMap::new() }; LENGTHS] }; 2])
    }

    /// Enters a borrow. `range` is the lowest address, and one past the highest; nothing meets an empty one, which is left out.
    pub fn insert(&mut self, range: (usize, usize), writes: bool, number: usize, borrow: B) {
        if let Some((low, high)) = filled(range) {
            self.0[usize::from(writes)][length(low, high)].insert((low, number), borrow);
        }
    }

    /// Removes a borrow that was entered with the same range, access and number.
    pub fn remove(&mut self, range: (usize, usize), writes: bool, number: usize) {
        if let Some((low, high)) = filled(range) {
            self.0[usize::from(writes)][length(low, high)].remove(&(low, number));
        }
    }

    /// Returns the borrows whose range of addresses may meet `range`: those that write, or those that read.
    pub fn near(&self, range: (usize, usize), writes: bool) -> impl Iterator<Item = B> {
        // An empty field meets nothing.
        let (low, high) = filled(range).unwrap_or((0, 0));
        let filled = self.0[usize::from(writes)].iter().enumerate().filter(|(_, borrows)| !borrows.is_empty());
        filled.flat_map(move |(length, borrows)| {
            let longest = u32::try_from(length).ok().and_then(|bits| 1usize.checked_shl(bits)).unwrap_or(usize::MAX);
            borrows.range((low.saturating_sub(longest), 0)..(high, 0)).map(|(_, borrow)| *borrow)
        })
    }
}

/// The position of the borrows whose ranges have about as many bytes.
fn length(low: usize, high: usize) -> usize {
    (usize::BITS - (high - low - 1).leading_zeros()) as usize
}

fn filled(range: (usize, usize)) -> Option<(usize, usize)> {
    Some(range).filter(|(low, high)| low < high)
}
