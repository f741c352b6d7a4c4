//! Borrowed memory by address, to find what may overlap among thousands of borrows.

use std::collections::BTreeMap;

use super::Descriptor;

/// What a borrow is found by: whether it writes, how long its range of addresses is, where that begins, and the borrow's own number.
type Key = (bool, u32, usize, usize);

/// Borrows of memory in the order of their addresses, apart by lengths: a large range among many small ones would hide where to stop.
#[derive(Debug)]
pub struct Spans<B>(BTreeMap<Key, B>);

impl<B: Copy> Default for Spans<B> {
    fn default() -> Spans<B> {
        Spans::new()
    }
}

impl<B: Copy> Spans<B> {
    /// Has no borrows.
    pub const fn new() -> Spans<B> {
        Spans(BTreeMap::new())
    }

    /// Enters a borrow. Nothing meets memory without elements, which is left out.
    pub fn insert(&mut self, memory: &Descriptor, writes: bool, number: usize, borrow: B) {
        if let Some(key) = key(memory, writes, number) {
            self.0.insert(key, borrow);
        }
    }

    /// Removes a borrow that was entered with the same memory, access and number.
    pub fn remove(&mut self, memory: &Descriptor, writes: bool, number: usize) {
        if let Some(key) = key(memory, writes, number) {
            self.0.remove(&key);
        }
    }

    /// The borrows whose range of addresses may meet that of `memory`: those that write, or those that read.
    pub fn near(&self, memory: &Descriptor, writes: bool) -> impl Iterator<Item = B> {
        let range = range(memory);
        let lengths = range.into_iter().flat_map(move |_| self.lengths(writes));
        lengths.flat_map(move |length| {
            let (low, high) = range.unwrap_or_default();
            let first = low.saturating_sub(1usize.checked_shl(length).unwrap_or(usize::MAX));
            self.0.range((writes, length, first, 0)..(writes, length, high, 0)).map(|(_, borrow)| *borrow)
        })
    }

    /// The lengths of which there are borrows, at most one for each bit of an address.
    fn lengths(&self, writes: bool) -> impl Iterator<Item = u32> {
        let next = move |from: u32| {
            let ((found, length, ..), _) = self.0.range((writes, from, 0, 0)..).next()?;
            (*found == writes).then_some(*length)
        };
        std::iter::successors(next(0), move |length| next(length + 1))
    }
}

fn key(memory: &Descriptor, writes: bool, number: usize) -> Option<Key> {
    let (low, high) = range(memory)?;
    // The range has fewer bytes than two to the power of this.
    let length = usize::BITS - (high - low).leading_zeros();
    Some((writes, length, low, number))
}

/// The lowest address of the elements, and one past the highest; `None` without elements.
fn range(memory: &Descriptor) -> Option<(usize, usize)> {
    Some(memory.reach()).filter(|(low, high)| memory.size() > 0 && low < high)
}
