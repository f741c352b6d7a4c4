//! Selection of Rust code by an element type that is known at run time only.

use crate::dtype::{self, DType};
use crate::error::Error;

impl Error {
    /// The error for a field whose element type [`dispatch!`](crate::dispatch!) does not allow.
    #[cold]
    #[doc(hidden)]
    pub fn of_dispatch(field: &str, found: DType, allowed: &[DType]) -> Error {
        let wanted: Vec<&str> = allowed.iter().map(|dtype| dtype.name()).collect();
        Error::from(dtype::mismatch(found, &wanted.join(" or "))).in_argument(field)
    }
}

/// Evaluates an expression with the Rust type of a field's elements, which is known at run time only.
///
/// `dispatch!(field, T in floats => expression)` compiles the expression once for each type of the set, in which `T` stands for
/// it, and evaluates the one for the element type of `field`: a [`Tensor`](crate::Tensor), an argument such as
/// `AnyIn` of the feature `python`, or anything else with a method `descriptor`. The sets:
///
/// | set | types |
/// |---|---|
/// | `floats` | `f32`, `f64` |
/// | `ints` | `i8` to `i64`, `u8` to `u64` |
/// | `all` | every [`Element`](crate::Element): also `bool`, `f16`, `bf16`, and complex numbers |
/// | `[f32, f64, i32]` | the types listed |
///
/// Returns a [`Result`](crate::Result). For other element types it is an error with the name of the field, its element type and
/// those that are allowed. A `?` in the expression returns from the function around it.
///
/// # Example
/// ```
/// use dlfield::ndarray::{ArrayView, IxDyn};
/// use dlfield::{Element, Tensor, dispatch};
///
/// fn largest<T: Element + PartialOrd + Into<f64>>(view: ArrayView<'_, T, IxDyn>) -> Option<f64> {
///     view.iter().map(|x| (*x).into()).reduce(f64::max)
/// }
///
/// fn largest_of(numbers: &Tensor) -> dlfield::Result<Option<f64>> {
///     dispatch!(numbers, T in [f32, f64, i32] => largest(numbers.read::<T, IxDyn>()?.view()))
/// }
///
/// assert_eq!(largest_of(&Tensor::from(vec![3, 7, 5])).unwrap(), Some(7.0));
/// let error = largest_of(&Tensor::from(vec![true])).unwrap_err().to_string();
/// assert_eq!(error, "argument \"numbers\": dtype: expected float32 or float64 or int32, got bool");
/// ```
///
/// The expression has to compile for each type of the set:
/// ```compile_fail,E0277
/// use dlfield::ndarray::Ix1;
/// use dlfield::{Tensor, dispatch};
/// let numbers = Tensor::from(vec![1.0, 2.0]);
/// // error: the trait bound `f64: From<i64>` is not satisfied
/// dispatch!(numbers, T in ints => numbers.read::<T, Ix1>().unwrap().iter().map(|x| f64::from(*x)).sum::<f64>());
/// ```
#[macro_export]
macro_rules! dispatch {
    ($field:expr, $element:ident in floats => $body:expr $(,)?) => {
        $crate::dispatch!($field, $element in [f32, f64] => $body)
    };
    ($field:expr, $element:ident in ints => $body:expr $(,)?) => {
        $crate::dispatch!($field, $element in [i8, i16, i32, i64, u8, u16, u32, u64] => $body)
    };
    ($field:expr, $element:ident in all => $body:expr $(,)?) => {
        $crate::dispatch!($field, $element in [
            bool, i8, i16, i32, i64, u8, u16, u32, u64,
            $crate::half::f16, $crate::half::bf16, f32, f64,
            $crate::num_complex::Complex<f32>, $crate::num_complex::Complex<f64>,
        ] => $body)
    };
    ($field:expr, $element:ident in [$($allowed:ty),+ $(,)?] => $body:expr $(,)?) => {{
        let found = $field.descriptor().dtype();
        $(if found == <$allowed as $crate::Element>::DTYPE {
            #[allow(dead_code, reason = "the expression need not name the type")]
            type $element = $allowed;
            // What one type of the set needs, clippy would take for superfluous with another.
            #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
            let value = $body;
            $crate::Result::Ok(value)
        } else)+ {
            let allowed = [$(<$allowed as $crate::Element>::DTYPE),+];
            $crate::Result::Err($crate::Error::of_dispatch(::std::stringify!($field), found, &allowed))
        }
    }};
}
