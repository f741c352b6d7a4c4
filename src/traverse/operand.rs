//! What the functions of this module take: arrays, and tuples of them.

use ndarray::IntoNdProducer;

use super::view::{View, Views};

/// An array to visit: an `ArrayView` or `ArrayViewMut`, or a reference to an array of any storage, to a slice or to a vector.
/// What is behind a `&mut` or an `ArrayViewMut` counts as written.
///
/// # Example
/// ```
/// use dlfield::traverse::{self, Operand};
///
/// fn largest<'a, A: Operand<Item = &'a f64>>(array: A) -> f64 {
///     traverse::fold(array, f64::NEG_INFINITY, |largest, x| largest.max(*x))
/// }
///
/// let numbers = vec![1.0, 3.0, 2.0];
/// assert_eq!((largest(&numbers), largest(&numbers[..1])), (3.0, 1.0));
/// ```
pub trait Operand {
    /// A reference to an element: `&T`, or `&mut T` if the array is written.
    type Item;
    /// A view of one dimension: `ArrayView1<T>`, or `ArrayViewMut1<T>` if the array is written.
    type Run;
    #[doc(hidden)]
    type View: View<Item = Self::Item, Run = Self::Run>;

    #[doc(hidden)]
    fn into_view(self) -> Self::View;
}

impl<A> Operand for A
where
    A: IntoNdProducer,
    A::Output: View,
{
    type Item = <A::Output as View>::Item;
    type Run = <A::Output as View>::Run;
    type View = A::Output;

    #[inline]
    fn into_view(self) -> Self::View {
        self.into_producer()
    }
}

/// A tuple of one to eight [`Operand`]s; `N` is their number.
///
/// # Example
/// ```
/// use dlfield::ndarray::array;
/// use dlfield::traverse::{self, Operands};
///
/// fn dot<'a, A: Operands<2, Items = (&'a f64, &'a f64)>>(arrays: A) -> dlfield::Result<f64> {
///     let mut sum = 0.0;
///     traverse::zip(arrays, |(a, b)| sum += a * b)?;
///     Ok(sum)
/// }
///
/// assert_eq!(dot((&array![1.0, 2.0], &array![3.0, 4.0]))?, 11.0);
/// # Ok::<(), dlfield::Error>(())
/// ```
pub trait Operands<const N: usize> {
    /// A tuple of [`Operand::Item`].
    type Items;
    /// A tuple of [`Operand::Run`].
    type Runs;
    #[doc(hidden)]
    type Views: Views<N, Items = Self::Items, Runs = Self::Runs>;

    #[doc(hidden)]
    fn into_views(self) -> Self::Views;
}

macro_rules! operands {
    ($count:literal: $($array:ident $position:tt),+) => {
        impl<$($array: Operand),+> Operands<$count> for ($($array,)+) {
            type Items = ($($array::Item,)+);
            type Runs = ($($array::Run,)+);
            type Views = ($($array::View,)+);

            #[inline]
            fn into_views(self) -> Self::Views {
                ($(self.$position.into_view(),)+)
            }
        }
    };
}

operands!(1: A 0);
operands!(2: A 0, B 1);
operands!(3: A 0, B 1, C 2);
operands!(4: A 0, B 1, C 2, D 3);
operands!(5: A 0, B 1, C 2, D 3, E 4);
operands!(6: A 0, B 1, C 2, D 3, E 4, F 5);
operands!(7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
operands!(8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
