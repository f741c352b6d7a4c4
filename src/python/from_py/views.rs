//! Views of arguments whose type leaves elements or dimensions open, slices of contiguous ones, and specs of new fields.

#![allow(unsafe_code, reason = "views are made of memory that the ledger guards")]

use ndarray::{ArrayView, ArrayViewMut, Dimension};

use crate::error::Result;
use crate::layout::Spec;
use crate::python::from_py::axes::Axes;
use crate::python::from_py::kinds::{COrder, Elements, Host, ViewAs, ViewedByHost};
use crate::python::from_py::{In, Out};
use crate::tensor::{Element, Tensor, ndarray as views};

macro_rules! viewed {
    ($argument:ident) => {
        impl<T: Elements, D: Axes, O, M: ViewedByHost> $argument<'_, T, D, O, M> {
            /// Returns a view of the elements, if they have this type and number of dimensions: for arguments whose own type
            /// leaves them open, by [`Any`](crate::python::Any) and `IxDyn`. [`dispatch!`](crate::dispatch!) selects the
            /// element type.
            ///
            /// # Errors
            /// [`Error`](crate::Error) with the found and the expected value, also for memory that the host cannot reach.
            /// [`Error::in_argument`](crate::Error::in_argument) adds the argument's name, which only the function knows.
            /// Before the first view also for memory that [code has
            /// moved](crate::python#what-is-checked-and-what-cannot-be).
            ///
            /// # Example
            /// ```
            /// use dlfield::ndarray::IxDyn;
            /// use dlfield::python::AnyIn;
            /// use pyo3::prelude::*;
            ///
            /// #[pyfunction]
            /// fn count_true(flags: AnyIn<'_>) -> PyResult<usize> {
            ///     let view = flags.view::<bool, IxDyn>().map_err(|error| error.in_argument("flags"))?;
            ///     Ok(view.iter().filter(|flag| **flag).count())
            /// }
            /// ```
            pub fn view<E: Element, F: Dimension>(&self) -> Result<ArrayView<'_, E, F>>
            where
                T: ViewAs<E>,
            {
                // SAFETY: the loan keeps the object, which keeps the memory, and the ledger rejects other writers. An `Out` is
                // written through `&mut` only.
                unsafe { Ok(views::view(self.loan.descriptor_for_view::<D>(|field| views::check::<E, F>(field))?)) }
            }
        }

        impl<T, D: Axes, O, M> $argument<'_, T, D, O, M> {
            /// Returns the spec of a new field like this one: same element type, shape, labels, order of strides and device. Its dims
            /// are in the order of this type's labels; [`reordered`](Self::reordered) returns a result in that of the argument.
            ///
            /// # Errors
            /// As for `labelled`.
            ///
            /// # Example
            /// ```
            /// use dlfield::Tensor;
            /// use dlfield::ndarray::Ix3;
            /// use dlfield::python::In;
            /// use pyo3::prelude::*;
            ///
            /// #[pyfunction]
            /// fn doubled(field: In<'_, f64, Ix3>) -> PyResult<Tensor> {
            ///     let mut new = Tensor::zeros(&field.spec()?)?;
            ///     new.array_view_mut::<f64, Ix3>()?.zip_mut_with(&field.array(), |new, old| *new = 2.0 * old);
            ///     Ok(new)
            /// }
            /// ```
            pub fn spec(&self) -> pyo3::PyResult<Spec> {
                Ok(self.labelled()?.spec())
            }

            /// Returns a field with its dims in the order in which the argument has them, which may be another one than that of
            /// this type's labels.
            ///
            /// # Errors
            /// [`DimsError`](crate::DimsError) if the field does not have one of these dims.
            ///
            /// # Example
            /// ```
            /// use dlfield::Tensor;
            /// use dlfield::ndarray::Ix2;
            /// use dlfield::python::{IJ, In};
            /// use pyo3::prelude::*;
            ///
            /// /// For an argument with the dims J, I returns a field with the dims J, I.
            /// #[pyfunction]
            /// fn doubled(field: In<'_, f64, IJ>) -> PyResult<Tensor> {
            ///     let mut new = Tensor::zeros(&field.spec()?)?;
            ///     new.array_view_mut::<f64, Ix2>()?.zip_mut_with(&field.array(), |new, old| *new = 2.0 * old);
            ///     Ok(field.reordered(&new)?)
            /// }
            /// ```
            pub fn reordered(&self, field: &Tensor) -> Result<Tensor> {
                let Some(dims) = self.loan.entry().dims.as_ref().filter(|_| D::LABELS.is_some()) else {
                    return Ok(field.clone());
                };
                let axes: Result<Vec<usize>> = dims.iter().map(|dim| field.axis(&dim.to_string())).collect();
                field.transpose(&axes?)
            }
        }

        impl<T: Element, D: Axes> $argument<'_, T, D, COrder, Host> {
            /// Returns the elements as a slice, in C order.
            ///
            /// # Panics
            /// As for `array`.
            ///
            /// # Example
            /// ```
            /// use dlfield::ndarray::Ix2;
            /// use dlfield::python::{COrder, In};
            /// use pyo3::prelude::*;
            ///
            /// #[pyfunction]
            /// fn checksum(bytes: In<'_, u8, Ix2, COrder>) -> u32 {
            ///     bytes.as_slice().iter().map(|byte| u32::from(*byte)).sum()
            /// }
            /// ```
            #[inline]
            pub fn as_slice(&self) -> &[T] {
                // SAFETY: as for `array`, and `extract` has checked the order.
                unsafe { views::slice(self.loan.descriptor_or_unwind::<D>()) }
            }
        }
    };
}

viewed!(In);
viewed!(Out);

impl<T: Elements, D: Axes, O, M: ViewedByHost> Out<'_, T, D, O, M> {
    /// As [`Out::view`], also for writing.
    ///
    /// # Errors
    /// As for [`Out::view`].
    ///
    /// # Example
    /// ```
    /// use dlfield::dispatch;
    /// use dlfield::ndarray::IxDyn;
    /// use dlfield::python::{Any, Out};
    /// use pyo3::prelude::*;
    ///
    /// /// Clears an array of any elements.
    /// #[pyfunction]
    /// fn clear(mut out: Out<'_, Any, IxDyn>) -> PyResult<()> {
    ///     Ok(dispatch!(out, T in all => out.view_mut::<T, IxDyn>()?.fill(T::default()))?)
    /// }
    /// ```
    pub fn view_mut<E: Element, F: Dimension>(&mut self) -> Result<ArrayViewMut<'_, E, F>>
    where
        T: ViewAs<E>,
    {
        // SAFETY: the loan keeps the object, which keeps the memory, and the ledger rejects every other reference. `extract` has
        // checked that the memory is writable.
        unsafe { Ok(views::view_mut(self.loan.descriptor_for_view::<D>(|field| views::check::<E, F>(field))?)) }
    }
}

impl<T: Element, D: Axes> Out<'_, T, D, COrder, Host> {
    /// Returns the elements as a slice to write, in C order.
    ///
    /// # Panics
    /// As for `array`.
    ///
    /// # Example
    /// ```
    /// use dlfield::ndarray::Ix1;
    /// use dlfield::python::{COrder, Out};
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn sort(mut numbers: Out<'_, f64, Ix1, COrder>) {
    ///     numbers.as_slice_mut().sort_by(f64::total_cmp);
    /// }
    /// ```
    #[inline]
    pub fn as_slice_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `array_mut`, and `extract` has checked the order.
        unsafe { views::slice_mut(self.loan.descriptor_or_unwind::<D>()) }
    }
}
