//! Access to the elements of array views by offset.

#![allow(unsafe_code, reason = "elements are visited by address")]

use std::marker::PhantomData;

use ndarray::{ArrayView, ArrayView1, ArrayViewMut, ArrayViewMut1, Axis, Dimension, Ix1, ShapeBuilder, StrideShape};

use super::loops::{Loop, Loops};
use crate::error::{LayoutError, LayoutErrorKind, Tuple};

/// A view of an array.
///
/// # Safety
/// - `shape`, `strides` and `start` are those of an array whose elements live, and are the view's alone if it is written, as
///   long as the references of `Item` and `Run`.
pub unsafe trait View {
    type Element;
    type Item;
    type Run;
    const IS_WRITTEN: bool;

    fn shape(&self) -> &[usize];
    fn strides(&self) -> &[isize];
    /// Returns the address of the element at index 0.
    fn start(&mut self) -> *mut Self::Element;

    /// # Safety
    /// - The address is that of an element of the view. A written view has no other reference to the element.
    unsafe fn item(address: *mut Self::Element) -> Self::Item;

    /// # Safety
    /// - As for `item`, for `len` elements, at least one, from `first` on with this stride.
    unsafe fn run(first: *mut Self::Element, len: usize, stride: isize) -> Self::Run;
}

// SAFETY: the elements of an `ArrayView<'a, T, D>` may be read during `'a`.
unsafe impl<'a, T, D: Dimension> View for ArrayView<'a, T, D> {
    type Element = T;
    type Item = &'a T;
    type Run = ArrayView1<'a, T>;
    const IS_WRITTEN: bool = false;

    #[inline]
    fn shape(&self) -> &[usize] {
        (**self).shape()
    }

    #[inline]
    fn strides(&self) -> &[isize] {
        (**self).strides()
    }

    #[inline]
    fn start(&mut self) -> *mut T {
        self.as_ptr().cast_mut()
    }

    #[inline]
    unsafe fn item(address: *mut T) -> &'a T {
        // SAFETY: an element of the view, by the caller's contract.
        unsafe { &*address }
    }

    #[inline]
    unsafe fn run(first: *mut T, len: usize, stride: isize) -> ArrayView1<'a, T> {
        // SAFETY: elements of the view, by the caller's contract.
        let mut run = unsafe {
            let (shape, lowest) = from_lowest(first, len, stride);
            ArrayView1::from_shape_ptr(shape, lowest)
        };
        if stride < 0 {
            run.invert_axis(Axis(0));
        }
        run
    }
}

// SAFETY: the elements of an `ArrayViewMut<'a, T, D>` may be read and written through it alone during `'a`, and `ndarray` makes
// no such view in which two indices have the same element.
unsafe impl<'a, T, D: Dimension> View for ArrayViewMut<'a, T, D> {
    type Element = T;
    type Item = &'a mut T;
    type Run = ArrayViewMut1<'a, T>;
    const IS_WRITTEN: bool = true;

    #[inline]
    fn shape(&self) -> &[usize] {
        (**self).shape()
    }

    #[inline]
    fn strides(&self) -> &[isize] {
        (**self).strides()
    }

    #[inline]
    fn start(&mut self) -> *mut T {
        self.as_mut_ptr()
    }

    #[inline]
    unsafe fn item(address: *mut T) -> &'a mut T {
        // SAFETY: an element of the view without another reference, by the caller's contract.
        unsafe { &mut *address }
    }

    #[inline]
    unsafe fn run(first: *mut T, len: usize, stride: isize) -> ArrayViewMut1<'a, T> {
        // SAFETY: elements of the view without other references, by the caller's contract.
        let mut run = unsafe {
            let (shape, lowest) = from_lowest(first, len, stride);
            ArrayViewMut1::from_shape_ptr(shape, lowest)
        };
        if stride < 0 {
            run.invert_axis(Axis(0));
        }
        run
    }
}

/// Returns shape, stride and address of a run as `ndarray` takes them: from the lowest address, with a stride that is not
/// negative.
///
/// # Safety
/// - `first` is the address of the first of `len` elements of an array, at least one, with this stride.
#[inline]
unsafe fn from_lowest<T>(first: *mut T, len: usize, stride: isize) -> (StrideShape<Ix1>, *mut T) {
    let shape = len.strides(stride.unsigned_abs());
    // SAFETY: the address of the last element, by the caller's contract.
    let lowest = if stride < 0 { unsafe { first.offset(stride * (len.cast_signed() - 1)) } } else { first };
    (shape, lowest)
}

/// A tuple of views.
///
/// # Safety
/// - As for [`View`], for all of them.
pub unsafe trait Views<const N: usize> {
    /// An address for each view.
    type Addresses: Copy;
    type Items;
    type Runs;

    fn shapes(&self) -> [&[usize]; N];
    /// Returns the strides of each view, and whether it is written.
    fn strides(&self) -> [(&[isize], bool); N];
    /// Returns the addresses of the elements at index 0.
    fn starts(&mut self) -> Self::Addresses;

    /// Returns the addresses of the elements at these distances.
    ///
    /// # Safety
    /// - The addresses, and those returned, are of elements of the views.
    unsafe fn offset(addresses: Self::Addresses, offsets: [isize; N]) -> Self::Addresses;

    /// # Safety
    /// - As for [`View::item`], for each view.
    unsafe fn items(addresses: Self::Addresses) -> Self::Items;

    /// # Safety
    /// - As for [`View::run`], for each view.
    unsafe fn runs(first: Self::Addresses, len: usize, strides: [isize; N]) -> Self::Runs;
}

macro_rules! views {
    ($count:literal: $($view:ident $position:tt),+) => {
        // SAFETY: passed on from each view.
        unsafe impl<$($view: View),+> Views<$count> for ($($view,)+) {
            type Addresses = ($(*mut $view::Element,)+);
            type Items = ($($view::Item,)+);
            type Runs = ($($view::Run,)+);

            #[inline]
            fn shapes(&self) -> [&[usize]; $count] {
                [$(self.$position.shape()),+]
            }

            #[inline]
            fn strides(&self) -> [(&[isize], bool); $count] {
                [$((self.$position.strides(), $view::IS_WRITTEN)),+]
            }

            #[inline]
            fn starts(&mut self) -> Self::Addresses {
                ($(self.$position.start(),)+)
            }

            #[inline]
            unsafe fn offset(addresses: Self::Addresses, offsets: [isize; $count]) -> Self::Addresses {
                // SAFETY: passed on from the caller.
                unsafe { ($(addresses.$position.offset(offsets[$position]),)+) }
            }

            #[inline]
            unsafe fn items(addresses: Self::Addresses) -> Self::Items {
                // SAFETY: passed on from the caller.
                unsafe { ($($view::item(addresses.$position),)+) }
            }

            #[inline]
            unsafe fn runs(first: Self::Addresses, len: usize, strides: [isize; $count]) -> Self::Runs {
                // SAFETY: passed on from the caller.
                unsafe { ($($view::run(first.$position, len, strides[$position]),)+) }
            }
        }
    };
}

views!(1: A 0);
views!(2: A 0, B 1);
views!(3: A 0, B 1, C 2);
views!(4: A 0, B 1, C 2, D 3);
views!(5: A 0, B 1, C 2, D 3, E 4);
views!(6: A 0, B 1, C 2, D 3, E 4, F 5);
views!(7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
views!(8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// The loops over views of one shape. They are made from the views' shape and strides, and consumed by a single traversal: so
/// each offset is that of an element of each view, and comes once.
pub(super) struct Traversal<const N: usize, V: Views<N>> {
    loops: Loops<N>,
    starts: V::Addresses,
    views: PhantomData<V>,
}

impl<V: View> Traversal<1, (V,)> {
    #[inline]
    pub(super) fn one(view: V) -> Traversal<1, (V,)> {
        Traversal::new((view,))
    }
}

impl<const N: usize, V: Views<N>> Traversal<N, V> {
    /// # Errors
    /// [`LayoutError`] unless the views have the same shape.
    #[inline]
    pub(super) fn all(views: V) -> Result<Traversal<N, V>, LayoutError> {
        let [wanted, others @ ..] = &views.shapes()[..] else { return Ok(Traversal::new(views)) };
        for (position, got) in (1..).zip(others) {
            if got != wanted {
                let got = format_args!("{} for the array at position {position}", Tuple(got));
                return Err(LayoutError::new(
                    "shape",
                    &format_args!("{}, that of the first array", Tuple(wanted)),
                    &got,
                )
                .with_fix(&"slice or broadcast the arrays first")
                .with_kind(LayoutErrorKind::Mismatch));
            }
        }
        Ok(Traversal::new(views))
    }

    /// Makes the loops; callers have seen that the views have the same shape.
    #[inline]
    fn new(mut views: V) -> Traversal<N, V> {
        let loops = Loops::new(views.shapes()[0], views.strides());
        Traversal { loops, starts: views.starts(), views: PhantomData }
    }

    /// Calls `f` with the result so far and the elements at each index.
    #[inline]
    pub(super) fn fold_items<B>(self, init: B, mut f: impl FnMut(B, V::Items) -> B) -> B {
        let Loop { len, strides } = self.loops.innermost();
        let (starts, len, is_contiguous) = (self.starts, len.cast_signed(), strides == [1; N]);
        self.loops.fold(init, |mut result, offsets| {
            // SAFETY: the loops visit elements of the views.
            let first = unsafe { V::offset(starts, offsets) };
            // Two loops: the compiler can vectorize the first one.
            if is_contiguous {
                for position in 0..len {
                    // SAFETY: the loops visit each element of the views, once.
                    result = f(result, unsafe { V::items(V::offset(first, [position; N])) });
                }
            } else {
                for position in 0..len {
                    let offsets = strides.map(|stride| stride.wrapping_mul(position));
                    // SAFETY: the loops visit each element of the views, once.
                    result = f(result, unsafe { V::items(V::offset(first, offsets)) });
                }
            }
            result
        })
    }

    /// Calls `f` with the result so far and the runs of the innermost loop.
    #[inline]
    pub(super) fn fold_runs<B>(self, init: B, mut f: impl FnMut(B, V::Runs) -> B) -> B {
        let Loop { len, strides } = self.loops.innermost();
        let starts = self.starts;
        self.loops.fold(init, |result, offsets| {
            // SAFETY: the loops visit each element of the views, once, and a run has at least one.
            let runs = unsafe { V::runs(V::offset(starts, offsets), len, strides) };
            f(result, runs)
        })
    }
}
