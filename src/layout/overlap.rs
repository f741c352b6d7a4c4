//! Decides whether two strided fields have a byte in common.
//!
//! Bytes of one field are counted upwards from its first byte, those of the other downwards from its last. Then every step is
//! positive, and a common byte is a solution of
//!
//! ```text
//! step₁·x₁ + step₂·x₂ + … + rest = target    with 0 ≤ xₖ ≤ lastₖ and 0 ≤ rest ≤ slack
//! ```
//!
//! where `target` is the distance from the first byte of the one to the last byte of the other, each dimension of either field
//! is a term, and `rest` is the offset within both elements. Terms that continue each other, as the dimensions of a compact
//! field do, are merged; two views of one array seldom have more than two left. The search starts with the largest step.

use std::ops::Rem;

use smallvec::SmallVec;

use super::byte_span;

/// The addresses of a field's elements. Any numbers are allowed.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a> {
    /// Address of the element at index 0, in bytes.
    pub address: usize,
    /// Extents; a field with one below 1 has no elements.
    pub shape: &'a [i64],
    /// Strides in elements.
    pub strides: &'a [i64],
    /// Bytes of one element.
    pub itemsize: usize,
}

/// After this many trials the answer is `true` although no common byte was found: less than a millisecond.
const TRIALS: u32 = 10_000;

/// Returns whether two fields have a byte in common.
///
/// The answer is exact for two one-dimensional fields, and for others if it takes at most 10 000 trials: two views of one array
/// take a few, as their strides are equal or multiples. Beyond that, and for fields that span more than 2**64 bytes, it is
/// `true`.
///
/// # Example
/// ```
/// use dlfield::testing::{Strided, overlap};
/// let every_other = |address| Strided { address, shape: &[4], strides: &[2], itemsize: 8 };
/// assert!(!overlap(&every_other(4096), &every_other(4104)));
/// assert!(overlap(&every_other(4096), &every_other(4112)));
/// ```
pub fn overlap(one: &Strided<'_>, other: &Strided<'_>) -> bool {
    // Fast path: most fields are further apart than they reach, in any direction.
    let distance = one.address.abs_diff(other.address);
    distance <= one.reach().saturating_add(other.reach()) && meet(one, other)
}

/// As [`overlap`], for fields that are near each other.
#[inline(never)]
fn meet(one: &Strided<'_>, other: &Strided<'_>) -> bool {
    if one.is_empty() || other.is_empty() {
        return false;
    }
    if one.address == other.address {
        return true;
    }
    let (Some((first, end)), Some((start, last))) = (one.ends(), other.ends()) else { return true };
    if last < first || end < start {
        return false;
    }
    let mut trials = TRIALS;
    Equation::new(one, other, last - first).is_none_or(|equation| equation.is_solvable(&mut trials))
}

impl Strided<'_> {
    fn is_empty(&self) -> bool {
        self.itemsize == 0 || self.shape.iter().any(|extent| *extent < 1)
    }

    /// Returns the number of bytes, in either direction from the address of the element at index 0, that contain all elements.
    fn reach(&self) -> usize {
        let far = |(extent, stride): (&i64, &i64)| {
            stride.unsigned_abs().saturating_mul(extent.saturating_sub(1).unsigned_abs())
        };
        let elements = self.shape.iter().zip(self.strides).map(far).fold(1u64, u64::saturating_add);
        usize::try_from(elements).unwrap_or(usize::MAX).saturating_mul(self.itemsize)
    }

    /// Returns the addresses of the first and the last byte; `None` if their distance exceeds 64 bits.
    fn ends(&self) -> Option<(i128, i128)> {
        let (low, high) = byte_span(self.shape, self.strides, self.itemsize)?;
        // The distance of saturated sums exceeds 64 bits too.
        u64::try_from(high.saturating_sub(low)).ok()?;
        let address = i128::try_from(self.address).ok()?;
        Some((address.checked_add(low)?, address.checked_add(high)?.checked_sub(1)?))
    }

    fn terms(&self) -> impl Iterator<Item = Option<Term>> + '_ {
        let steps = self.shape.iter().zip(self.strides).filter(|(extent, stride)| **extent > 1 && **stride != 0);
        steps.map(|(extent, stride)| {
            let step = stride.unsigned_abs().checked_mul(u64::try_from(self.itemsize).ok()?)?;
            Some(Term { step, last: extent.unsigned_abs() - 1, finer: Finer { reach: 0, gcd: 0 } })
        })
    }
}

/// The multiples of a step, from 0 to `last` times.
#[derive(Clone, Copy, Debug)]
struct Term {
    step: u64,
    last: u64,
    finer: Finer,
}

/// The terms with smaller steps, together.
#[derive(Clone, Copy, Debug)]
struct Finer {
    /// Their largest sum.
    reach: u64,
    /// The greatest common divisor of their steps; 0 if there are none.
    gcd: u64,
}

/// The equation that has a solution if two fields have a byte in common.
#[derive(Debug)]
struct Equation {
    /// Smallest step first; terms that continue each other are merged.
    terms: SmallVec<[Term; 12]>,
    slack: u64,
    target: u64,
}

impl Equation {
    /// Builds the equation of two fields with elements; `None` if they reach further than 64 bits.
    fn new(one: &Strided<'_>, other: &Strided<'_>, target: i128) -> Option<Equation> {
        let target = u64::try_from(target).ok()?;
        let mut slack = u64::try_from((one.itemsize - 1).checked_add(other.itemsize - 1)?).ok()?;
        let mut terms: SmallVec<[Term; 12]> = one.terms().chain(other.terms()).collect::<Option<_>>()?;
        // All sums below are part of this one, so none of them overflows.
        terms.iter().try_fold(slack, |sum, term| sum.checked_add(term.step.checked_mul(term.last)?))?;
        terms.sort_unstable_by_key(|term| term.step);
        // Merges in place: `terms[..merged]` is done, the terms from `position` on are not.
        let mut merged = 0;
        for position in 0..terms.len() {
            let term = terms[position];
            match terms[..merged].last_mut() {
                None if term.step - 1 <= slack => slack += term.step * term.last,
                Some(finer) if term.step.is_multiple_of(finer.step) && term.step / finer.step - 1 <= finer.last => {
                    finer.last += term.step / finer.step * term.last;
                }
                _ => {
                    terms[merged] = term;
                    merged += 1;
                }
            }
        }
        terms.truncate(merged);
        let mut finer = Finer { reach: 0, gcd: 0 };
        for term in &mut terms {
            term.finer = finer;
            finer = Finer { reach: finer.reach + term.step * term.last, gcd: gcd(finer.gcd, term.step) };
        }
        Some(Equation { terms, slack, target })
    }

    /// Returns whether there is a solution; also `true` if `trials` are used up.
    fn is_solvable(&self, trials: &mut u32) -> bool {
        search(&self.terms, self.target, self.slack, trials)
    }
}

/// Returns whether the terms sum to `target`, or to at most `slack` less; also `true` if `trials` are used up.
fn search(terms: &[Term], target: u64, slack: u64, trials: &mut u32) -> bool {
    let Some((term, finer)) = terms.split_last() else { return target <= slack };
    // From the fewest times for which the finer terms reach the rest, to the most that do not exceed the target.
    let mut times = target.saturating_sub(slack).saturating_sub(term.finer.reach).div_ceil(term.step);
    let most = term.last.min(target / term.step);
    while times <= most {
        if finer.is_empty() {
            return true;
        }
        let Some(left) = trials.checked_sub(1) else { return true };
        *trials = left;
        let Some(ahead) = term.ahead(target - times * term.step, slack) else { return false };
        times = match times.checked_add(ahead) {
            Some(times) if times <= most => times,
            _ => return false,
        };
        // A single finer term always reaches what is left now, so two terms need no second trial.
        if search(finer, target - times * term.step, slack, trials) {
            return true;
        }
        times += 1;
    }
    false
}

impl Term {
    /// Returns how often to subtract the step from `target` until the rest is at most `slack` above a multiple of the finer
    /// terms' greatest common divisor; `None` if that never happens.
    fn ahead(&self, target: u64, slack: u64) -> Option<u64> {
        let over = target % self.finer.gcd;
        if over <= slack {
            return Some(0);
        }
        first_multiple(self.step % self.finer.gcd, self.finer.gcd, over - slack, over)
    }
}

/// Returns the smallest `x` with `low <= step * x % modulus <= high`, where `0 < low <= high < modulus` and `step < modulus`.
///
/// Takes as many steps as Euclid's algorithm, for the same reason.
fn first_multiple(step: u64, modulus: u64, low: u64, high: u64) -> Option<u64> {
    if step == 0 {
        return None;
    }
    let times = low.div_ceil(step);
    if times.checked_mul(step).is_some_and(|multiple| multiple <= high) {
        return Some(times);
    }
    // No multiple of the step is between the two: adds the modulus as few times as it takes to get one there.
    let rounds = first_multiple(modulus % step, step, step - high % step, step - low % step)?;
    let end = u128::from(modulus) * u128::from(rounds) + u128::from(low);
    u64::try_from(end.div_ceil(step.into())).ok()
}

/// Returns the greatest common divisor of two numbers that are 0 or more.
pub(crate) fn gcd<N: Copy + Default + PartialEq + Rem<Output = N>>(mut a: N, mut b: N) -> N {
    while b != N::default() {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(address: usize, shape: &'a [i64], strides: &'a [i64], itemsize: usize) -> Strided<'a> {
        Strided { address, shape, strides, itemsize }
    }

    fn meets(one: Strided<'_>, other: Strided<'_>) -> bool {
        let found = overlap(&one, &other);
        assert_eq!(found, overlap(&other, &one), "not symmetric: {one:?} {other:?}");
        found
    }

    /// Returns the number of trials it takes to decide.
    fn trials(one: Strided<'_>, other: Strided<'_>) -> u32 {
        let mut left = TRIALS;
        let (first, last) = (one.ends().expect("countable").0, other.ends().expect("countable").1);
        let Some(equation) = Equation::new(&one, &other, last - first) else { return 0 };
        equation.is_solvable(&mut left);
        TRIALS - left
    }

    #[test]
    fn inner_parts_and_halos_of_one_array() {
        let n = 100i64;
        let shape = [n - 2, n - 2, n - 2];
        let strides = [n * n, n, 1];
        let place = |index: [i64; 3]| {
            let elements: i64 = index.iter().zip(strides).map(|(at, stride)| at * stride).sum();
            4096 + 8 * usize::try_from(elements).expect("inside")
        };
        let inside = at(place([1, 1, 1]), &shape, &strides, 8);
        for axis in 0..3 {
            for first in [0, n - 1] {
                let (mut layer, mut start) = ([n; 3], [0; 3]);
                (layer[axis], start[axis]) = (1, first);
                let halo = at(place(start), &layer, &strides, 8);
                assert!(!meets(inside, halo), "axis {axis}, layer {first}");
                assert!(trials(inside, halo) < 4);
                start[axis] = if first == 0 { 1 } else { n - 2 };
                assert!(meets(inside, at(place(start), &layer, &strides, 8)));
            }
        }
        // Neighbouring boxes, in any direction, and the same shifted by one.
        let half = [n / 2; 3];
        for (start, meet) in [([0, 0, 50], false), ([0, 50, 0], false), ([50, 0, 0], false), ([0, 0, 49], true)] {
            assert_eq!(meets(at(place([0; 3]), &half, &strides, 8), at(place(start), &half, &strides, 8)), meet);
        }
    }

    #[test]
    fn two_steps_are_exact_however_many_elements() {
        // 1 000 003 x + 999 983 y = b has at most one solution in this range, and most b have none.
        let (one, other) = ([1_000_003i64], [-999_983i64]);
        let many = [300_000i64];
        let first = at(1 << 60, &many, &one, 1);
        for (times, far) in [(123_456, 265_432), (0, 299_999), (299_999, 0)] {
            let hit = (1usize << 60) + times * 1_000_003 + far * 999_983;
            for (aside, met) in [(0, true), (1, false)] {
                let second = at(hit + aside, &many, &other, 1);
                assert_eq!(meets(first, second), met, "{times} {far} {aside}");
                assert!(trials(first, second) <= 1);
            }
        }
    }

    #[test]
    fn zero_strides_and_elements_of_two_sizes() {
        assert!(!meets(at(64, &[1 << 40], &[0], 8), at(72, &[5], &[1], 4)));
        assert!(meets(at(64, &[1 << 40], &[0], 8), at(71, &[5], &[1], 4)));
        assert!(!meets(at(64, &[8], &[3], 2), at(66, &[8], &[6], 1)));
        assert!(meets(at(64, &[8], &[3], 2), at(65, &[8], &[6], 1)));
    }

    #[test]
    fn empty_fields_meet_nothing() {
        let all = at(64, &[1 << 20], &[1], 8);
        for shape in [[0, 4], [4, 0], [-3, 4], [4, i64::MIN]] {
            assert!(!meets(at(64, &shape, &[4, 1], 8), all));
            assert!(!meets(at(128, &shape, &[4, 1], 8), all));
        }
        assert!(!meets(at(128, &[4], &[1], 0), all));
    }

    #[test]
    fn numbers_beyond_64_bits_are_taken_to_meet() {
        let huge = [i64::MAX; 64];
        let wide = at(usize::MAX, &huge, &huge, usize::MAX);
        assert!(meets(wide, at(0, &[2], &[1], 8)));
        assert!(meets(wide, at(usize::MAX, &huge, &[i64::MIN; 64], usize::MAX)));
        assert!(meets(at(9, &[2], &[i64::MIN], 16), at(8, &[3], &[i64::MAX], 16)));
        assert!(!meets(at(0, &[], &[], 8), at(usize::MAX, &[], &[], 8)));
        assert!(meets(at(usize::MAX - 7, &[], &[], 8), at(usize::MAX, &[], &[], 8)));
    }

    #[test]
    #[cfg_attr(miri, ignore = "ten thousand trials take it minutes")]
    fn a_search_ends_when_the_trials_are_used_up() {
        // All sums of 28 unrelated numbers: 2**28 of more than 2**44 addresses.
        let mut state = 1u64;
        let mut stride = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::try_from(1 << 40 | state >> 24).expect("41 bits")
        };
        let (strides, others): (Vec<i64>, Vec<i64>) =
            ((0..14).map(&mut stride).collect(), (0..14).map(&mut stride).collect());
        let one = at(1 << 50, &[2; 14], &strides, 1);
        let other = at((1 << 50) + 12_345, &[2; 14], &others, 1);
        assert!(overlap(&one, &other));
        assert_eq!(trials(one, other), TRIALS);
        let places = |field: &Strided<'_>| {
            let mut all = vec![i64::try_from(field.address).expect("small")];
            for stride in field.strides {
                all.extend(all.clone().iter().map(|place| place + stride));
            }
            all.sort_unstable();
            all
        };
        let (mine, yours) = (places(&one), places(&other));
        assert!(mine.iter().all(|place| yours.binary_search(place).is_err()), "they really meet");
    }

    #[test]
    fn the_first_multiple_is_the_one_that_counting_finds() {
        for modulus in 2..40u64 {
            for step in 0..modulus {
                for low in 1..modulus {
                    for high in low..modulus {
                        let counted = (0..modulus).find(|times| (low..=high).contains(&(step * times % modulus)));
                        assert_eq!(first_multiple(step, modulus, low, high), counted, "{step} {modulus} {low} {high}");
                    }
                }
            }
        }
        let modulus = u64::MAX - 58;
        let times = first_multiple(modulus - 1, modulus, 5, 9).expect("there is one");
        assert_eq!(times, modulus - 9);
    }
}
