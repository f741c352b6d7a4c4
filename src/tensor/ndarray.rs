//! Conversion of tensors from and to arrays of the crate `ndarray`, and views of tensors.

#![allow(unsafe_code, reason = "views are made from addresses")]

use std::ptr::NonNull;

use ndarray::{Array, Array1, ArrayView, ArrayViewMut, Axis, Dimension, ShapeBuilder, StrideShape};
use smallvec::SmallVec;

use super::owner::shared;
use super::{Element, Owner, Tensor};
use crate::descriptor::Descriptor;
use crate::device::not_host_readable;
use crate::dtype::{self, DType};
use crate::error::{DTypeError, Error, LayoutError, LayoutErrorKind, Result};
use crate::layout::{Extents, is_unshared, rank_mismatch};
use crate::memory::Executor;
use crate::memory::block::out_of_memory;

impl Tensor {
    /// Takes over an array in its layout, negative strides included; nothing is copied.
    ///
    /// # Errors
    /// [`Error::Exchange`] for more than 64 dimensions, and for a shape without elements whose other extents exceed 64-bit
    /// bytes.
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
        // Extents and strides of existing memory fit; those of an array without elements are checked below.
        let extents = array.shape().iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX));
        let (shape, start): (Extents, *mut u8) = (extents.collect(), array.as_mut_ptr().cast());
        let strides: Extents = array.strides().iter().map(|stride| i64::try_from(*stride).unwrap_or(0)).collect();
        let descriptor = Descriptor::new(start, crate::Device::CPU, T::DTYPE, false, &shape, &strides)?;
        let (elements, _) = array.into_raw_vec_and_offset();
        // SAFETY: an array's elements lie in its vector, which stays where it is while the owner keeps it.
        Ok(unsafe { Tensor::from_parts(descriptor, Owner::elements(elements)) })
    }

    /// Returns the elements as an array. An error drops the tensor; its [`Tensor::descriptor`] tells beforehand what fits.
    /// Memory of an array or a `Vec` of this type without other owners is returned uncopied if its first byte is still that of
    /// the vector; everything else is copied, as `ndarray` frees like a vector. A copy has its strides in the same order, for
    /// example F order, without gaps and negative strides.
    ///
    /// # Errors
    /// [`DTypeError`](crate::DTypeError) for another element type, and for bools other than 0 and 1; [`LayoutError`] for another
    /// number of dimensions, and for misaligned elements; [`DeviceError`](crate::DeviceError) for memory that the host cannot
    /// read; [`ExchangeError`](crate::ExchangeError) if the memory was exported to another library.
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
            // SAFETY: the tensor keeps its memory and is its only owner.
            unsafe { check::<T, D>(descriptor) }?;
            let Geometry { shape, lowest, .. } = Geometry::<T, D>::of(descriptor);
            let elements = self.owner.take_elements::<T>(lowest);
            // The tensor was made from this vector, which holds what it describes: this never fails.
            let array = elements.map(|elements| Array::from_shape_vec(shape, elements)).transpose();
            taken = array.map_err(|_| shared())?;
        }
        match taken {
            Some(array) => Ok(inverted(array, descriptor)),
            None => self.owner.read(|| {
                // SAFETY: the tensor keeps its memory, which is not exported, so safe code cannot write to it.
                unsafe {
                    check::<T, D>(descriptor)?;
                    copied(&view::<T, D>(descriptor))
                }
            })?,
        }
    }

    /// Returns a view of the elements for reading and writing.
    ///
    /// It is safe because no other code has the memory while the view lives: it must be an allocation of this crate or come
    /// from an array or a `Vec`, and the tensor must have no clone or view, here or in another library. Memory that comes back
    /// from another library through [`Tensor::from_managed`] is such memory.
    ///
    /// # Errors
    /// [`ExchangeError`](crate::ExchangeError) otherwise, and as for [`Tensor::into_array`].
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
        self.check_sole_writer()?;
        self.before_use_by(Executor::Host)?;
        // SAFETY: the tensor keeps its memory and is its only owner.
        unsafe {
            check::<T, D>(&self.descriptor)?;
            Ok(view_mut(&self.descriptor))
        }
    }

    /// Returns a view of the elements for reading.
    ///
    /// # Errors
    /// As for [`Tensor::into_array`].
    ///
    /// # Safety
    /// - No code writes to the memory while the view lives: neither through another tensor that shares it, nor in Python or
    ///   another library that it was exported to. This function cannot check that; [`Tensor::array_view_mut`] can, for memory
    ///   that was never exported.
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
        // SAFETY: the tensor keeps its memory; by the caller's contract no code writes to it.
        unsafe {
            check::<T, D>(&self.descriptor)?;
            Ok(view(&self.descriptor))
        }
    }
}

/// Copies the elements into an array of their own, with strides in the same order, as NumPy's order "K".
///
/// # Errors
/// [`MemoryError`].
fn copied<T: Element, D: Dimension>(view: &ArrayView<'_, T, D>) -> Result<Array<T, D>> {
    let mut axes: SmallVec<[usize; 6]> = (0..view.ndim()).collect();
    if !view.is_standard_layout() {
        axes.sort_unstable_by_key(|axis| (std::cmp::Reverse(view.strides()[*axis].unsigned_abs()), *axis));
    }
    let (mut ordered, mut back) = (D::zeros(axes.len()), D::zeros(axes.len()));
    for (position, axis) in axes.iter().enumerate() {
        (ordered[position], back[*axis]) = (*axis, position);
    }
    let from = view.view().permuted_axes(ordered);
    let elements = collected(&from)?;
    // The vector has as many elements as the shape.
    let array = Array::from_shape_vec(from.raw_dim(), elements).map_err(|_| shared())?;
    Ok(array.permuted_axes(back))
}

/// Copies the elements in the order of their indices.
///
/// # Errors
/// [`MemoryError`].
pub(super) fn collected<T: Element, D: Dimension>(view: &ArrayView<'_, T, D>) -> Result<Vec<T>> {
    let (bytes, alignment) = (view.len().saturating_mul(size_of::<T>()), align_of::<T>());
    let out_of_memory = |_| out_of_memory(bytes, alignment, crate::Device::CPU);
    let mut elements = Vec::new();
    elements.try_reserve_exact(view.len()).map_err(out_of_memory)?;
    elements.extend(view.iter());
    Ok(elements)
}

/// Takes over the elements as a tensor of one dimension; nothing is copied.
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
        // A vector has a valid address and at most `isize::MAX` bytes, so the descriptor always accepts it.
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

/// Rejects fields that cannot have a view of this element type and number of dimensions.
///
/// # Safety
/// - Elements that the host can reach are readable.
pub(crate) unsafe fn check<T: Element, D: Dimension>(field: &Descriptor) -> Result<()> {
    check_shape(field, Some(T::DTYPE), D::NDIM)?;
    // SAFETY: passed on from the caller.
    unsafe { check_memory::<T>(field) }
}

/// Rejects another element type or number of dimensions than the expected one, if any.
#[inline]
pub(crate) fn check_shape(field: &Descriptor, dtype: Option<DType>, ndim: Option<usize>) -> Result<()> {
    if let Some(wanted) = dtype
        && wanted != field.dtype()
    {
        return Err(dtype::mismatch(field.dtype(), &wanted).into());
    }
    match ndim {
        Some(wanted) if wanted != field.ndim() => Err(rank_mismatch(wanted, field.shape()).into()),
        _ => Ok(()),
    }
}

/// Rejects memory that the host cannot reach, misaligned elements, and bools other than 0 and 1.
///
/// # Safety
/// - As for [`check`].
#[inline]
pub(crate) unsafe fn check_memory<T: Element>(field: &Descriptor) -> Result<()> {
    if !field.device().is_host_readable() {
        return Err(not_host_readable(field.device()).into());
    }
    let address = field.ptr().addr();
    if !address.is_multiple_of(align_of::<T>()) && field.size() > 0 {
        let expected = format_args!("an address that is a multiple of {} bytes", align_of::<T>());
        return Err(LayoutError::new("data", &expected, &format_args!("{address:#x}"))
            .with_fix(&"pass a copy")
            .with_kind(LayoutErrorKind::NeedsCopy)
            .into());
    }
    if T::DTYPE == DType::BOOL {
        // SAFETY: readable by the caller's contract; a byte may hold any value.
        let bytes = unsafe { view::<u8, ndarray::IxDyn>(field) };
        // Any other byte in a bool is undefined behaviour. Without a branch at each, the compiler takes many at a time.
        if bytes.fold(0, |all, byte| all | byte) <= 1 {
            return Ok(());
        }
        if let Some(got) = bytes.iter().find(|byte| **byte > 1) {
            let got = format_args!("a bool with the byte {got}");
            return Err(DTypeError::new("dtype", &"bools of the bytes 0 and 1", &got)
                .with_fix(&"view the array as uint8, or compare it with 0")
                .into());
        }
    }
    Ok(())
}

/// Returns a view of a checked field.
///
/// # Safety
/// - [`check`] accepts the field, or `T` is `u8` and the field's elements have one byte.
/// - While the view lives, the elements are readable and no code writes to them.
pub(crate) unsafe fn view<'a, T: Element, D: Dimension>(field: &Descriptor) -> ArrayView<'a, T, D> {
    let geometry = Geometry::<T, D>::of(field);
    // SAFETY: a descriptor is validated, so every element lies where shape and strides say, counted from the lowest one; the
    // rest is passed on from the caller.
    let view = unsafe { ArrayView::from_shape_ptr(geometry.shape, geometry.lowest) };
    if geometry.is_inverted { inverted(view, field) } else { view }
}

/// As [`view`], also for writing.
///
/// # Safety
/// - As for [`view`]; also [`Descriptor::check_writable`] accepts the field, and no other code reads the elements.
pub(crate) unsafe fn view_mut<'a, T: Element, D: Dimension>(field: &Descriptor) -> ArrayViewMut<'a, T, D> {
    let geometry = Geometry::<T, D>::of(field);
    // SAFETY: passed on from the caller: the elements may be written, and no other code reads them.
    let view = unsafe { ArrayViewMut::from_shape_ptr(geometry.shape, geometry.lowest) };
    if geometry.is_inverted { inverted(view, field) } else { view }
}

/// Returns the elements of a checked field in C order as a slice.
///
/// # Safety
/// - As for [`view`]; also [`Descriptor::is_c_contiguous`].
#[inline]
pub(crate) unsafe fn slice<'a, T: Element>(field: &Descriptor) -> &'a [T] {
    let (start, len) = run::<T>(field);
    // SAFETY: the elements lie one after the other; the rest is passed on from the caller.
    unsafe { std::slice::from_raw_parts(start, len) }
}

/// As [`slice`], also for writing.
///
/// # Safety
/// - As for [`view_mut`]; also [`Descriptor::is_c_contiguous`].
#[inline]
pub(crate) unsafe fn slice_mut<'a, T: Element>(field: &Descriptor) -> &'a mut [T] {
    let (start, len) = run::<T>(field);
    // SAFETY: passed on from the caller: the elements are contiguous and writable, and no other code reads them.
    unsafe { std::slice::from_raw_parts_mut(start, len) }
}

/// The address and number of elements in C order.
#[inline]
fn run<T>(field: &Descriptor) -> (*mut T, usize) {
    let len = usize::try_from(field.size()).unwrap_or(0);
    // The address of a field without elements may be NULL.
    let start = if len == 0 { NonNull::dangling().as_ptr() } else { field.ptr().cast() };
    (start, len)
}

/// A field as `ndarray` takes it: from its lowest address, with non-negative strides.
struct Geometry<T, D: Dimension> {
    shape: StrideShape<D>,
    lowest: *mut T,
    /// Whether an axis has a negative stride.
    is_inverted: bool,
}

impl<T, D: Dimension> Geometry<T, D> {
    fn of(field: &Descriptor) -> Geometry<T, D> {
        let (mut extents, mut steps) = (D::zeros(field.ndim()), D::zeros(field.ndim()));
        let (mut is_empty, mut low) = (false, 0_isize);
        for (axis, (extent, stride)) in field.shape().iter().zip(field.strides()).enumerate() {
            extents[axis] = usize::try_from(*extent).unwrap_or(0);
            is_empty |= *extent == 0;
            // The stride of an extent of 1 leads to no element.
            let stride = if *extent > 1 { isize::try_from(*stride).unwrap_or(0) } else { 0 };
            steps[axis] = stride.unsigned_abs();
            if stride < 0 {
                // It wraps without elements only: a descriptor is validated, so the offsets of all elements are in bounds.
                low = low.wrapping_add(extents[axis].cast_signed().wrapping_sub(1).wrapping_mul(stride));
            }
        }
        if is_empty {
            // Without elements the strides mean nothing, and the address may be NULL.
            return Geometry { shape: extents.into(), lowest: NonNull::dangling().as_ptr(), is_inverted: false };
        }
        let lowest = field.ptr().cast::<T>().wrapping_offset(low);
        Geometry { shape: extents.strides(steps), lowest, is_inverted: low != 0 }
    }
}

/// Inverts the axes with negative strides.
#[cold]
fn inverted<S: ndarray::RawData, D: Dimension>(
    mut array: ndarray::ArrayBase<S, D>,
    field: &Descriptor,
) -> ndarray::ArrayBase<S, D> {
    for (axis, stride) in field.strides().iter().enumerate() {
        if *stride < 0 && field.shape()[axis] > 1 {
            array.invert_axis(Axis(axis));
        }
    }
    array
}
