//! Functions on `ndarray` views in any layout, without Python.

#![allow(clippy::reversed_empty_ranges, reason = "ndarray counts negative ends from the back")]

use dlfield::traverse;
use ndarray::parallel::prelude::*;
use ndarray::{ArrayView, ArrayView3, ArrayViewMut3, Axis, Dimension, s};

/// Returns the sum of all elements.
pub fn sum<D: Dimension>(x: ArrayView<'_, f64, D>) -> f64 {
    let mut total = 0.0;
    traverse::for_each_run(x, |run| {
        total += match run.as_slice() {
            Some(_) => run.sum(),
            // Four sums in turn: an addition need not wait for the one before it.
            None => run.iter().fold([0.0; 4], |[a, b, c, d], x| [b, c, d, a + x]).iter().sum(),
        };
    });
    total
}

/// Writes the sum of the six neighbours less six times the point, for all inner points of `out`. Callers check that the arrays
/// have the same shape.
pub fn laplacian(inp: ArrayView3<'_, f64>, out: ArrayViewMut3<'_, f64>) -> dlfield::Result<()> {
    if out.shape().iter().any(|extent| *extent < 3) {
        return Ok(());
    }
    // The stencil is symmetric in the axes, so sort them: planes along the one with the largest stride are divided among threads.
    let mut axes = [0, 1, 2];
    axes.sort_by_key(|axis| std::cmp::Reverse(out.strides()[*axis].unsigned_abs()));
    let (inp, mut out) = (inp.permuted_axes(axes), out.permuted_axes(axes));
    let mut inner = out.slice_mut(s![1..-1, 1..-1, 1..-1]);
    inner.axis_iter_mut(Axis(0)).into_par_iter().enumerate().try_for_each(|(i, plane)| {
        let (before, middle, after) =
            (inp.index_axis(Axis(0), i), inp.index_axis(Axis(0), i + 1), inp.index_axis(Axis(0), i + 2));
        let points = (
            before.slice(s![1..-1, 1..-1]),
            after.slice(s![1..-1, 1..-1]),
            middle.slice(s![..-2, 1..-1]),
            middle.slice(s![2.., 1..-1]),
            middle.slice(s![1..-1, ..-2]),
            middle.slice(s![1..-1, 2..]),
            middle.slice(s![1..-1, 1..-1]),
            plane,
        );
        traverse::zip(points, |(north, south, west, east, below, above, centre, out)| {
            *out = north + south + west + east + below + above - 6.0 * centre;
        })
    })
}
