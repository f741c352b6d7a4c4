//! Large blocks that went, kept for the next of the same length: fields come and go in few sizes, and to have the system
//! clear fresh pages takes as long as most work on them.

use std::collections::VecDeque;
use std::sync::Mutex;

use memmap2::MmapMut;

/// The longest mapping that is kept; the C library's allocator draws the line for its own there, too.
const LONGEST: usize = 32 << 20;

/// How many bytes are kept altogether.
const ALTOGETHER: usize = 64 << 20;

/// The mappings that are kept.
pub(super) static KEPT: Kept = Kept::new();

/// Mappings that nobody uses, the oldest first.
///
/// No thread waits for another one here: without the list there are the system's own ways.
pub(super) struct Kept(Mutex<VecDeque<MmapMut>>);

impl Kept {
    const fn new() -> Kept {
        Kept(Mutex::new(VecDeque::new()))
    }

    /// A mapping of this length, with anything in it.
    pub(super) fn again(&self, len: usize) -> Option<MmapMut> {
        let mut list = self.0.try_lock().ok()?;
        let newest = list.iter().rposition(|mapping| mapping.len() == len)?;
        list.remove(newest)
    }

    /// Keeps a mapping, unless it is too long; the oldest ones make room.
    pub(super) fn keep(&self, mapping: MmapMut) {
        if mapping.len() > LONGEST {
            return;
        }
        let Ok(mut list) = self.0.try_lock() else { return };
        list.push_back(mapping);
        while list.iter().map(|mapping| mapping.len()).sum::<usize>() > ALTOGETHER {
            list.pop_front();
        }
    }

    /// Gives all back to the system. Whether there was any.
    pub(super) fn let_go(&self) -> bool {
        self.0.try_lock().is_ok_and(|mut list| list.drain(..).count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use memmap2::MmapOptions;

    use super::*;

    fn mapping(len: usize) -> MmapMut {
        MmapOptions::new().len(len).map_anon().expect("small")
    }

    #[test]
    fn the_newest_of_a_length_comes_back() {
        let (kept, len) = (Kept::new(), 5 << 20);
        let (first, second) = (mapping(len), mapping(len));
        let newer = second.as_ptr();
        kept.keep(first);
        kept.keep(second);
        assert!(kept.again(len + 1).is_none());
        assert_eq!(kept.again(len).expect("kept").as_ptr(), newer);
        assert!(kept.again(len).is_some());
        assert!(kept.again(len).is_none());
    }

    #[test]
    fn not_too_much_is_kept() {
        let kept = Kept::new();
        kept.keep(mapping(LONGEST + 1));
        assert!(!kept.let_go());
        kept.keep(mapping(5 << 20));
        for _ in 0..20 {
            kept.keep(mapping(LONGEST));
        }
        assert!(kept.again(5 << 20).is_none());
        assert_eq!((0..20).filter_map(|_| kept.again(LONGEST)).count(), ALTOGETHER / LONGEST);
        kept.keep(mapping(5 << 20));
        assert!(kept.let_go());
        assert!(!kept.let_go());
    }
}
