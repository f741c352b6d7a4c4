//! The type parameters of array arguments: elements, order, device.

#![allow(unsafe_code, reason = "bools are read in place")]

use crate::descriptor::Descriptor;
use crate::device::{self, Device, not_host_readable};
use crate::dtype::DType;
use crate::error::{LayoutError, LayoutErrorKind, Result, Tuple};
use crate::python::from_py::ledger::CheckValues;
use crate::tensor::{Element, ndarray as views};

/// What arguments ask of their kinds. Only this crate can name these traits, so the kinds are its own types alone.
pub(super) mod sealed {
    use crate::descriptor::Descriptor;
    use crate::error::Result;
    use crate::python::from_py::ledger::CheckValues;

    pub trait Elements {
        /// Rejects memory that cannot be viewed with such elements, without reading it.
        fn check_place(field: &Descriptor) -> Result<()>;

        /// The check of the elements, if not every bit pattern is valid.
        fn values() -> Option<CheckValues>;
    }

    pub trait Order {
        /// Whether a copy is made in Fortran order.
        const IS_F: bool = false;

        /// Rejects a field whose elements are in another order.
        fn check(field: &Descriptor) -> Result<()>;
    }

    pub trait Place {
        /// Whether the host can reach all such memory.
        const IS_HOST: bool = false;

        /// Whether the host may have a view of such memory, so that device work on it must be done.
        const HAS_VIEWS: bool = false;

        /// Rejects memory elsewhere.
        fn check(field: &Descriptor) -> Result<()>;
    }
}

/// The elements that an argument needs: a type that implements [`Element`], or [`Any`].
///
/// # Example
/// ```
/// use dlfield::ndarray::IxDyn;
/// use dlfield::python::{Elements, In};
///
/// /// Bytes of any array with such elements that the host can reach.
/// fn nbytes<T: Elements>(x: &In<'_, T, IxDyn>) -> i64 {
///     x.descriptor().nbytes()
/// }
/// assert_eq!(<f32 as Elements>::DTYPE, Some(dlfield::DType::F32));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type of array arguments",
    label = "not the type of an array's elements",
    note = "the type parameters of an argument are elements, dimension, order, place: `In<'_, f64, Ix2, COrder, Host>`; for \
            elements known at run time only, `In<'_, Any, Ix2>`"
)]
pub trait Elements: sealed::Elements + 'static {
    /// The element type; `None` for any.
    const DTYPE: Option<DType>;
}

/// Elements of any type.
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix2;
/// use dlfield::python::{Any, Elements, In};
///
/// fn element(matrix: In<'_, Any, Ix2>) -> &'static str {
///     matrix.descriptor().dtype().name()
/// }
/// assert_eq!(Any::DTYPE, None);
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Any {}

impl Elements for Any {
    const DTYPE: Option<DType> = None;
}

impl sealed::Elements for Any {
    fn check_place(_: &Descriptor) -> Result<()> {
        Ok(())
    }

    fn values() -> Option<CheckValues> {
        None
    }
}

/// Elements of an argument that can be viewed as `T`: the same type, or [`Any`] if the array turns out to have it.
///
/// # Example
/// ```
/// use dlfield::ndarray::IxDyn;
/// use dlfield::python::{Elements, In, ViewAs};
///
/// fn sum<T: Elements + ViewAs<f64>>(x: &In<'_, T, IxDyn>) -> dlfield::Result<f64> {
///     Ok(x.view::<f64, IxDyn>()?.sum())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "an argument with elements `{Self}` has no view of `{T}`",
    label = "the elements are `{Self}`",
    note = "the views of `In<'_, Any, D>` and `Out<'_, Any, D>` have any element type, which is checked at run time"
)]
pub trait ViewAs<T: Element>: Elements {}

impl<T: Element> ViewAs<T> for T {}
impl<T: Element> ViewAs<T> for Any {}

impl<T: Element> Elements for T {
    const DTYPE: Option<DType> = Some(T::DTYPE);
}

impl<T: Element> sealed::Elements for T {
    #[inline]
    fn check_place(field: &Descriptor) -> Result<()> {
        if T::DTYPE == DType::BOOL {
            // A byte is aligned at any address.
            return Ok(());
        }
        // SAFETY: the check reads elements of type bool only.
        unsafe { views::check_memory::<T>(field) }
    }

    #[inline]
    fn values() -> Option<CheckValues> {
        if T::DTYPE == DType::BOOL { Some(views::check_memory::<T>) } else { None }
    }
}

/// The order of elements in memory that an argument needs: [`AnyOrder`], [`COrder`] or [`FOrder`].
///
/// # Example
/// ```
/// use dlfield::ndarray::{ArrayView2, Ix2};
/// use dlfield::python::{In, Order};
///
/// fn view<'a, O: Order>(matrix: &'a In<'_, f64, Ix2, O>) -> ArrayView2<'a, f64> {
///     matrix.array()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an order of elements in memory",
    label = "not an order",
    note = "orders are `AnyOrder`, `COrder` and `FOrder`; the type parameters of an argument are elements, dimension, order, \
            place: `In<'_, f64, Ix2, AnyOrder, Cuda>`"
)]
pub trait Order: sealed::Order + 'static {}

/// Any strides, also negative ones and gaps.
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix1;
/// use dlfield::python::{AnyOrder, Cuda, In};
///
/// fn address(numbers: In<'_, f32, Ix1, AnyOrder, Cuda>) -> usize {
///     numbers.descriptor().ptr().addr()
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum AnyOrder {}

/// Contiguous elements, last index fastest.
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix2;
/// use dlfield::python::{COrder, In};
///
/// fn first(matrix: In<'_, f64, Ix2, COrder>) -> Option<f64> {
///     matrix.array().as_slice()?.first().copied()
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum COrder {}

/// Contiguous elements, first index fastest.
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix2;
/// use dlfield::python::{FOrder, In};
///
/// fn first(matrix: In<'_, f64, Ix2, FOrder>) -> Option<f64> {
///     matrix.array().reversed_axes().as_slice()?.first().copied()
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum FOrder {}

impl Order for AnyOrder {}
impl sealed::Order for AnyOrder {
    #[inline]
    fn check(_: &Descriptor) -> Result<()> {
        Ok(())
    }
}

impl Order for COrder {}
impl sealed::Order for COrder {
    #[inline]
    fn check(field: &Descriptor) -> Result<()> {
        if field.is_c_contiguous() { Ok(()) } else { Err(unordered(field, "C order")) }
    }
}

impl Order for FOrder {}
impl sealed::Order for FOrder {
    #[inline]
    fn check(field: &Descriptor) -> Result<()> {
        if field.is_f_contiguous() { Ok(()) } else { Err(unordered(field, "F order")) }
    }

    const IS_F: bool = true;
}

#[cold]
fn unordered(field: &Descriptor, order: &str) -> crate::Error {
    let got = format_args!("strides of {} elements for shape {}", Tuple(field.strides()), Tuple(field.shape()));
    LayoutError::new("strides", &format_args!("contiguous elements in {order}"), &got)
        .with_fix(&"pass a copy")
        .with_kind(LayoutErrorKind::NeedsCopy)
        .into()
}

/// The place of the memory that an argument needs: [`Host`], [`Cuda`] or [`Anywhere`].
///
/// # Example
/// ```
/// use dlfield::ndarray::IxDyn;
/// use dlfield::python::{AnyOrder, In, Place};
///
/// fn device<M: Place>(x: &In<'_, f64, IxDyn, AnyOrder, M>) -> String {
///     x.descriptor().device().to_string()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a place of memory",
    label = "not a place",
    note = "places are `Host`, `Cuda` and `Anywhere`; the type parameters of an argument are elements, dimension, order, place: \
            `In<'_, f64, Ix2, AnyOrder, Cuda>`"
)]
pub trait Place: sealed::Place + 'static {}

/// A place of which the host may have views: [`Host`], and [`Anywhere`] if the array turns out to be in memory that the host
/// can reach.
///
/// # Example
/// ```
/// use dlfield::ndarray::IxDyn;
/// use dlfield::python::{AnyOrder, In, ViewedByHost};
///
/// fn sum<M: ViewedByHost>(x: &In<'_, f64, IxDyn, AnyOrder, M>) -> dlfield::Result<f64> {
///     Ok(x.view::<f64, IxDyn>()?.sum())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the host has no view of an argument in the place `{Self}`",
    label = "the place is `{Self}`",
    note = "arguments in the places `Host` and `Anywhere` have views; they wait for work of devices on their memory"
)]
pub trait ViewedByHost: Place {}

impl ViewedByHost for Host {}
impl ViewedByHost for Anywhere {}

/// Memory that the host can reach: its own, and CUDA's or ROCm's pinned and managed memory.
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix1;
/// use dlfield::python::{AnyOrder, Host, Out};
///
/// fn clear(mut numbers: Out<'_, f64, Ix1, AnyOrder, Host>) {
///     numbers.array_mut().fill(0.0);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Host {}

/// Memory of any CUDA device, and pinned and managed memory.
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix1;
/// use dlfield::python::{COrder, Cuda, Out};
///
/// /// What a kernel wants: an address and a length.
/// fn target(out: Out<'_, f32, Ix1, COrder, Cuda>) -> (usize, i64) {
///     (out.descriptor().ptr().addr(), out.descriptor().size())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Cuda {}

/// Memory in any place.
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix3;
/// use dlfield::python::{AnyOrder, Anywhere, In};
///
/// fn device(field: In<'_, f64, Ix3, AnyOrder, Anywhere>) -> String {
///     field.descriptor().device().to_string()
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Anywhere {}

impl Place for Host {}
impl sealed::Place for Host {
    #[inline]
    fn check(field: &Descriptor) -> Result<()> {
        if Device::CPU.can_access(field.device()) {
            return Ok(());
        }
        Err(not_host_readable(field.device()).into())
    }

    const IS_HOST: bool = true;
    const HAS_VIEWS: bool = true;
}

impl Place for Cuda {}
impl sealed::Place for Cuda {
    fn check(field: &Descriptor) -> Result<()> {
        if field.device().is_cuda() || Device::cuda(0).can_access(field.device()) {
            return Ok(());
        }
        Err(device::mismatch(field.device(), Device::cuda(0)).into())
    }
}

impl Place for Anywhere {}
impl sealed::Place for Anywhere {
    #[inline]
    fn check(_: &Descriptor) -> Result<()> {
        Ok(())
    }

    const HAS_VIEWS: bool = true;
}
