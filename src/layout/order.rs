//! The order of strides: permutations, and the preset rules that make them.

use std::cmp::Reverse;

use smallvec::SmallVec;

use crate::dims::distinct;
use crate::dims::{Dim, Dims};
use crate::error::{Count, LayoutError, Tuple};
use crate::preset::LayoutRule;

/// All ranks, in C order.
const ASCENDING: [u8; 256] = {
    let mut ranks = [0; 256];
    let mut rank = 255u8;
    while rank > 0 {
        ranks[rank as usize] = rank;
        rank -= 1;
    }
    ranks
};

/// The rank of each dimension's stride in decreasing order: 0 for the largest, `ndim - 1` for the contiguous one.
///
/// # Example
/// ```
/// use dlfield::Layout;
/// assert_eq!(Layout::f_order(3).to_vec(), [2, 1, 0]);
/// assert_eq!(Layout::of_strides(&[4, 5, 6], &[1, 24, 4]).to_vec(), [2, 0, 1]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout(SmallVec<[u8; 16]>);

impl Layout {
    /// Returns the layout with the last dimension contiguous. `ndim` is at most [`super::MAX_NDIM`].
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Layout::c_order(3).to_vec(), [0, 1, 2]);
    /// ```
    pub fn c_order(ndim: usize) -> Layout {
        const FEW: usize = 16;
        match ASCENDING.first_chunk::<FEW>() {
            Some(few) if ndim <= FEW => Layout(SmallVec::from_buf_and_len(*few, ndim)),
            _ => Layout(SmallVec::from_slice(ascending(ndim))),
        }
    }

    /// Returns the layout with the first dimension contiguous. `ndim` is at most [`super::MAX_NDIM`].
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Layout::f_order(3).to_vec(), [2, 1, 0]);
    /// ```
    pub fn f_order(ndim: usize) -> Layout {
        Layout(ascending(ndim).iter().rev().copied().collect())
    }

    /// Builds a layout from a user's ranks: 0 for the largest stride.
    ///
    /// # Errors
    /// [`LayoutError`] unless `ranks` has each of `0..ndim` once, and `ndim` is at most [`super::MAX_NDIM`].
    ///
    /// # Example
    /// ```
    /// use dlfield::Layout;
    /// assert_eq!(Layout::new(&[1, 0], 2).unwrap(), Layout::f_order(2));
    /// assert!(Layout::new(&[1, 1], 2).is_err());
    /// ```
    pub fn new(ranks: &[i64], ndim: usize) -> Result<Layout, LayoutError> {
        let wrong = || {
            let expected = format_args!("each of 0 to {} once, 0 for the largest stride", ndim.saturating_sub(1));
            LayoutError::new("layout", &expected, &format_args!("{} for {}", Tuple(ranks), Count(ndim, "dimension")))
        };
        let taken: SmallVec<[u8; 16]> =
            ranks.iter().map(|rank| u8::try_from(*rank)).collect::<Result<_, _>>().map_err(|_| wrong())?;
        if ndim > super::MAX_NDIM {
            return Err(wrong());
        }
        let complete = (0u8..).take(ndim).all(|rank| taken.contains(&rank));
        if taken.len() == ndim && complete { Ok(Layout(taken)) } else { Err(wrong()) }
    }

    /// Ranks the dimensions by a sort key, smallest key first (largest stride); equal keys stay in index order.
    fn ranked<K: Ord>(ndim: usize, key: impl FnMut(usize) -> K) -> Layout {
        let keys: SmallVec<[K; 6]> = (0..ndim).map(key).collect();
        // A rank is the number of dimensions before this one: for a few dimensions, counting is faster than sorting.
        Layout(
            keys.iter()
                .enumerate()
                .map(|(axis, key)| {
                    let before = keys[..axis].iter().filter(|other| *other <= key).count()
                        + keys[axis + 1..].iter().filter(|other| *other < key).count();
                    u8::try_from(before).unwrap_or(u8::MAX)
                })
                .collect(),
        )
    }

    /// Returns the layout that a preset's rule gives to dimensions with these labels.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Dims, Layout, LayoutRule};
    /// let dims = Dims::parse(["K", "J", "I"]).unwrap();
    /// assert_eq!(Layout::by_rule(LayoutRule::Grid([0, 1, 2]), &dims).to_vec(), [2, 1, 0]);
    /// ```
    pub fn by_rule(rule: LayoutRule, dims: &Dims) -> Layout {
        let mut layout = Layout(SmallVec::new());
        layout.set_by_rule(rule, dims);
        layout
    }

    /// Reads the layout from strides of any unit. Strides of extent 1 mean nothing, so these dimensions follow C or F order if
    /// the others allow it.
    ///
    /// # Example
    /// ```
    /// use dlfield::Layout;
    /// assert_eq!(Layout::of_strides(&[4, 5], &[1, 4]), Layout::f_order(2));
    /// ```
    pub fn of_strides(shape: &[i64], strides: &[i64]) -> Layout {
        let steps =
            shape.iter().zip(strides).filter(|(extent, _)| **extent != 1).map(|(_, stride)| stride.unsigned_abs());
        let steps: SmallVec<[u64; 6]> = steps.collect();
        if steps.is_sorted_by(|left, right| left >= right) {
            Layout::c_order(shape.len())
        } else if steps.is_sorted() {
            Layout::f_order(shape.len())
        } else {
            Layout::ranked(strides.len(), |axis| Reverse(strides[axis].unsigned_abs()))
        }
    }

    /// Returns the axes from the largest stride to the smallest.
    ///
    /// # Example
    /// ```
    /// use dlfield::Layout;
    /// assert!(Layout::new(&[2, 0, 1], 3).unwrap().axes().eq([1, 2, 0]));
    /// ```
    pub fn axes(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone + use<> {
        let mut axes = SmallVec::<[usize; 16]>::from_elem(0, self.0.len());
        for (axis, rank) in self.0.iter().enumerate() {
            axes[usize::from(*rank)] = axis;
        }
        axes.into_iter()
    }

    /// Returns the layout of a view that keeps the given axes in the given order. Axes that do not exist, or come again, are
    /// left out.
    ///
    /// # Example
    /// ```
    /// use dlfield::Layout;
    /// assert_eq!(Layout::new(&[2, 0, 1], 3).unwrap().select(&[0, 2]).to_vec(), [1, 0]);
    /// ```
    pub fn select(&self, axes: &[usize]) -> Layout {
        let kept: SmallVec<[u8; 16]> = distinct(axes).filter_map(|axis| self.0.get(axis).copied()).collect();
        Layout::ranked(kept.len(), |axis| kept[axis])
    }

    /// Appends `count` data dimensions, which get the largest strides, the first one the largest of all.
    ///
    /// # Example
    /// ```
    /// use dlfield::Layout;
    /// assert_eq!(Layout::c_order(2).with_data(1).to_vec(), [1, 2, 0]);
    /// ```
    pub fn with_data(&self, count: u8) -> Layout {
        let others = self.0.iter().map(|rank| rank.saturating_add(count));
        Layout(others.chain(0..count).collect())
    }

    /// Iterates over the ranks, in index order.
    ///
    /// # Example
    /// ```
    /// use dlfield::Layout;
    /// assert!(Layout::f_order(3).iter().eq([2, 1, 0]));
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.iter().copied()
    }

    /// Returns the ranks, in index order, without a copy.
    #[cfg(feature = "python")]
    pub(crate) fn ranks(&self) -> &[u8] {
        &self.0
    }

    /// Returns the ranks, in index order.
    ///
    /// # Example
    /// ```
    /// use dlfield::Layout;
    /// assert_eq!(Layout::f_order(2).to_vec(), [1, 0]);
    /// ```
    pub fn to_vec(&self) -> Vec<u8> {
        self.0.to_vec()
    }

    /// Returns the number of dimensions.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Layout::c_order(3).len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no dimensions.
    ///
    /// # Example
    /// ```
    /// assert!(dlfield::Layout::c_order(0).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Layout {
    /// As [`Layout::by_rule`], in place.
    pub(super) fn set_by_rule(&mut self, rule: LayoutRule, dims: &Dims) {
        match rule {
            LayoutRule::C => *self = Layout::c_order(dims.len()),
            LayoutRule::F => *self = Layout::f_order(dims.len()),
            // Most fields have these dimensions, and the ranks are theirs, unless someone's rule has others than 0, 1 and 2.
            LayoutRule::Grid(ranks)
                if dims.len() == 3 && dims.is_standard() && (0..3).all(|rank| ranks.contains(&rank)) =>
            {
                *self = Layout(SmallVec::from_slice(&ranks));
            }
            LayoutRule::Grid(ranks) => {
                let horizontal = last_horizontal(ranks, dims);
                *self = Layout::ranked(dims.len(), |axis| match dims.get(axis) {
                    Dim::Data(number) => (0, number),
                    // The contiguous horizontal dimension, and the other one.
                    Dim::Label(_) if horizontal == Some(axis) => (2, u32::from(ranks[0].max(ranks[1]))),
                    Dim::Label(_) if horizontal.is_some() => (2, u32::from(ranks[0].min(ranks[1]))),
                    Dim::Label(_) => (1, 0),
                    Dim::I => (2, u32::from(ranks[0])),
                    Dim::J => (2, u32::from(ranks[1])),
                    Dim::K => (2, u32::from(ranks[2])),
                });
            }
            LayoutRule::HorizontalFirst => {
                // Of each kind, the first label of a user has the smallest stride.
                let behind = |axis: usize| u32::try_from(dims.len() - axis).unwrap_or(0);
                *self = Layout::ranked(dims.len(), |axis| match dims.get(axis) {
                    Dim::Data(number) => (0, number),
                    Dim::Label(label) if is_local(&label) => (1, behind(axis)),
                    Dim::K => (2, 0),
                    Dim::Label(_) => (3, behind(axis)),
                    Dim::J => (3, u32::MAX - 1),
                    Dim::I => (3, u32::MAX),
                });
            }
        }
    }

    /// Returns the axes from the smallest stride to the largest, without a list of them.
    pub(super) fn axes_by_stride(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len()).rev().filter_map(|rank| self.0.iter().position(|found| usize::from(*found) == rank))
    }
}

/// Returns the last axis with a user's label, if these labels stand for the horizontal: there is K, neither I nor J, and the rule
/// has a horizontal dimension contiguous.
fn last_horizontal(ranks: [u8; 3], dims: &Dims) -> Option<usize> {
    let has = |label| dims.iter().any(|dim| dim == label);
    let stands = ranks[2] < ranks[0].max(ranks[1]) && has(Dim::K) && !has(Dim::I) && !has(Dim::J);
    (0..dims.len()).rev().find(|axis| stands && matches!(dims.get(*axis), Dim::Label(_)))
}

/// Returns whether a label is that of a local dimension, the neighbours of a point, as ICON names them: `C2E2CO`, `V2E`.
fn is_local(label: &str) -> bool {
    let parts = label.split('2');
    label.contains('2')
        && parts.into_iter().all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase()))
}

/// Returns the ranks in C order.
#[inline]
fn ascending(ndim: usize) -> &'static [u8] {
    &ASCENDING[..ndim.min(ASCENDING.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_rule(ranks: [u8; 3], dims: &[&str]) -> Vec<u8> {
        Layout::by_rule(LayoutRule::Grid(ranks), &Dims::parse(dims).expect("valid")).to_vec()
    }

    #[test]
    fn rules_that_are_no_permutation_make_layouts() {
        for ranks in [[9, 9, 9], [0, 0, 0], [1, 1, 2], [2, 1, 1], [255, 0, 1]] {
            for dims in [&["I", "J", "K"][..], &["K", "J", "I"], &["I", "J", "K", "0"]] {
                let found: Vec<i64> = by_rule(ranks, dims).into_iter().map(i64::from).collect();
                assert!(Layout::new(&found, dims.len()).is_ok(), "{ranks:?} make {found:?}");
            }
        }
        assert_eq!(by_rule([1, 1, 0], &["I", "J", "K"]), [1, 2, 0]);
    }

    #[test]
    fn labels_of_users_stand_for_the_horizontal_beside_k() {
        for (ranks, dims, expected) in [
            ([2, 1, 0], &["Cell", "K"][..], &[1, 0][..]),
            ([2, 1, 0], &["K", "Cell"], &[0, 1]),
            ([2, 1, 0], &["lat", "lon", "K"], &[1, 2, 0]),
            ([2, 1, 0], &["Cell", "K", "0"], &[2, 1, 0]),
            ([1, 2, 0], &["Cell", "K"], &[1, 0]),
            ([0, 2, 1], &["lat", "lon", "K"], &[0, 2, 1]),
            // K is contiguous, or there are dimensions of the grid.
            ([0, 1, 2], &["Cell", "K"], &[0, 1]),
            ([2, 1, 0], &["x", "I", "K"], &[0, 2, 1]),
        ] {
            assert_eq!(by_rule(ranks, dims), expected, "{ranks:?} {dims:?}");
        }
        let next =
            |dims: &[&str]| Layout::by_rule(LayoutRule::HorizontalFirst, &Dims::parse(dims).expect("valid")).to_vec();
        assert_eq!(next(&["Cell", "C2E2CO", "K"]), [2, 0, 1]);
        assert_eq!(next(&["I", "J", "K", "0"]), [3, 2, 1, 0]);
        assert_eq!(next(&["K", "V2E", "Vertex", "E2C2V"]), [2, 1, 3, 0]);
    }

    #[test]
    fn extents_of_one_follow_the_others() {
        assert_eq!(Layout::of_strides(&[4, 1, 3], &[1, 4, 4]), Layout::f_order(3));
        assert_eq!(Layout::of_strides(&[4, 1, 3], &[3, 1, 1]), Layout::c_order(3));
        assert_eq!(Layout::of_strides(&[4, 5], &[-5, 1]), Layout::c_order(2));
    }
}
