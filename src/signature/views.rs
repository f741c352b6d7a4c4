//! Array views of the fields of a call: safe ones of tensors that it borrows, and those that the caller vouches for.

#![allow(unsafe_code, reason = "views are made of memory that the caller vouches for")]

use ndarray::{ArrayView, ArrayViewMut, Dimension};

use std::ops::Deref;

use super::{BoundCall, Signature, field_of, missing};
use crate::descriptor::Descriptor;
use crate::error::{Error, Result, SignatureError};
use crate::memory::Executor;
use crate::tensor::{Element, ReadGuard, Tensor, ndarray as views};

/// A [`BoundCall`] that borrows its tensors, so that its views are safe; made by [`Signature::borrow`].
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix2;
/// use dlfield::{BorrowedCall, DType, Dims, FieldSpec, Signature, Tensor};
///
/// fn total(call: &BorrowedCall) -> dlfield::Result<f64> {
///     Ok(call.read::<f64, Ix2>("inp")?.sum())
/// }
///
/// # fn main() -> dlfield::Result<()> {
/// let signature = Signature::new([("inp", FieldSpec::new(DType::F64, Dims::standard(2)))])?;
/// let inp = Tensor::from_array(dlfield::ndarray::array![[1.0, 2.0]])?;
/// assert_eq!(total(&signature.borrow(&[("inp", &inp)], [])?)?, 3.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BorrowedCall<'r, 'w> {
    call: BoundCall<'r>,
    /// By the position of the field in the signature. A written tensor leaves with its view.
    tensors: Vec<Lent<'r, 'w>>,
}

#[derive(Debug)]
enum Lent<'r, 'w> {
    Absent,
    Read(&'r Tensor),
    Written(&'w mut Tensor),
    Taken,
}

impl Signature {
    /// As [`Signature::bind`], for tensors that the call borrows, so that its views need no unsafe code: those to read, then those to
    /// write. A written tensor must be the only owner of its memory, as for [`Tensor::array_view_mut`].
    ///
    /// # Errors
    /// As for [`Signature::bind`]; [`SignatureError`] for a written field among those to read;
    /// [`ExchangeError`](crate::ExchangeError) for a tensor to write that shares its memory.
    ///
    /// # Example
    /// ```
    /// use dlfield::ndarray::Ix2;
    /// use dlfield::{Access, DType, Dims, FieldSpec, Signature, Spec, Tensor, traverse};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let field = || FieldSpec::new(DType::F64, Dims::standard(2));
    /// let signature = Signature::new([("inp", field()), ("out", field().access(Access::Write))])?;
    /// let inp = Tensor::full(&Spec::new(&[4, 6], DType::F64).dims(Dims::parse(["J", "I"])?), 1.5)?;
    /// let mut out = Tensor::zeros(&Spec::new(&[6, 4], DType::F64))?;
    /// let mut call = signature.borrow(&[("inp", &inp)], [("out", &mut out)])?;
    /// let (from, to) = (call.read::<f64, Ix2>("inp")?, call.write::<f64, Ix2>("out")?);
    /// traverse::zip((from.view(), to), |(from, to)| *to = 2.0 * from)?;
    /// assert_eq!(out.read::<f64, Ix2>()?[[5, 3]], 3.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn borrow<'r, 'w, 'n>(
        &self,
        read: &[(&str, &'r Tensor)],
        written: impl IntoIterator<Item = (&'n str, &'w mut Tensor)>,
    ) -> Result<BorrowedCall<'r, 'w>> {
        let written: Vec<(&str, &'w mut Tensor)> = written.into_iter().collect();
        let mut given: Vec<_> = read.iter().map(|(name, tensor)| (*name, tensor.descriptor())).collect();
        given.extend(written.iter().map(|(name, tensor)| (*name, tensor.descriptor())));
        let call = BoundCall::new(self, &given, |field| (*field, None))?;
        let mut tensors: Vec<_> = self.fields().iter().map(|_| Lent::Absent).collect();
        for (name, tensor) in read {
            let place = self.find(name, 0)?;
            if self.fields()[place].1.declared_access().writes() {
                return Err(unlike(
                    name,
                    "it is written, but its tensor is lent to read",
                    "pass `&mut` of it in the second list",
                ));
            }
            tensors[place] = Lent::Read(tensor);
        }
        for (name, tensor) in written {
            tensor.check_sole_writer().map_err(|error| error.in_field(name))?;
            tensors[self.find(name, 0)?] = Lent::Written(tensor);
        }
        Ok(BorrowedCall { call, tensors })
    }
}

impl<'r> Deref for BorrowedCall<'r, '_> {
    type Target = BoundCall<'r>;

    fn deref(&self) -> &BoundCall<'r> {
        &self.call
    }
}

impl<'r, 'w> BorrowedCall<'r, 'w> {
    /// Returns the elements of a field to read, with dimensions in the order of the signature.
    ///
    /// # Errors
    /// [`SignatureError`] for a field that was not given, or to write; as for [`Tensor::read`].
    ///
    /// # Example
    /// ```
    /// use dlfield::ndarray::Ix1;
    /// use dlfield::{DType, Dims, FieldSpec, Signature, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let field = FieldSpec::new(DType::F64, Dims::standard(1));
    /// let x = Tensor::from(vec![1.0, 2.0]);
    /// let call = Signature::new([("x", field)])?.borrow(&[("x", &x)], [])?;
    /// assert_eq!(call.read::<f64, Ix1>("x")?.sum(), 3.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read<T: Element, D: Dimension>(&self, name: &str) -> Result<ReadGuard<'r, T, D>> {
        let field = self.call.given(name)?;
        let Lent::Read(tensor) = self.tensors[self.place(name)?] else {
            return Err(unlike(name, "its tensor is lent to write", "use write"));
        };
        // SAFETY: the descriptor is the tensor's, with its dimensions in the kernel's order: this call has no copies.
        unsafe { tensor.read_as(field) }.map_err(|error| error.in_field(name))
    }

    /// Returns a view of a field to write, with dimensions in the order of the signature; once for each field.
    ///
    /// # Errors
    /// [`SignatureError`] for a field that was not given, to read, or whose view was taken; [`DTypeError`](crate::DTypeError),
    /// [`LayoutError`](crate::LayoutError) or [`DeviceError`](crate::DeviceError) for another element type or number of dimensions,
    /// and for memory that the host cannot reach.
    ///
    /// # Example
    /// ```
    /// use dlfield::ndarray::Ix1;
    /// use dlfield::{Access, DType, Dims, FieldSpec, Signature, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let field = FieldSpec::new(DType::F64, Dims::standard(1)).access(Access::ReadWrite);
    /// let mut x = Tensor::from(vec![1.0, 2.0]);
    /// let mut call = Signature::new([("x", field)])?.borrow(&[], [("x", &mut x)])?;
    /// call.write::<f64, Ix1>("x")?.fill(0.5);
    /// assert!(call.write::<f64, Ix1>("x").is_err()); // its view was taken
    /// assert_eq!(x.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn write<T: Element, D: Dimension>(&mut self, name: &str) -> Result<ArrayViewMut<'w, T, D>> {
        let field = self.call.given(name)?;
        let place = self.place(name)?;
        let tensor = match &self.tensors[place] {
            Lent::Written(tensor) => tensor,
            Lent::Taken => return Err(unlike(name, "its view was taken", "take it once, and reborrow it")),
            _ => return Err(unlike(name, "its tensor is lent to read", "use read")),
        };
        tensor.before_use_by(Executor::Host)?;
        // SAFETY: the descriptor is the tensor's, with its dimensions in the kernel's order: this call has no copies. The tensor is the
        // only owner of its memory, and the reference to it, which nobody else has for `'w`, leaves the call.
        let view = unsafe {
            views::check::<T, D>(field).map_err(|error| error.in_field(name))?;
            views::view_mut(field)
        };
        self.tensors[place] = Lent::Taken;
        Ok(view)
    }

    fn place(&self, name: &str) -> Result<usize> {
        Ok(self.call.signature().find(name, 0)?)
    }
}

/// Returns the error for a tensor that is not lent for this use.
#[cold]
fn unlike(name: &str, sentence: &str, fix: &str) -> Error {
    SignatureError::from_sentence(&field_of(name), &sentence).with_fix(&fix).into()
}

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
    /// let inp = Tensor::full(&Spec::new(&[4, 6], DType::F64).dims(Dims::parse(["J", "I"])?), 1.5)?;
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
    ///   [`Signature::allow_overlap`](crate::Signature::allow_overlap) allows it.
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
