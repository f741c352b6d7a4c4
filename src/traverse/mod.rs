//! Traversal of `ndarray` views in the order of memory.
//!
//! `ndarray` visits the elements of a view in index order unless they fill one block of memory. These functions visit those of
//! any view in the order in which they lie in memory, at the speed of a loop over its strides. They take everything that
//! `ndarray::Zip` takes as an array: views, references to arrays, slices; so also the views of tensors and of the arguments of
//! Python functions.
//!
//! | function | visits |
//! |---|---|
//! | [`for_each`], [`fold`] | the elements of an array |
//! | [`for_each_run`] | the runs of an array, each a one-dimensional view: a slice if the elements are contiguous |
//! | [`domain`] | nothing: it leaves out the halo of a view |
//! | [`zip`], [`zip_runs`] | the elements at the same index of several arrays of one shape, or their runs |
//!
//! Each index is visited exactly once: so is each element, unless a stride of 0 repeats it. The order is the following:
//!
//! - The dimension with the smallest stride, regardless of its sign, is innermost. One with a negative stride is visited from its end.
//!   Dimensions of extent 1 are left out.
//! - Dimensions that continue each other in memory are merged, so that a contiguous array in any order is one run.
//! - Of several arrays, the first that is written decides. If all are read, the one with the most elements in memory decides:
//!   elements that a stride of 0 repeats count once. The other arrays, from the first on, decide between equal strides, and then
//!   the last dimension is innermost. All arrays follow, so a run of another array may have any stride: large, negative or 0.
//!
//! Up to six dimensions need no allocation.
//!
//! # Example
//! The same function for arrays in C order, in F order, with gaps, or reversed:
//! ```
//! use dlfield::ndarray::{Array3, ArrayView3, ArrayViewMut3, ShapeBuilder, s};
//! use dlfield::traverse;
//!
//! fn add_scaled(out: ArrayViewMut3<'_, f64>, scale: f64, inp: ArrayView3<'_, f64>) -> dlfield::Result<()> {
//!     traverse::zip((out, inp), |(out, inp)| *out += scale * inp)
//! }
//!
//! let inp = Array3::<f64>::ones((8, 6, 4).f());
//! let mut out = Array3::<f64>::zeros((8, 6, 8).f());
//! add_scaled(out.slice_mut(s![.., ..;-1, ..;2]), 2.0, inp.view())?;
//! assert_eq!(traverse::fold(&out, 0.0, |sum, x| sum + x), 2.0 * 8.0 * 6.0 * 4.0);
//! # Ok::<(), dlfield::Error>(())
//! ```

mod loops;
mod operand;
mod view;

pub use operand::{Operand, Operands};

use ndarray::{ArrayBase, Axis, Dimension, RawData, Slice};

use crate::descriptor::Descriptor;
use crate::error::{LayoutError, LayoutErrorKind, Result};
use view::Traversal;

/// Returns the part of a view inside the halo of its field.
///
/// # Errors
/// [`LayoutError`] unless the view has the field's shape.
///
/// # Example
/// ```
/// use dlfield::{DType, Spec, Tensor, ndarray::Ix2, traverse};
/// let mut field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 1), (0, 2)]))?;
/// let described = field.descriptor().clone();
/// traverse::domain(field.array_view_mut::<f64, Ix2>()?, &described)?.fill(1.0);
/// assert_eq!(field.read::<f64, Ix2>()?.sum(), 2.0 * 3.0);
/// # Ok::<(), dlfield::Error>(())
/// ```
pub fn domain<S: RawData, D: Dimension>(mut array: ArrayBase<S, D>, field: &Descriptor) -> Result<ArrayBase<S, D>> {
    let extents = |extent: &i64| usize::try_from(*extent).unwrap_or(usize::MAX);
    if !field.shape().iter().map(extents).eq(array.shape().iter().copied()) {
        let (expected, got) =
            (format_args!("{:?}, that of the field", field.shape()), format_args!("{:?}", array.shape()));
        return Err(LayoutError::new("shape", &expected, &got).with_kind(LayoutErrorKind::Mismatch).into());
    }
    let halo = field.halo().unwrap_or(&[]);
    for (axis, (lower, upper)) in halo.iter().enumerate() {
        let bound = |width: i64| isize::try_from(width).unwrap_or(isize::MAX);
        array.slice_axis_inplace(Axis(axis), Slice::from(bound(*lower)..bound(field.shape()[axis] - upper)));
    }
    Ok(array)
}

/// Calls `f` with a reference to each element of an array, in the order of memory: `&T` for an array that is read, `&mut T`
/// for one that is written.
///
/// # Example
/// ```
/// use dlfield::ndarray::{array, s};
/// use dlfield::traverse;
/// let mut array = array![[1, 2, 3], [4, 5, 6]];
/// traverse::for_each(array.slice_mut(s![.., ..;2]), |x| *x *= 10);
/// assert_eq!(array, array![[10, 2, 30], [40, 5, 60]]);
///
/// let mut seen = Vec::new();
/// traverse::for_each(array.t(), |x| seen.push(*x));
/// assert_eq!(seen, [10, 2, 30, 40, 5, 60], "the order of memory, not that of the transposed indices");
/// ```
#[inline]
pub fn for_each<A: Operand>(array: A, mut f: impl FnMut(A::Item)) {
    fold(array, (), |(), item| f(item));
}

/// Combines the elements of an array in the order of memory: calls `f` with the result so far, `init` at first, and a
/// reference to an element, and returns the last result.
///
/// `f` is called for one element after the other. A sum of floating-point numbers is faster by [runs](for_each_run), as the
/// numbers of a slice can be added several at a time.
///
/// # Example
/// ```
/// use dlfield::ndarray::Array2;
/// use dlfield::traverse;
/// let squares = Array2::from_shape_fn((3, 4), |(i, j)| (i * j) as i64);
/// assert_eq!(traverse::fold(squares.t(), i64::MIN, |largest, x| largest.max(*x)), 6);
/// ```
#[inline]
pub fn fold<A: Operand, B>(array: A, init: B, mut f: impl FnMut(B, A::Item) -> B) -> B {
    Traversal::one(array.into_view()).fold_items(init, |result, (item,)| f(result, item))
}

/// Calls `f` with each run of an array: a one-dimensional view along the innermost dimension, in the order of memory.
///
/// The runs together have every element once, and all have the same length and stride. If the elements of a run are contiguous
/// in memory, `as_slice` (`as_slice_mut`) of the view returns them as a slice, which the compiler can vectorize.
///
/// # Example
/// ```
/// use dlfield::ndarray::{Array3, s};
/// use dlfield::traverse;
/// let field = Array3::<f64>::ones((6, 5, 8));
/// let inner = field.slice(s![1..-1, 1..-1, 1..-1]);
/// let (mut sum, mut rows) = (0.0, 0);
/// traverse::for_each_run(inner.permuted_axes([2, 0, 1]), |row| {
///     sum += row.as_slice().expect("contiguous").iter().sum::<f64>();
///     rows += 1;
/// });
/// assert_eq!((sum, rows), (72.0, 12));
/// ```
#[inline]
pub fn for_each_run<A: Operand>(array: A, mut f: impl FnMut(A::Run)) {
    Traversal::one(array.into_view()).fold_runs((), |(), (run,)| f(run));
}

/// Calls `f` with a tuple of references to the elements at each index of several arrays, up to eight: `&T` of arrays that are
/// read, `&mut T` of those that are written. Element types and types of dimensions may differ.
///
/// # Errors
/// [`LayoutError`] unless all arrays have the same shape: nothing is broadcast.
///
/// # Example
/// ```
/// use dlfield::ndarray::{Array3, Ix3, ShapeBuilder};
/// use dlfield::{DType, Spec, Tensor, traverse};
/// let inp = Array3::<f64>::ones((6, 5, 4).f());
/// let mut field = Tensor::zeros(&Spec::new(&[6, 5, 4], DType::F64).alignment_size(64))?;
/// traverse::zip((inp.view(), field.array_view_mut::<f64, Ix3>()?), |(inp, out)| *out += 2.0 * inp)?;
/// assert_eq!(field.array_view_mut::<f64, Ix3>()?.sum(), 240.0);
/// assert!(traverse::zip((&inp, inp.t()), |_| ()).is_err(), "other shapes");
/// # Ok::<(), dlfield::Error>(())
/// ```
///
/// An array that is written cannot be read, or written, by another name:
/// ```compile_fail,E0502
/// use dlfield::ndarray::Array2;
/// use dlfield::traverse;
/// let mut field = Array2::<f64>::zeros((3, 4));
/// traverse::zip((&field, &mut field), |(inp, out)| *out = *inp)?;
/// # Ok::<(), dlfield::Error>(())
/// ```
/// ```compile_fail,E0499
/// use dlfield::ndarray::Array2;
/// use dlfield::traverse;
/// let mut field = Array2::<f64>::zeros((3, 3));
/// traverse::zip((field.view_mut(), field.view_mut().reversed_axes()), |(one, other)| *one = *other)?;
/// # Ok::<(), dlfield::Error>(())
/// ```
#[inline]
pub fn zip<A: Operands<N>, const N: usize>(arrays: A, mut f: impl FnMut(A::Items)) -> Result<()> {
    Traversal::all(arrays.into_views())?.fold_items((), |(), items| f(items));
    Ok(())
}

/// Calls `f` with a tuple of one-dimensional views, the runs at the same indices of several arrays, up to eight. All runs have
/// the same length, and those of an array the same stride: one may be a slice where another has gaps, and one that is repeated
/// along the run has the stride 0.
///
/// # Errors
/// As for [`zip`].
///
/// # Example
/// ```
/// use dlfield::ndarray::{Array1, Array2};
/// use dlfield::traverse;
/// let mut field = Array2::<f64>::ones((3, 4));
/// let factors = Array1::from(vec![2.0, 3.0, 4.0]);
/// let column = factors.view().into_shape_with_order((3, 1)).expect("one column");
/// traverse::zip_runs((&mut field, column.broadcast((3, 4)).expect("one factor for each row")), |(mut row, factor)| {
///     row *= factor[0];
/// })?;
/// assert_eq!(field.sum(), 4.0 * 9.0);
/// # Ok::<(), dlfield::Error>(())
/// ```
#[inline]
pub fn zip_runs<A: Operands<N>, const N: usize>(arrays: A, mut f: impl FnMut(A::Runs)) -> Result<()> {
    Traversal::all(arrays.into_views())?.fold_runs((), |(), runs| f(runs));
    Ok(())
}
