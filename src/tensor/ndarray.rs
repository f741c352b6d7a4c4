//! Tensors to and from arrays of the crate `ndarray`, and views of them.

#![allow(unsafe_code, reason = "views are made from addresses")]

use std::ptr::NonNull;

use ndarray::{Array, Array1, ArrayView, ArrayViewMut, Axis, Dimension, ShapeBuilder, StrideShape};

use super::{Element, Owner, Tensor};
use crate::copy::Executor;
use crate::descriptor::Descriptor;
use crate::device::DeviceError;
use crate::dtype::{DType, DTypeError};
use crate::error::{Error, Result};
use crate::layout::{Extents, LayoutError, is_unshared};
use crate::memory::OutOfMemory;
use crate::protocol::ExchangeError;

impl Tensor {
    /// Takes an array over as it is, in whatever layout, negative strides too; nothing is copied.
    ///
    /// # Errors
    /// [`Error::Exchange`] for more than 64 dimensions, and for a shape without elements whose other extents no 64-bit
    /// number of bytes holds.
    ///
    /// # Example
    /// ```
    /// use dlfield::Tensor;
    /// use dlfield::ndarray::{Array2, Axis, array};
    /// let mut array = array![[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]];
    /// let start = array.as_ptr().cast::<u8>();
    /// array.invert_axis(Axis(0));
    /// let field = Tensor::from_array(array).unwrap();
    /// assert_eq!((field.descriptor().shape(), field.descriptor().strides()), (&[3, 2][..], &[-2, 1][..]));
    /// assert_eq!(field.descriptor().ptr().cast_const(), start.wrapping_add(16));
    /// ```
    pub fn from_array<T: Element, D: Dimension>(mut array: Array<T, D>) -> Result<Tensor> {
        // Extents and strides of memory that there is fit; those of an array without elements are checked below.
        let extents = array.shape().iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX));
        let (shape, start): (Extents, *mut u8) = (extents.collect(), array.as_mut_ptr().cast());
        let strides: Extents = array.strides().iter().map(|stride| i64::try_from(*stride).unwrap_or(0)).collect();
        let descriptor = Descriptor::new(start, crate::Device::CPU, T::DTYPE, false, &shape, &strides)?;
        let (elements, _) = array.into_raw_vec_and_offset();
        // SAFETY: the elements of an array lie in its vector, which stays where it is while the owner keeps it.
        Ok(unsafe { Tensor::from_parts(descriptor, Owner::elements(elements)) })
    }

    /// The elements as an array, or an error, with which the tensor is gone: what fits can be seen beforehand from its
    /// [`Tensor::descriptor`]. What came from an array or a `Vec` of this type, and is nobody else's, goes back without a
    /// copy, if its first byte is still that of the vector; everything else is copied, as `ndarray` frees like a vector.
    ///
    /// # Errors
    /// [`DTypeError::Unlike`] or [`LayoutError::Rank`] for another type of elements or number of dimensions,
    /// [`DeviceError::NotHostReadable`], [`LayoutError::Unaligned`], [`DTypeError::NotBool`] for bools that are none, and
    /// [`ExchangeError::Exported`] if another library has the memory.
    ///
    /// # Example
    /// ```
    /// use dlfield::Tensor;
    /// use dlfield::ndarray::Array1;
    /// let numbers = vec![1i32, 2, 3];
    /// let start = numbers.as_ptr();
    /// let field = Tensor::from(numbers);
    /// let back: Array1<i32> = field.into_array().unwrap();
    /// assert_eq!(back.as_ptr(), start);
    /// ```
    pub fn into_array<T: Element, D: Dimension>(mut self) -> Result<Array<T, D>> {
        self.owner.clear_exported();
        self.before_use_by(Executor::Host)?;
        let (descriptor, mut taken) = (&self.descriptor, None);
        if self.owner.is_exclusive() && is_unshared(descriptor.shape(), descriptor.strides()) && descriptor.size() > 0 {
            // SAFETY: the tensor keeps its memory, and nobody else has it.
            unsafe { check::<T, D>(descriptor) }?;
            let Geometry { shape, lowest } = Geometry::<T, D>::of(descriptor);
            let elements = self.owner.take_elements::<T>(lowest);
            // The vector has room for what the tensor describes, which was made of it: nothing is refused here.
            let array = elements.map(|elements| Array::from_shape_vec(shape, elements)).transpose();
            taken = array.map_err(|_| ExchangeError::Shared)?;
        }
        match taken {
            Some(array) => Ok(inverted(array, descriptor)),
            None => self.owner.read(|| {
                // SAFETY: the tensor keeps its memory, and nobody has it who could write to it in safe code.
                unsafe {
                    check::<T, D>(descriptor)?;
                    copied(&view::<T, D>(descriptor))
                }
            })?,
        }
    }

    /// A view of the elements, to read and to write.
    ///
    /// It is safe because nobody else has the memory while the view lives: it has to be an allocation of this crate, or to
    /// have come from an array or a `Vec`, and there must be no clone or view of the tensor, here or in another library.
    ///
    /// # Errors
    /// [`ExchangeError::Shared`] otherwise, and as for [`Tensor::into_array`].
    ///
    /// # Example
    /// ```
    /// use dlfield::ndarray::Ix2;
    /// use dlfield::{DType, Preset, Spec, Tensor};
    /// let spec = Spec::new(&[3, 4], DType::F64).preset(Preset::find("gt:cpu_ifirst").unwrap());
    /// let mut field = Tensor::zeros(&spec).unwrap();
    /// field.array_view_mut::<f64, Ix2>().unwrap()[[2, 1]] = 7.0;
    /// assert_eq!(field.array_view_mut::<f64, Ix2>().unwrap().sum(), 7.0);
    /// ```
    pub fn array_view_mut<T: Element, D: Dimension>(&mut self) -> Result<ArrayViewMut<'_, T, D>> {
        if !self.owner.is_exclusive() {
            return Err(ExchangeError::Shared.into());
        }
        self.owner.clear_exported();
        self.descriptor.check_writable("readonly")?;
        self.before_use_by(Executor::Host)?;
        // SAFETY: the tensor keeps its memory, and nobody else has it.
        unsafe {
            check::<T, D>(&self.descriptor)?;
            Ok(view_mut(&self.descriptor))
        }
    }

    /// A view of the elements, to read.
    ///
    /// # Errors
    /// As for [`Tensor::into_array`].
    ///
    /// # Safety
    /// - Nobody writes to the memory while the view lives: neither through another tensor that shares it, nor in Python or
    ///   another library that it was handed to. Nothing here could tell; [`Tensor::array_view_mut`] can, of memory that was
    ///   never handed to anybody.
    ///
    /// # Example
    /// ```
    /// use dlfield::Tensor;
    /// use dlfield::ndarray::Ix1;
    /// let field = Tensor::from(vec![1.0f64, 2.0]);
    /// let clone = field.clone();
    /// // SAFETY: nobody writes to the vector.
    /// let (one, other) = unsafe { (field.array_view::<f64, Ix1>(), clone.array_view::<f64, Ix1>()) };
    /// assert_eq!(one.unwrap(), other.unwrap());
    /// ```
    pub unsafe fn array_view<T: Element, D: Dimension>(&self) -> Result<ArrayView<'_, T, D>> {
        self.before_use_by(Executor::Host)?;
        // SAFETY: the tensor keeps its memory; that nobody writes is the caller's word.
        unsafe {
            check::<T, D>(&self.descriptor)?;
            Ok(view(&self.descriptor))
        }
    }
}

/// The elements in an array of their own, in C order.
///
/// # Errors
/// [`OutOfMemory`].
fn copied<T: Element, D: Dimension>(view: &ArrayView<'_, T, D>) -> Result<Array<T, D>> {
    let (bytes, alignment) = (view.len().saturating_mul(size_of::<T>()), align_of::<T>());
    let out_of_memory = |_| OutOfMemory { bytes, alignment, device: crate::Device::CPU };
    let mut elements = Vec::new();
    elements.try_reserve_exact(view.len()).map_err(out_of_memory)?;
    elements.extend(view.iter());
    // There are as many as the shape says.
    Ok(Array::from_shape_vec(view.raw_dim(), elements).map_err(|_| ExchangeError::Shared)?)
}

/// Takes the elements over as a tensor of one dimension; nothing is copied.
///
/// # Example
/// ```
/// use dlfield::{DType, Tensor};
/// let field = Tensor::from(vec![true, false]);
/// assert_eq!((field.descriptor().dtype(), field.descriptor().shape()), (DType::BOOL, &[2][..]));
/// ```
impl<T: Element> From<Vec<T>> for Tensor {
    fn from(elements: Vec<T>) -> Tensor {
        let mut array = Array1::from_vec(elements);
        let len = i64::try_from(array.len()).unwrap_or(i64::MAX);
        let start = array.as_mut_ptr().cast();
        let mut descriptor = Descriptor::BLANK;
        // A vector is at most `isize::MAX` bytes at an address there is, so there is nothing to refuse.
        if descriptor.set(start, crate::Device::CPU, T::DTYPE, false, &[len], &[1]).is_err() {
            unreachable!("a vector of {len} elements");
        }
        // SAFETY: as for arrays.
        unsafe { Tensor::from_parts(descriptor, Owner::elements(array.into_raw_vec_and_offset().0)) }
    }
}

/// As [`Tensor::from_array`].
impl<T: Element, D: Dimension> TryFrom<Array<T, D>> for Tensor {
    type Error = Error;

    fn try_from(array: Array<T, D>) -> Result<Tensor> {
        Tensor::from_array(array)
    }
}

/// Refuses what no view with elements of this type and so many dimensions can be of.
///
/// # Safety
/// - Elements that the host can reach are readable.
pub(crate) unsafe fn check<T: Element, D: Dimension>(field: &Descriptor) -> Result<()> {
    check_shape(field, Some(T::DTYPE), D::NDIM)?;
    // SAFETY: passed on from the caller.
    unsafe { check_memory::<T>(field) }
}

/// Refuses other elements and numbers of dimensions than those wanted, if any are.
#[inline]
pub(crate) fn check_shape(field: &Descriptor, dtype: Option<DType>, ndim: Option<usize>) -> Result<()> {
    if let Some(wanted) = dtype
        && wanted != field.dtype()
    {
        return Err(DTypeError::Unlike { found: field.dtype().name(), wanted: wanted.name() }.into());
    }
    match ndim {
        Some(wanted) if wanted != field.ndim() => {
            Err(LayoutError::Rank { got: field.ndim(), wanted, shape: field.shape().to_vec() }.into())
        }
        _ => Ok(()),
    }
}

/// Refuses memory out of the host's reach, elements where the processor does not want them, and bools that are none.
///
/// # Safety
/// - As for [`check`].
#[inline]
pub(crate) unsafe fn check_memory<T: Element>(field: &Descriptor) -> Result<()> {
    if !field.device().is_host_readable() {
        return Err(DeviceError::NotHostReadable { found: field.device() }.into());
    }
    let address = field.ptr().addr();
    if !address.is_multiple_of(align_of::<T>()) && field.size() > 0 {
        return Err(LayoutError::Unaligned { address, wanted: align_of::<T>() }.into());
    }
    if T::DTYPE == DType::BOOL {
        freeze(field.ptr());
        // SAFETY: as the caller says; a byte may hold anything.
        let bytes = unsafe { view::<u8, ndarray::IxDyn>(field) };
        // Any other byte in a bool is undefined behaviour.
        if let Some(got) = bytes.iter().find(|byte| **byte > 1) {
            return Err(DTypeError::NotBool { got: *got }.into());
        }
    }
    Ok(())
}

/// A view of a field that has been checked for it.
///
/// # Safety
/// - [`check`] has nothing against it, or the elements are bytes, of which one has as many as the field's elements.
/// - For as long as the view lives the elements are readable, and nobody writes to them.
pub(crate) unsafe fn view<'a, T: Element, D: Dimension>(field: &Descriptor) -> ArrayView<'a, T, D> {
    let geometry = Geometry::<T, D>::of(field);
    freeze(geometry.lowest);
    // SAFETY: a descriptor is validated, so every element lies where shape and strides say, counted from the lowest one; the
    // rest is passed on from the caller.
    inverted(unsafe { ArrayView::from_shape_ptr(geometry.shape, geometry.lowest) }, field)
}

/// As [`view`], to be written too.
///
/// # Safety
/// - As for [`view`], [`Descriptor::check_writable`] has nothing against it either, and nobody else reads the elements.
pub(crate) unsafe fn view_mut<'a, T: Element, D: Dimension>(field: &Descriptor) -> ArrayViewMut<'a, T, D> {
    let geometry = Geometry::<T, D>::of(field);
    freeze(geometry.lowest);
    // SAFETY: as above.
    inverted(unsafe { ArrayViewMut::from_shape_ptr(geometry.shape, geometry.lowest) }, field)
}

/// A field as `ndarray` takes it: from its lowest address, with strides upwards.
struct Geometry<T, D: Dimension> {
    shape: StrideShape<D>,
    lowest: *mut T,
}

impl<T, D: Dimension> Geometry<T, D> {
    fn of(field: &Descriptor) -> Geometry<T, D> {
        let mut extents = D::zeros(field.ndim());
        for (axis, extent) in field.shape().iter().enumerate() {
            extents[axis] = usize::try_from(*extent).unwrap_or(0);
        }
        let Some((low, _)) = field.byte_span() else {
            // Without elements strides mean nothing, and there may be no address.
            return Geometry { shape: extents.into(), lowest: NonNull::dangling().as_ptr() };
        };
        let mut steps = D::zeros(field.ndim());
        for (axis, (extent, stride)) in field.shape().iter().zip(field.strides()).enumerate() {
            // That of an extent of 1 leads to no element either.
            let stride = if *extent > 1 { stride.unsigned_abs() } else { 0 };
            steps[axis] = usize::try_from(stride).unwrap_or(0);
        }
        let lowest = field.ptr().wrapping_byte_offset(isize::try_from(low).unwrap_or(0)).cast();
        Geometry { shape: extents.strides(steps), lowest }
    }
}

/// Turns the axes whose strides lead downwards.
fn inverted<S: ndarray::RawData, D: Dimension>(
    mut array: ndarray::ArrayBase<S, D>,
    field: &Descriptor,
) -> ndarray::ArrayBase<S, D> {
    for (axis, stride) in field.strides().iter().enumerate() {
        if *stride < 0 && field.shape()[axis] > 1 && !array.is_empty() {
            array.invert_axis(Axis(axis));
        }
    }
    array
}

/// Makes whatever is in the memory a value: `Tensor::empty` has written nothing, and to read what nobody has written is
/// undefined behaviour, though any bytes are good numbers. Code that the compiler cannot look into may have written them:
/// this is what `freeze` will be for, once Rust has it.
#[inline]
fn freeze<T>(start: *mut T) {
    #[cfg(not(miri))]
    // SAFETY: it does nothing.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) start, options(nostack, preserves_flags));
    }
    // Miri has no assembly.
    #[cfg(miri)]
    let _ = start;
}
