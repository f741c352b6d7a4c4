//! The plan of a copy: nested loops over both sides, as few and as long as possible.

use smallvec::SmallVec;

/// One loop: the number of turns, and the bytes to advance on each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) count: usize,
    pub(super) to: isize,
    pub(super) from: isize,
}

/// Loops, outermost first. Four are enough for a grid and its components.
pub(super) type Steps = SmallVec<[Step; 4]>;

/// Nested loops, outermost first, that visit every element once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: Steps,
    /// Bytes from the element at index 0 to the first element visited, on both sides.
    pub(super) start: (isize, isize),
}

impl Plan {
    /// Makes the loops of a copy; strides are in bytes. Orders the dimensions by the destination's strides, all made positive,
    /// drops those of extent 1, and merges neighbours that are contiguous on both sides. `None` for an empty field.
    pub(super) fn new(shape: &[i64], to: impl Iterator<Item = i64>, from: impl Iterator<Item = i64>) -> Option<Plan> {
        let mut plan = Plan { steps: Steps::new(), start: (0, 0) };
        for ((extent, to), from) in shape.iter().zip(to).zip(from) {
            match usize::try_from(*extent).ok()? {
                0 => return None,
                1 => {}
                count => plan.insert(count, isize::try_from(to).ok()?, isize::try_from(from).ok()?),
            }
        }
        plan.merge();
        Some(plan)
    }

    /// As [`Plan::new`], from loops with at least one turn each.
    pub(super) fn of(steps: Steps) -> Plan {
        let mut plan = Plan { steps: Steps::new(), start: (0, 0) };
        for step in steps.iter().filter(|step| step.count != 1) {
            plan.insert(step.count, step.to, step.from);
        }
        plan.merge();
        plan
    }

    /// Inserts a loop before those with smaller strides in the destination.
    fn insert(&mut self, count: usize, mut to: isize, mut from: isize) {
        if to < 0 {
            // Reversing a loop on both sides keeps the pairs. The elements are in memory, so their distances fit.
            let last = count.cast_signed() - 1;
            self.start.0 = self.start.0.wrapping_add(last.wrapping_mul(to));
            self.start.1 = self.start.1.wrapping_add(last.wrapping_mul(from));
            (to, from) = (-to, from.wrapping_neg());
        }
        let smaller = self.steps.iter().rev().take_while(|step| step.to < to).count();
        self.steps.insert(self.steps.len() - smaller, Step { count, to, from });
    }

    /// Merges neighbours that are contiguous on both sides.
    fn merge(&mut self) {
        // In place: `steps[..merged]` is done, the steps from `position` on are not.
        let steps = &mut self.steps;
        let mut merged = 0;
        for position in 0..steps.len() {
            let Step { count, to, from } = steps[position];
            let runs_on = |outer: &Step| {
                let reach = |bytes: isize| isize::try_from(count).ok().and_then(|count| bytes.checked_mul(count));
                reach(to) == Some(outer.to) && reach(from) == Some(outer.from)
            };
            match steps[..merged].last_mut() {
                Some(outer) if runs_on(outer) => *outer = Step { count: outer.count * count, to, from },
                _ => {
                    steps[merged] = Step { count, to, from };
                    merged += 1;
                }
            }
        }
        steps.truncate(merged);
    }

    /// Returns the number of elements visited.
    pub(super) fn elements(&self) -> usize {
        self.steps.iter().map(|step| step.count).product()
    }

    /// Returns whether the strides prove that no byte is written twice, so that the loops may run in any order.
    pub(super) fn is_apart(&self, itemsize: usize) -> bool {
        let mut reach = itemsize;
        self.steps.iter().rev().all(|step| {
            let apart = step.to.unsigned_abs() >= reach;
            reach = reach.saturating_add(step.to.unsigned_abs().saturating_mul(step.count - 1));
            apart
        })
    }

    /// Returns the part of the plan with only this `range` of the loop at `position`.
    pub(super) fn part(&self, position: usize, range: std::ops::Range<usize>) -> Plan {
        let mut part = self.clone();
        let step = &mut part.steps[position];
        let ahead = isize::try_from(range.start).unwrap_or(isize::MAX);
        part.start.0 = part.start.0.wrapping_add(step.to.wrapping_mul(ahead));
        part.start.1 = part.start.1.wrapping_add(step.from.wrapping_mul(ahead));
        step.count = range.len();
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &[i64], to: &[i64], from: &[i64]) -> Vec<(usize, isize, isize)> {
        let plan = Plan::new(shape, to.iter().copied(), from.iter().copied()).expect("not empty");
        plan.steps.iter().map(|step| (step.count, step.to, step.from)).collect()
    }

    #[test]
    fn contiguous_dimensions_become_one_run() {
        assert_eq!(plan(&[4, 5, 6], &[240, 48, 8], &[240, 48, 8]), [(120, 8, 8)]);
        assert_eq!(plan(&[4, 5, 6], &[8, 32, 160], &[8, 32, 160]), [(120, 8, 8)]);
        assert_eq!(plan(&[4, 1, 6], &[48, 1, 8], &[64, 1, 8]), [(4, 48, 64), (6, 8, 8)]);
    }

    #[test]
    fn the_destination_decides_the_order_and_the_direction() {
        assert_eq!(plan(&[4, 5], &[8, 32], &[40, 8]), [(5, 32, 8), (4, 8, 40)]);
        assert!(Plan::new(&[4, 0], [8, 8].into_iter(), [8, 8].into_iter()).is_none());
        let reversed = Plan::new(&[4], [-8].into_iter(), [8].into_iter()).expect("not empty");
        assert_eq!(reversed.start, (-24, 24));
        assert_eq!(reversed.steps[..], [Step { count: 4, to: 8, from: -8 }]);
    }

    #[test]
    fn sides_of_different_sizes_are_merged_where_both_run_on() {
        assert_eq!(plan(&[4, 5, 6], &[120, 24, 4], &[240, 48, 8]), [(120, 4, 8)]);
        assert_eq!(plan(&[4, 6], &[24, 4], &[24, 8]), [(4, 24, 24), (6, 4, 8)]);
        assert_eq!(plan(&[4, 6], &[48, 8], &[24, 8]), [(4, 48, 24), (6, 8, 8)]);
    }

    #[test]
    fn bytes_that_are_written_twice_are_noticed() {
        let apart = |shape: &[i64], to: &[i64], itemsize| {
            let from = to.iter().map(|_| 0);
            Plan::new(shape, to.iter().copied(), from).expect("not empty").is_apart(itemsize)
        };
        assert!(apart(&[4, 6], &[48, 8], 8) && apart(&[4, 6], &[-8, 32], 8) && apart(&[], &[], 8));
        assert!(!apart(&[4, 6], &[0, 8], 8) && !apart(&[4, 6], &[40, 8], 8) && !apart(&[4], &[4], 8));
    }

    #[test]
    fn parts_start_where_they_begin() {
        let whole = Plan::new(&[10, 4], [64, 8].into_iter(), [8, 128].into_iter()).expect("not empty");
        let part = whole.part(0, 3..7);
        assert_eq!((part.start, part.steps[0].count, part.elements()), ((192, 24), 4, 16));
    }
}
