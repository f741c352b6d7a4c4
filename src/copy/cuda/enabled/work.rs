//! Elements to copy, and staging buffers for those that cannot be copied directly.

#![allow(unsafe_code, reason = "elements are moved by their addresses")]

use smallvec::SmallVec;

use crate::copy::plan::{Plan, Step};
use crate::error::Result;

/// A copy: where elements are, and where they go.
pub(super) struct Work {
    pub(super) plan: Plan,
    pub(super) to: *mut u8,
    pub(super) from: *const u8,
    /// Bytes of an element.
    pub(super) itemsize: usize,
}

/// One side of a copy.
#[derive(Clone, Copy)]
pub(super) enum Side {
    To,
    From,
}

impl Side {
    fn of(self, step: &Step) -> isize {
        match self {
            Side::To => step.to,
            Side::From => step.from,
        }
    }
}

/// A copy in two parts, through a staging buffer that holds each repeated element once.
pub(super) struct Detour {
    strides: SmallVec<[isize; 4]>,
    pub(super) bytes: usize,
    /// Bytes from the start of the buffer to the element at index 0.
    ahead: isize,
    itemsize: usize,
}

impl Detour {
    /// Returns a compact buffer for elements of `itemsize` bytes, in the order and the directions of one side.
    pub(super) fn like(work: &Work, side: Side, itemsize: usize) -> Detour {
        let steps = &work.plan.steps;
        let mut order: SmallVec<[usize; 4]> = (0..steps.len()).filter(|at| steps[*at].from != 0).collect();
        // Strides of 0 come last: they have no order.
        order.sort_by_key(|at| match side.of(&steps[*at]).unsigned_abs() {
            0 => usize::MAX,
            distance => distance,
        });
        let mut strides = SmallVec::from_elem(0, steps.len());
        let (mut bytes, mut ahead) = (itemsize, 0isize);
        for at in order {
            let distance = bytes.cast_signed();
            if side.of(&steps[at]) < 0 {
                strides[at] = -distance;
                ahead = ahead.wrapping_add(distance.wrapping_mul(steps[at].count.cast_signed() - 1));
            } else {
                strides[at] = distance;
            }
            // No overflow: as many elements, or more, are in memory already.
            bytes = bytes.saturating_mul(steps[at].count);
        }
        Detour { strides, bytes, ahead, itemsize }
    }

    /// Returns the copy into the buffer at `start`, which has room for all `bytes`, and the copy out of it.
    pub(super) fn through(&self, work: &Work, start: *mut u8) -> (Work, Work) {
        let start = start.wrapping_offset(self.ahead);
        let (to, from) = work.first();
        let both = || work.plan.steps.iter().zip(&self.strides);
        // A repeated element is read once.
        let into = both().filter(|(step, _)| step.from != 0).map(|(step, stride)| Step { to: *stride, ..*step });
        let out = both().map(|(step, stride)| Step { from: *stride, ..*step });
        (
            Work { plan: Plan::of(into.collect()), to: start, from, itemsize: self.itemsize },
            Work { plan: Plan::of(out.collect()), to, from: start, itemsize: work.itemsize },
        )
    }
}

impl Work {
    /// Returns the addresses of the first element that the loops visit.
    pub(super) fn first(&self) -> (*mut u8, *const u8) {
        let (to, from) = self.plan.start;
        (self.to.wrapping_offset(to), self.from.wrapping_offset(from))
    }
}

/// Runs the loops, and calls `body` with both addresses of every turn.
pub(super) fn each(
    steps: &[Step],
    (to, from): (*mut u8, *const u8),
    body: &mut impl FnMut(*mut u8, *const u8) -> Result<()>,
) -> Result<()> {
    let Some((outer, inner)) = steps.split_first() else { return body(to, from) };
    let (mut to, mut from) = (to, from);
    for _ in 0..outer.count {
        each(inner, (to, from), body)?;
        // The address after the last turn is not used.
        (to, from) = (to.wrapping_offset(outer.to), from.wrapping_offset(outer.from));
    }
    Ok(())
}
