//! Argument types for Python arrays: the type says what a Rust function needs of the array.

#![allow(unsafe_code, reason = "views are made of memory that the ledger guards")]

mod axes;
mod borrows;
mod copied;
mod kinds;
mod ledger;
mod open;
mod other_list;
mod rust_numpy;
mod views;

use std::fmt;
use std::marker::PhantomData;

pub use axes::{Axes, I, IJ, IJK, IK, J, JK, K};
pub use copied::OrCopy;
pub use kinds::{Any, AnyOrder, Anywhere, COrder, Cuda, Elements, FOrder, Host, Order, Place, ViewAs, ViewedByHost};
use ndarray::{ArrayView, ArrayViewMut, IxDyn};
use pyo3::prelude::*;

use self::borrows::{Loan, check_undisturbed};
use self::open::{as_refusal, check, open, refusal, values};
use crate::descriptor::Descriptor;
use crate::layout::Metadata;
use crate::python::{import, sync};
use crate::tensor::{Element, Tensor, ndarray as array_views};

/// An array to read: elements `T`, axes `D`, order `O`, memory in `M`.
///
/// `T` is an [`Element`] or [`Any`]. `D` is [`IJK`] or other labels, in whose order the dimensions come; or one of `ndarray`'s
/// `Ix0` to `Ix6`, or `IxDyn` for any number of dimensions, in the order of the argument: see [`Axes`]. `O` is one of [`AnyOrder`]
/// (the default), [`COrder`], [`FOrder`], `M` one of [`Host`] (the default), [`Cuda`], [`Anywhere`].
///
/// It extracts from everything that `dlfield.describe` describes, never copies, and keeps the object alive. An array that
/// does not match the type raises a `TypeError` with the found and the expected value, to which PyO3 adds the argument's
/// name. A rejected DLPack capsule is not consumed.
///
/// While it lives, [`Out`] rejects memory that overlaps it. Python, and code that does not go through this crate, can still
/// write to the memory while other threads run or Python is called: as in rust-numpy, the caller has to prevent that.
/// rust-numpy's `PyReadwriteArray` is refused memory of NumPy arrays that an `In` has ([what is
/// checked](crate::python#what-is-checked-and-what-cannot-be)).
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix2;
/// use dlfield::python::In;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn trace(matrix: In<'_, f64, Ix2>) -> f64 {
///     matrix.array().diag().sum()
/// }
/// ```
pub struct In<'py, T, D, O = AnyOrder, M = Host> {
    loan: Loan<'py>,
    wanted: Wanted<T, D, O, M>,
}

/// An array of any elements, dimensions, order and device: [`In::descriptor`] describes it, and [`In::view`] returns a
/// view if element type and number of dimensions match.
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix1;
/// use dlfield::python::AnyIn;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn total(numbers: AnyIn<'_>) -> PyResult<f64> {
///     if let Ok(numbers) = numbers.view::<f64, Ix1>() {
///         return Ok(numbers.sum());
///     }
///     Ok(numbers.view::<i64, Ix1>()?.iter().map(|number| *number as f64).sum())
/// }
/// ```
pub type AnyIn<'py> = In<'py, Any, IxDyn, AnyOrder, Anywhere>;

/// An array to read and write: as [`In`], and its memory is writable, has no overlapping elements, and overlaps no other
/// live [`In`] or [`Out`], nor a `PyReadonlyArray` or `PyReadwriteArray` of rust-numpy ([what is
/// checked](crate::python#what-is-checked-and-what-cannot-be)).
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix3;
/// use dlfield::python::{In, Out};
/// use pyo3::prelude::*;
///
/// /// Arguments that overlap are refused before this is called.
/// #[pyfunction]
/// fn double(inp: In<'_, f64, Ix3>, mut out: Out<'_, f64, Ix3>) {
///     out.array_mut().zip_mut_with(&inp.array(), |out, inp| *out = 2.0 * inp);
/// }
/// ```
pub struct Out<'py, T, D, O = AnyOrder, M = Host> {
    loan: Loan<'py>,
    wanted: Wanted<T, D, O, M>,
}

/// The type parameters of an argument; no value of them is needed.
type Wanted<T, D, O, M> = PhantomData<fn() -> (T, D, O, M)>;

impl<'py, T: Elements, D: Axes, O: Order, M: Place> FromPyObject<'_, 'py> for In<'py, T, D, O, M> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let loan = open::<D>(&object, false, M::HAS_VIEWS, values::<T, M>(), |field| {
            check::<T, D, M>(field)?;
            O::check(field)
        })?;
        Ok(In { loan, wanted: PhantomData })
    }
}

impl<'py, T: Elements, D: Axes, O: Order, M: Place> FromPyObject<'_, 'py> for Out<'py, T, D, O, M> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let loan = open::<D>(&object, true, M::HAS_VIEWS, values::<T, M>(), |field| {
            check::<T, D, M>(field)?;
            O::check(field)?;
            field.check_writable("readonly")
        })?;
        Ok(Out { loan, wanted: PhantomData })
    }
}

/// Takes any array on any device, with its dims, origin and halo, to keep it beyond the call. Nothing is copied: the tensor
/// shares the memory and keeps it alive, as `dlfield.from_dlpack` does in Python. A `dlfield.Tensor` has its layout, padding and
/// alignment here, too. That costs more than an [`In`](crate::python::In), which only borrows: a `dlfield.Tensor` shares its
/// owner; the producer of another object makes a DLPack struct, or the object is kept. A DLPack capsule is consumed.
///
/// Python can still write to the memory, and so can an [`Out`](crate::python::Out). So the safe functions that access elements,
/// such as [`Tensor::read`] and [`Tensor::array_view_mut`], return an error for the tensor: a function that reads its argument takes an
/// [`In`](crate::python::In), and a class that reads in a later call [keeps the object](crate::python#arrays-that-are-not-arguments).
/// To access a tensor's elements later, convert it to Python, which needs the package `dlfield`, and borrow that: the ledger then checks it
/// as any argument.
impl<'py> FromPyObject<'_, 'py> for Tensor {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Tensor> {
        let py = object.py();
        let owned = import::own(&object, Some(&Metadata::default()))
            .and_then(|owned| owned.ok_or_else(|| import::not_an_array(&object)));
        let tensor = owned.or_else(|error| as_refusal(py, error))?;
        // The import may have run any code, which may have moved the arguments extracted before.
        check_undisturbed(py).map_err(refusal)?;
        // Python has the memory too. In a program with the module linked in, a function may be reading it.
        sync::export(py, tensor.owner()).map_err(refusal)?;
        Ok(tensor)
    }
}

macro_rules! described {
    ($argument:ident) => {
        impl<'py, T, D: Axes, O, M> $argument<'py, T, D, O, M> {
            /// Returns the address, device, element type, shape and strides. Of an argument whose [`Axes`] go by label also dims, origin and
            /// halo, all in the order of the labels.
            ///
            /// # Example
            /// ```
            /// use dlfield::ndarray::Ix2;
            /// use dlfield::python::{In, Out};
            /// use pyo3::prelude::*;
            ///
            /// #[pyfunction]
            /// fn strides(x: In<'_, f64, Ix2>, out: Out<'_, f64, Ix2>) -> (Vec<i64>, Vec<i64>) {
            ///     (x.descriptor().strides().to_vec(), out.descriptor().strides().to_vec())
            /// }
            /// ```
            #[inline]
            pub fn descriptor(&self) -> &Descriptor {
                self.loan.descriptor::<D>()
            }

            /// Returns the descriptor with the dims, origin and halo of the object, in the order of this type's labels; those that
            /// it does not have are absent.
            ///
            /// # Errors
            /// The exceptions of the object, `dlfield.Error` for metadata that contradicts itself or does not fit, and `TypeError`
            /// if the properties of the object have moved the memory of an argument: no view may be made then.
            ///
            /// # Example
            /// ```
            /// use dlfield::python::AnyIn;
            /// use pyo3::prelude::*;
            ///
            /// #[pyfunction]
            /// fn has_dim(field: AnyIn<'_>, label: &str) -> PyResult<bool> {
            ///     let field = field.labelled()?;
            ///     Ok(field.dims().is_some_and(|dims| dims.iter().any(|dim| dim.to_string() == label)))
            /// }
            /// ```
            pub fn labelled(&self) -> PyResult<Descriptor> {
                if D::LABELS.is_some() {
                    return Ok(self.descriptor().clone());
                }
                let found = import::metadata_of(self.object())?;
                // The properties of the object may have run any code, which may have moved the memory.
                check_undisturbed(self.object().py()).map_err(refusal)?;
                let mut descriptor = self.descriptor().clone();
                descriptor.relabel(found.with_default_origin())?;
                Ok(descriptor)
            }

            /// Returns the object that was passed.
            ///
            /// # Example
            /// ```
            /// use dlfield::ndarray::Ix1;
            /// use dlfield::python::Out;
            /// use pyo3::prelude::*;
            ///
            /// /// The array that was passed, so that calls can be chained.
            /// #[pyfunction]
            /// fn doubled<'py>(mut out: Out<'py, f64, Ix1>) -> Bound<'py, PyAny> {
            ///     out.array_mut().mapv_inplace(|number| 2.0 * number);
            ///     out.object().clone()
            /// }
            /// ```
            pub fn object(&self) -> &Bound<'py, PyAny> {
                self.loan.object()
            }
        }

        // SAFETY: never applies, as no type implements the trait.
        unsafe impl<T, D, O, M> Send for $argument<'_, T, D, O, M> where Self: WithoutPython {}

        // SAFETY: never applies, as no type implements the trait.
        unsafe impl<T, D, O, M> Sync for $argument<'_, T, D, O, M> where Self: WithoutPython {}

        impl<T, D, O, M> fmt::Debug for $argument<'_, T, D, O, M> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($argument)).field(self.loan.descriptor::<IxDyn>()).finish()
            }
        }

        impl<T: Element, D: Axes, O> $argument<'_, T, D, O, Host> {
            /// Returns a view of the elements, with any strides. [`traverse`](crate::traverse) loops over such views in the
            /// order of memory.
            ///
            /// # Panics
            /// Before the first view, if [code has moved the memory](crate::python#what-is-checked-and-what-cannot-be) that ran
            /// since the argument was converted.
            ///
            /// # Example
            /// ```
            /// use dlfield::ndarray::Ix2;
            /// use dlfield::python::In;
            /// use pyo3::prelude::*;
            ///
            /// #[pyfunction]
            /// fn largest(matrix: In<'_, i64, Ix2>) -> Option<i64> {
            ///     matrix.array().iter().copied().max()
            /// }
            /// ```
            #[inline]
            pub fn array(&self) -> ArrayView<'_, T, D::Dim> {
                // SAFETY: `extract` has checked the descriptor. The loan keeps the object, which keeps the memory, the
                // ledger rejects other writers, and an `Out` is written through `&mut` only.
                unsafe { array_views::view(self.loan.descriptor_or_unwind::<D>()) }
            }
        }
    };
}

described!(In);
described!(Out);

/// Only names what to do, in the compiler's error about an argument that another thread, or code detached from Python, would use.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is used without Python: inside `py.detach`, by another thread, or kept after the call",
    label = "inside `py.detach`, use a view that was taken before: `let x = x.array();`",
    note = "a view of `array()`, `array_mut()` or `as_slice()` may go to other threads while the argument stays where it is",
    note = "a class keeps the object, `x.object().clone().unbind()`, and extracts an argument of it in each call"
)]
trait WithoutPython {}

impl<T: Element, D: Axes, O> Out<'_, T, D, O, Host> {
    /// Returns a writable view of the elements, with any strides.
    ///
    /// # Panics
    /// As for `array`.
    ///
    /// # Example
    /// ```
    /// use dlfield::ndarray::Ix1;
    /// use dlfield::python::Out;
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn count_up(mut out: Out<'_, u32, Ix1>) {
    ///     out.array_mut().iter_mut().zip(0..).for_each(|(element, number)| *element = number);
    /// }
    /// ```
    #[inline]
    pub fn array_mut(&mut self) -> ArrayViewMut<'_, T, D::Dim> {
        // SAFETY: `extract` has checked the descriptor. The loan keeps the object, which keeps the memory, and the ledger
        // rejects every other reference.
        unsafe { array_views::view_mut(self.loan.descriptor_or_unwind::<D>()) }
    }
}
