//! Vector clocks, and the race detector that compares them.
//!
//! Actors are the host, each stream, and each branch of a graph. Two accesses of the same bytes, one of them a write, race
//! unless the clock of the later one covers the earlier one. All host threads are one actor: the driver does not see what
//! orders them (locks, joins).

use std::collections::{BTreeMap, BTreeSet};

pub type Actor = u64;

pub const HOST: Actor = 0;

/// For each actor, how many of its operations are known to come earlier.
#[derive(Clone, Default, Debug)]
pub struct Clock(BTreeMap<Actor, u64>);

impl Clock {
    pub fn join(&mut self, other: &Clock) {
        for (&actor, &number) in &other.0 {
            self.advance(actor, number);
        }
    }

    pub fn advance(&mut self, actor: Actor, number: u64) {
        let known = self.0.entry(actor).or_insert(0);
        *known = number.max(*known);
    }

    pub fn covers(&self, actor: Actor, number: u64) -> bool {
        self.0.get(&actor).is_some_and(|&known| known >= number)
    }

    /// Drops all actors but these.
    pub fn retain(&mut self, actors: &BTreeSet<Actor>) {
        self.0.retain(|actor, _| actors.contains(actor));
    }
}

/// The place of an access in the partial order.
#[derive(Clone, Debug)]
pub struct Moment {
    pub actor: Actor,
    pub number: u64,
    pub clock: Clock,
}

/// More rows than this are approximated by the range that contains them.
const ROWS: u64 = 1 << 14;

/// Bytes that an operation reads or writes, as ascending ranges that do not touch.
#[derive(Clone, PartialEq, Debug)]
pub struct Area(Vec<(u64, u64)>);

impl Area {
    pub fn block(start: u64, bytes: u64) -> Area {
        Area(if bytes == 0 { vec![] } else { vec![(start, start.wrapping_add(bytes))] })
    }

    /// Returns rows of `width` bytes at `start` plus every combination of the steps, which are pairs of a count and a distance
    /// in bytes.
    pub fn rows(start: u64, width: u64, steps: &[(u64, i64)]) -> Area {
        if width == 0 || steps.iter().any(|step| step.0 == 0) {
            return Area(vec![]);
        }
        let count = steps.iter().fold(1u64, |product, step| product.saturating_mul(step.0));
        if count > ROWS {
            let (mut low, mut high) = (start, start.wrapping_add(width));
            for &(count, distance) in steps {
                let reach = (count as i64 - 1).wrapping_mul(distance);
                (low, high) = (low.wrapping_add_signed(reach.min(0)), high.wrapping_add_signed(reach.max(0)));
            }
            return Area(vec![(low, high)]);
        }
        let mut starts = vec![start];
        for &(count, distance) in steps {
            let offsets = (0..count as i64).map(|index| index.wrapping_mul(distance));
            starts = offsets.flat_map(|offset| starts.iter().map(move |at| at.wrapping_add_signed(offset))).collect();
        }
        starts.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = vec![];
        for at in starts {
            let end = at.wrapping_add(width);
            match ranges.last_mut() {
                Some(last) if at <= last.1 => last.1 = end.max(last.1),
                _ => ranges.push((at, end)),
            }
        }
        Area(ranges)
    }

    /// Returns the first byte and the one after the last.
    pub fn span(&self) -> Option<(u64, u64)> {
        Some((self.0.first()?.0, self.0.last()?.1))
    }

    pub fn overlaps(&self, other: &Area) -> bool {
        let (mut here, mut there) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(a), Some(b)) = (here.peek(), there.peek()) {
            if a.0 < b.1 && b.0 < a.1 {
                return true;
            }
            if a.1 <= b.1 {
                here.next()
            } else {
                there.next()
            };
        }
        false
    }

    fn holds(&self, other: &Area) -> bool {
        other.0.iter().all(|b| self.0.iter().any(|a| a.0 <= b.0 && b.1 <= a.1))
    }
}

/// An area that an operation reads or writes.
#[derive(Clone, Debug)]
pub struct Touch {
    pub area: Area,
    pub write: bool,
}

impl Touch {
    pub fn read(area: Area) -> Touch {
        Touch { area, write: false }
    }

    pub fn write(area: Area) -> Touch {
        Touch { area, write: true }
    }
}

/// A past touch, stored with its allocation.
#[derive(Clone, Debug)]
pub struct Access {
    touch: Touch,
    actor: Actor,
    number: u64,
    what: String,
}

/// The accesses of one allocation that later accesses can still race with.
#[derive(Default, Debug)]
pub struct History(Vec<Access>);

impl History {
    /// Adds an access and returns the races with earlier ones, as text. Every later moment covers `host`.
    pub fn add(&mut self, touch: &Touch, moment: &Moment, what: &str, host: &Clock) -> Vec<String> {
        let ordered =
            |earlier: &Access| earlier.actor == moment.actor || moment.clock.covers(earlier.actor, earlier.number);
        let mut races = vec![];
        for earlier in &self.0 {
            if !ordered(earlier) && (touch.write || earlier.touch.write) && touch.area.overlaps(&earlier.touch.area) {
                races.push(format!(
                    "{what} {} ({}) is not ordered after {} {} ({})",
                    verb(touch.write),
                    name(moment.actor),
                    earlier.what,
                    verb(earlier.touch.write),
                    name(earlier.actor),
                ));
            }
        }
        // An access that races with a dropped entry also races with this one.
        self.0.retain(|earlier| {
            !(host.covers(earlier.actor, earlier.number)
                || ordered(earlier) && (touch.write || !earlier.touch.write) && touch.area.holds(&earlier.touch.area))
        });
        self.0.push(Access { touch: touch.clone(), actor: moment.actor, number: moment.number, what: what.to_owned() });
        races
    }

    /// Drops the accesses that the host knows to be complete, with which no later one can race.
    pub fn drop_complete(&mut self, host: &Clock) {
        self.0.retain(|access| !host.covers(access.actor, access.number));
    }

    pub fn actors(&self) -> impl Iterator<Item = Actor> {
        self.0.iter().map(|access| access.actor)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

fn verb(write: bool) -> &'static str {
    if write { "writing" } else { "reading" }
}

fn name(actor: Actor) -> String {
    if actor == HOST { "the host".to_owned() } else { format!("stream {actor:#x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_become_their_span() {
        let area = Area::rows(100, 1, &[(1 << 20, 2)]);
        assert_eq!(area.span(), Some((100, 100 + (1 << 21) - 1)));
    }
}
