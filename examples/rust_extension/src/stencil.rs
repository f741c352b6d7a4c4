//! The stencil, on `ndarray` views, without Python.

#![allow(clippy::reversed_empty_ranges, reason = "ndarray counts negative ends from the back")]

use ndarray::parallel::prelude::*;
use ndarray::{ArrayView1, ArrayView3, ArrayViewMut1, ArrayViewMut3, Axis, Zip, s};

/// Writes the sum of the six neighbours less six times the point, for all inner points of `out`.
pub fn laplacian(inp: ArrayView3<'_, f64>, out: ArrayViewMut3<'_, f64>) {
    if out.shape().iter().any(|extent| *extent < 3) {
        return;
    }
    // The stencil is symmetric in the axes, so sort them: the one with the smallest stride comes last.
    let mut axes = [0, 1, 2];
    axes.sort_by_key(|axis| std::cmp::Reverse(out.strides()[*axis].unsigned_abs()));
    let (inp, mut out) = (inp.permuted_axes(axes), out.permuted_axes(axes));
    let mut inner = out.slice_mut(s![1..-1, 1..-1, 1..-1]);
    inner.axis_iter_mut(Axis(0)).into_par_iter().enumerate().for_each(|(i, mut plane)| {
        Zip::from(plane.rows_mut())
            .and(inp.slice(s![i, 1..-1, 1..-1]).rows())
            .and(inp.slice(s![i + 2, 1..-1, 1..-1]).rows())
            .and(inp.slice(s![i + 1, ..-2, 1..-1]).rows())
            .and(inp.slice(s![i + 1, 2.., 1..-1]).rows())
            .and(inp.slice(s![i + 1, 1..-1, ..]).rows())
            .for_each(|out, north, south, west, east, centre| row([north, south, west, east], centre, out));
    });
}

/// Writes one row; `centre` has one more point at each end.
fn row(around: [ArrayView1<'_, f64>; 4], centre: ArrayView1<'_, f64>, mut out: ArrayViewMut1<'_, f64>) {
    let [north, south, west, east] = &around;
    if let (Some(out), Some(centre), Some(north), Some(south), Some(west), Some(east)) =
        (out.as_slice_mut(), centre.as_slice(), north.as_slice(), south.as_slice(), west.as_slice(), east.as_slice())
    {
        // Slices of equal length: the compiler removes the bounds checks and vectorizes the loop.
        let len = out.len();
        let (north, south, west, east) = (&north[..len], &south[..len], &west[..len], &east[..len]);
        let (before, middle, after) = (&centre[..len], &centre[1..len + 1], &centre[2..len + 2]);
        for k in 0..len {
            out[k] = north[k] + south[k] + west[k] + east[k] + before[k] + after[k] - 6.0 * middle[k];
        }
        return;
    }
    for (k, out) in out.iter_mut().enumerate() {
        *out = north[k] + south[k] + west[k] + east[k] + centre[k] + centre[k + 2] - 6.0 * centre[k + 1];
    }
}
