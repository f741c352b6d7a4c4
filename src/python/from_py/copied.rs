//! Arrays that are copied if they do not match the type.

#![allow(unsafe_code, reason = "memory that is borrowed is copied")]

use std::marker::PhantomData;
use std::ops::Deref;

use ndarray::{Dimension, IxDyn};
use pyo3::prelude::*;

use crate::copy::can_cast;
use crate::descriptor::Descriptor;
use crate::dtype::{DType, no_cast};
use crate::error::Result;
use crate::layout::{Layout, Spec};
use crate::python::from_py::In;
use crate::python::from_py::axes::Axes;
use crate::python::from_py::borrows::Loan;
use crate::python::from_py::kinds::sealed::{Elements, Place};
use crate::python::from_py::kinds::{AnyOrder, Host, Order};
use crate::python::from_py::ledger::{BorrowSource, CheckValues};
use crate::python::from_py::open::{check, open, refusal};
use crate::tensor::{Element, Owner, Tensor, ndarray as views};

/// An array to read: an [`In`], or a copy if its elements have another type or order.
///
/// Elements are cast by the rule of [`can_cast`](crate::can_cast), NumPy's `same_kind`. The number of dimensions must be
/// the requested one, and the host must reach the memory. An array that is copied is borrowed only during the copy, so it can
/// also be an [`Out`](crate::python::from_py::Out) of the same call if that comes later, but not if it comes first.
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix1;
/// use dlfield::python::{COrder, OrCopy};
/// use pyo3::prelude::*;
///
/// /// Takes any numbers but complex ones.
/// #[pyfunction]
/// fn norm(numbers: OrCopy<'_, f64, Ix1, COrder>) -> f64 {
///     numbers.array().iter().map(|number| number * number).sum::<f64>().sqrt()
/// }
/// ```
#[derive(Debug)]
pub struct OrCopy<'py, T, D, O = AnyOrder> {
    array: In<'py, T, D, O>,
    copied: bool,
}

impl<T, D, O> OrCopy<'_, T, D, O> {
    /// Returns whether the elements are those of a copy.
    ///
    /// # Example
    /// ```
    /// use dlfield::ndarray::Ix1;
    /// use dlfield::python::OrCopy;
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn was_cast(numbers: OrCopy<'_, f64, Ix1>) -> bool {
    ///     numbers.is_copy()
    /// }
    /// ```
    pub fn is_copy(&self) -> bool {
        self.copied
    }
}

impl<'py, T, D, O> Deref for OrCopy<'py, T, D, O> {
    type Target = In<'py, T, D, O>;

    fn deref(&self) -> &In<'py, T, D, O> {
        &self.array
    }
}

impl<'py, T: Element, D: Axes, O: Order> FromPyObject<'_, 'py> for OrCopy<'py, T, D, O> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // The array is borrowed for reading during the copy too.
        let checked = T::values().and(Some(check_bools as CheckValues));
        let mut loan = open::<D>(&object, false, true, checked, |field| {
            views::check_shape(field, None, D::Dim::NDIM)?;
            Host::check(field)?;
            if can_cast(field.dtype(), T::DTYPE) {
                return Ok(());
            }
            Err(no_cast(field.dtype(), T::DTYPE).into())
        })?;
        let found = loan.descriptor::<D>();
        let copied = check::<T, D, Host>(found).and_then(|()| O::check(found)).is_err();
        if copied {
            let (mut descriptor, owner) = copy::<T, O>(found).map_err(refusal)?.into_parts();
            descriptor.relabel(found.metadata().cloned().unwrap_or_default())?;
            let dims = loan.entry().dims.clone();
            let mut of_copy = Loan::new(&object);
            *of_copy.descriptor_mut() = descriptor;
            // Dropping the loan of the original may run any code. No other argument has the memory of the copy.
            loan = of_copy;
            loan.borrow(false, T::values(), Some(owner), BorrowSource::None, true).map_err(refusal)?;
            if D::LABELS.is_some() {
                loan.order(loan.descriptor::<IxDyn>().clone(), dims);
            }
            check::<T, D, Host>(loan.descriptor::<D>()).map_err(refusal)?;
        }
        Ok(OrCopy { array: In { loan, wanted: PhantomData }, copied })
    }
}

/// Checks the elements if they are bools; others are checked after the cast.
///
/// # Safety
/// - Elements that the host can reach are readable.
unsafe fn check_bools(field: &Descriptor) -> Result<()> {
    // SAFETY: passed on from the caller.
    if field.dtype() == DType::BOOL { unsafe { views::check_memory::<bool>(field) } } else { Ok(()) }
}

/// Copies a field to the requested element type and order, without labels.
fn copy<T: Element, O: Order>(found: &Descriptor) -> Result<Tensor> {
    let ndim = i64::try_from(found.ndim()).unwrap_or(i64::MAX);
    let layout: Vec<i64> = if O::IS_F { (0..ndim).rev().collect() } else { (0..ndim).collect() };
    let spec = Spec::new(found.shape(), T::DTYPE).layout(Layout::new(&layout, found.ndim())?);
    // SAFETY: the loan keeps the memory longer than this tensor lives, and the ledger rejects writers meanwhile.
    let source = unsafe { Tensor::from_parts(found.clone(), Owner::NONE) };
    Tensor::copy_of(&spec, &source)
}
