//! Array views of the fields of a call.

#![allow(unsafe_code, reason = "views are made of memory that the caller vouches for")]

use ndarray::{ArrayView, ArrayViewMut, Dimension};

use super::{BoundCall, missing};
use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::tensor::{Element, ndarray as views};

impl BoundCall<'_> {
    /// Returns a view of a field, with dimensions in the order of the signature.
    ///
    /// # Errors
    /// [`SignatureError`](crate::SignatureError) for a field that was not given; [`DTypeError`](crate::DTypeError),
    /// [`LayoutError`](crate::LayoutError) or [`DeviceError`](crate::DeviceError) for another element type or number of dimensions,
    /// and for memory that the host cannot reach.
    ///
    /// # Safety
    /// - The field's memory is alive and no code writes to it while the view lives. Of a `Tensor`, that is so while a guard of
    ///   [`Tensor::read`](crate::Tensor::read) lives; of an argument of a Python function, while the `In` or `Out` lives.
    /// - Devices have done their work on the memory; [`Signature::bind_or_copy`](crate::Signature::bind_or_copy) waits.
    ///
    /// # Example
    /// ```
    /// use dlfield::ndarray::{Ix2, IxDyn};
    /// use dlfield::{Access, DType, Dims, FieldSpec, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let field = || FieldSpec::new(DType::F64, Dims::standard(2));
    /// let signature = Signature::new([("inp", field()), ("out", field().access(Access::Write))])?;
    /// let inp = Tensor::full(&Spec::new(&[4, 6], DType::F64).dims(Dims::parse(["J", "I"])?), &1.5f64.to_ne_bytes())?;
    /// let out = Tensor::zeros(&Spec::new(&[6, 4], DType::F64))?;
    /// let bound = signature.bind(&[("inp", inp.descriptor()), ("out", out.descriptor())])?;
    /// // SAFETY: `inp` and `out` do not overlap, as `bind` has checked, and no other code has them.
    /// unsafe {
    ///     let (from, mut to) = (bound.array_view::<f64, Ix2>("inp")?, bound.array_view_mut::<f64, Ix2>("out")?);
    ///     to.zip_mut_with(&from, |to, from| *to = 2.0 * from);
    /// }
    /// assert_eq!(out.read::<f64, Ix2>()?[[5, 3]], 3.0);
    /// // SAFETY: `inp` is only read, and no other code writes to it.
    /// let error = unsafe { bound.array_view::<f32, IxDyn>("inp") }.unwrap_err();
    /// assert_eq!(error.to_string(), "field \"inp\": dtype: expected float32, got float64");
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn array_view<T: Element, D: Dimension>(&self, name: &str) -> Result<ArrayView<'_, T, D>> {
        let field = self.given(name)?;
        // SAFETY: passed on from the caller.
        unsafe {
            views::check::<T, D>(field).map_err(|error| error.in_field(name))?;
            Ok(views::view(field))
        }
    }

    /// As [`BoundCall::array_view`], also for writing: a temporary copy if the field has one.
    ///
    /// # Errors
    /// As for [`BoundCall::array_view`], and for read-only memory.
    ///
    /// # Safety
    /// - As for [`BoundCall::array_view`], and no other code reads the memory. Two fields may overlap if
    ///   [`Signature::with_overlap`](crate::Signature::with_overlap) allows it.
    ///
    /// # Example
    /// ```
    /// use dlfield::ndarray::Ix1;
    /// use dlfield::{Access, DType, Dims, FieldSpec, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(1)).access(Access::ReadWrite);
    /// let signature = Signature::new([("out", spec)])?;
    /// let out = Tensor::zeros(&Spec::new(&[3], DType::F32))?;
    /// let bound = signature.bind_or_copy(&[("out", &out)])?;
    /// // SAFETY: no other code has the temporary copy, nor `out`.
    /// unsafe {
    ///     bound.array_view_mut::<f64, Ix1>("out")?.fill(0.25);
    ///     bound.copy_back()?;
    /// }
    /// assert_eq!(out.to_vec::<f32>()?, [0.25; 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn array_view_mut<T: Element, D: Dimension>(&self, name: &str) -> Result<ArrayViewMut<'_, T, D>> {
        let field = self.given(name)?;
        // SAFETY: passed on from the caller.
        unsafe {
            let checked = field.check_writable("readonly").and_then(|()| views::check::<T, D>(field));
            checked.map_err(|error| error.in_field(name))?;
            Ok(views::view_mut(field))
        }
    }

    fn given(&self, name: &str) -> Result<&Descriptor> {
        Ok(self.get(name).ok_or_else(|| missing(name))?)
    }
}
