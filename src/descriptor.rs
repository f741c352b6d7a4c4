//! A field in memory, checked: what every protocol is turned into and made from.

use crate::device::Device;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::layout::{Layout, LayoutError, MAX_NDIM, byte_span, check_halo, check_origin, is_contiguous};
use crate::protocol::ExchangeError;

/// Address, device, element type, shape and strides of a field, and what is known of its labels.
///
/// Having one is the proof that these fit together: at most [`MAX_NDIM`] dimensions, no negative extent, as many
/// strides as extents, every element's address inside the address space, every stride a 64-bit number of bytes, and
/// no null address unless there are no elements. It says nothing about who owns the memory; see [`crate::Tensor`].
#[derive(Clone, Debug)]
pub struct Descriptor {
    ptr: *mut u8,
    device: Device,
    dtype: DType,
    readonly: bool,
    numbers: Numbers,
    // Boxed: most arrays of other libraries have none, and descriptors are made in tens of nanoseconds.
    labels: Option<Box<Labels>>,
}

/// This many dimensions need no allocation: a grid and three data dimensions.
const FEW: usize = 6;

/// Shape and strides.
#[derive(Clone, Debug)]
struct Numbers {
    ndim: usize,
    /// The shape of few dimensions, then their strides.
    few: [[i64; FEW]; 2],
    /// The shape of more dimensions, then their strides.
    many: Option<Box<[i64]>>,
}

impl Numbers {
    const NONE: Numbers = Numbers { ndim: 1, few: [[0; FEW]; 2], many: None };

    /// Room for so many extents and so many strides, whatever is in there.
    #[inline]
    fn room(&mut self, ndim: usize) -> (&mut [i64], &mut [i64]) {
        self.ndim = ndim;
        if ndim <= FEW {
            self.many = None;
            let [shape, strides] = &mut self.few;
            (&mut shape[..ndim], &mut strides[..ndim])
        } else {
            self.many.insert(vec![0; 2 * ndim].into()).split_at_mut(ndim)
        }
    }

    #[inline]
    fn split(&self) -> (&[i64], &[i64]) {
        match &self.many {
            None => (&self.few[0][..self.ndim], &self.few[1][..self.ndim]),
            Some(many) => many.split_at(self.ndim),
        }
    }

    fn split_mut(&mut self) -> (&mut [i64], &mut [i64]) {
        match &mut self.many {
            None => {
                let [shape, strides] = &mut self.few;
                (&mut shape[..self.ndim], &mut strides[..self.ndim])
            }
            Some(many) => many.split_at_mut(self.ndim),
        }
    }
}

/// What somebody stated of the meaning of the dimensions.
#[derive(Clone, Default, Debug)]
struct Labels {
    dims: Option<Dims>,
    origin: Option<Box<[i64]>>,
    halo: Option<Box<[(i64, i64)]>>,
}

// SAFETY: a descriptor holds an address and never follows it; whoever does answers for the access.
#[allow(unsafe_code, reason = "an address may travel between threads")]
unsafe impl Send for Descriptor {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "an address may travel between threads")]
unsafe impl Sync for Descriptor {}

impl Descriptor {
    /// Of no field: no elements, nowhere.
    pub(crate) const BLANK: Descriptor = Descriptor {
        ptr: std::ptr::null_mut(),
        device: Device::CPU,
        dtype: DType::U8,
        readonly: true,
        numbers: Numbers::NONE,
        labels: None,
    };

    /// Checks that the parts fit together. `strides` count elements.
    ///
    /// A stride that means nothing (of an extent of 1, or of a field without elements) and cannot be told in bytes is
    /// replaced by 1.
    ///
    /// # Errors
    /// [`ExchangeError`] naming the part at fault.
    pub fn new(
        ptr: *mut u8,
        device: Device,
        dtype: DType,
        readonly: bool,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Descriptor, ExchangeError> {
        let mut descriptor = Descriptor::BLANK;
        descriptor.set(ptr, device, dtype, readonly, shape, strides)?;
        Ok(descriptor)
    }

    /// As [`Descriptor::new`], with strides in bytes, each a multiple of the element size where it means something.
    ///
    /// # Errors
    /// [`ExchangeError::PartialStride`], and as for [`Descriptor::new`].
    pub fn from_byte_strides(
        ptr: *mut u8,
        device: Device,
        dtype: DType,
        readonly: bool,
        shape: &[i64],
        byte_strides: &[i64],
    ) -> Result<Descriptor, ExchangeError> {
        let mut descriptor = Descriptor::BLANK;
        descriptor.set_with_byte_strides(ptr, device, dtype, readonly, shape, byte_strides)?;
        Ok(descriptor)
    }

    /// As [`Descriptor::new`], in place: a new one would be moved several times before it lies where it stays, which
    /// takes longer than to make it. After an error it is blank.
    #[inline]
    pub(crate) fn set(
        &mut self,
        ptr: *mut u8,
        device: Device,
        dtype: DType,
        readonly: bool,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<(), ExchangeError> {
        self.fill(ptr, device, dtype, readonly, shape, strides, 0)
    }

    /// As [`Descriptor::from_byte_strides`], in place.
    #[inline]
    pub(crate) fn set_with_byte_strides(
        &mut self,
        ptr: *mut u8,
        device: Device,
        dtype: DType,
        readonly: bool,
        shape: &[i64],
        byte_strides: &[i64],
    ) -> Result<(), ExchangeError> {
        self.fill(ptr, device, dtype, readonly, shape, byte_strides, dtype.itemsize().trailing_zeros())
    }

    /// Strides are in units of elements divided by `2**shift`. The element size is a power of two: shifting divides,
    /// exactly where nothing is lost.
    #[allow(clippy::too_many_arguments, reason = "a description has this many parts, and the unit of the strides")]
    #[inline(always)]
    fn fill(
        &mut self,
        ptr: *mut u8,
        device: Device,
        dtype: DType,
        readonly: bool,
        shape: &[i64],
        strides: &[i64],
        shift: u32,
    ) -> Result<(), ExchangeError> {
        let ndim = shape.len();
        if ndim > MAX_NDIM || ndim != strides.len() {
            return Err(self.no_match(ndim, strides.len()));
        }
        let (extents, steps) = self.numbers.room(ndim);
        // A field is plain if it has elements and no sum comes anywhere near 64 bits. What is not plain may still be right.
        let (mut reach, mut count, mut plain) = (1i64, 1i64, true);
        for ((extent, step), (from_shape, from_strides)) in extents.iter_mut().zip(steps).zip(shape.iter().zip(strides))
        {
            *extent = *from_shape;
            *step = *from_strides >> shift;
            let last = from_shape.wrapping_sub(1);
            plain &= *step << shift == *from_strides && (0..1 << 31).contains(&last) && step.unsigned_abs() < 1 << 31;
            reach = reach.saturating_add(last.wrapping_mul(step.wrapping_abs()));
            count = count.saturating_mul(*from_shape);
        }
        (self.ptr, self.device, self.dtype, self.readonly, self.labels) = (ptr, device, dtype, readonly, None);
        // An element has at most 16 bytes.
        let address = ptr.addr();
        let near = |bytes: usize| address > bytes && address < 1 << 62;
        if plain && reach < 1 << 40 && count < 1 << 40 && usize::try_from(reach * 16).is_ok_and(near) {
            return Ok(());
        }
        let checked = self.convert(strides, shift).and_then(|()| self.check());
        if checked.is_err() {
            *self = Descriptor::BLANK;
        }
        checked
    }

    #[cold]
    fn no_match(&mut self, ndim: usize, strides: usize) -> ExchangeError {
        *self = Descriptor::BLANK;
        if ndim > MAX_NDIM {
            ExchangeError::TooManyDims { got: ndim }
        } else {
            ExchangeError::StridesLength { ndim, got: strides }
        }
    }

    /// Replaces strides that lead to no element: they have to mean nothing.
    #[cold]
    fn convert(&mut self, byte_strides: &[i64], shift: u32) -> Result<(), ExchangeError> {
        let itemsize = self.dtype.itemsize();
        let (shape, strides) = self.numbers.split_mut();
        for (axis, (stride, bytes)) in strides.iter_mut().zip(byte_strides).enumerate() {
            if *stride << shift != *bytes {
                if shape[axis] != 1 && !shape.contains(&0) {
                    return Err(ExchangeError::PartialStride { axis, got: *bytes, itemsize });
                }
                *stride = 1;
            }
        }
        Ok(())
    }

    #[cold]
    fn check(&mut self) -> Result<(), ExchangeError> {
        let itemsize = self.dtype.itemsize();
        let byte_size = i64::try_from(itemsize).unwrap_or(i64::MAX);
        let (shape, strides) = self.numbers.split_mut();
        if let Some(axis) = shape.iter().position(|extent| *extent < 0) {
            return Err(ExchangeError::NegativeExtent { axis, got: shape[axis] });
        }
        let empty = shape.contains(&0);
        for (extent, stride) in shape.iter().zip(strides.iter_mut()) {
            if (empty || *extent == 1) && stride.checked_mul(byte_size).is_none() {
                *stride = 1;
            }
        }
        match byte_span(shape, strides, itemsize) {
            Some(_) if self.ptr.is_null() => return Err(ExchangeError::NullData),
            Some((low, high)) => {
                let address = i128::try_from(self.ptr.addr()).unwrap_or(i128::MAX);
                let end = i128::from(u64::MAX);
                if address.saturating_add(low) < 0
                    || address.saturating_add(high) > end
                    || high.saturating_sub(low) > i128::from(i64::MAX)
                {
                    return Err(ExchangeError::Span { shape: shape.to_vec(), strides: strides.to_vec(), itemsize });
                }
            }
            None => {}
        }
        // Whatever the strides, bytes have to be countable; without elements, those of the other dimensions.
        let count = |bytes: i64, extent: &i64| bytes.checked_mul(*extent);
        if shape.iter().filter(|extent| **extent != 0).try_fold(byte_size, count).is_none() {
            return Err(ExchangeError::Size { shape: shape.to_vec(), itemsize });
        }
        Ok(())
    }

    /// States the labels.
    ///
    /// # Errors
    /// [`crate::DimsError::Length`] if there is not one per dimension.
    pub fn with_dims(mut self, dims: Dims) -> Result<Descriptor, crate::DimsError> {
        self.set_dims(dims)?;
        Ok(self)
    }

    /// States the first compute point.
    ///
    /// # Errors
    /// [`LayoutError`] if there is not one entry per dimension, or one lies outside the field.
    pub fn with_origin(mut self, origin: Box<[i64]>) -> Result<Descriptor, LayoutError> {
        self.set_origin(origin)?;
        Ok(self)
    }

    /// States the ghost widths, each 0 or more and together at most the extent.
    ///
    /// # Errors
    /// [`LayoutError`] otherwise.
    pub fn with_halo(mut self, halo: Box<[(i64, i64)]>) -> Result<Descriptor, LayoutError> {
        self.set_halo(halo)?;
        Ok(self)
    }

    /// As [`Descriptor::with_dims`], in place.
    pub(crate) fn set_dims(&mut self, dims: Dims) -> Result<(), crate::DimsError> {
        dims.check_len(self.ndim())?;
        self.labels.get_or_insert_default().dims = Some(dims);
        Ok(())
    }

    /// As [`Descriptor::with_origin`], in place.
    pub(crate) fn set_origin(&mut self, origin: Box<[i64]>) -> Result<(), LayoutError> {
        check_origin(&origin, self.shape())?;
        self.labels.get_or_insert_default().origin = Some(origin);
        Ok(())
    }

    /// As [`Descriptor::with_halo`], in place.
    pub(crate) fn set_halo(&mut self, halo: Box<[(i64, i64)]>) -> Result<(), LayoutError> {
        check_halo(&halo, self.shape())?;
        self.labels.get_or_insert_default().halo = Some(halo);
        Ok(())
    }

    /// In place a description of no field.
    #[cfg(feature = "python")]
    pub(crate) fn clear(&mut self) {
        self.ptr = std::ptr::null_mut();
        self.numbers.room(1).0[0] = 0;
        self.labels = None;
    }

    /// Says whether the memory must not be written.
    pub(crate) fn set_readonly(&mut self, readonly: bool) {
        self.readonly = readonly;
    }

    /// The same memory, not to be written.
    #[must_use]
    pub fn into_readonly(self) -> Descriptor {
        Descriptor { readonly: true, ..self }
    }

    /// The same memory, to be written on the caller's word that this is allowed.
    #[must_use]
    pub fn into_writable(self) -> Descriptor {
        Descriptor { readonly: false, ..self }
    }

    /// Address of the element at index 0; may be null if there are no elements.
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// Where the memory is.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether the memory must not be written.
    pub fn is_readonly(&self) -> bool {
        self.readonly
    }

    /// Extents, in index order.
    pub fn shape(&self) -> &[i64] {
        self.numbers.split().0
    }

    /// Steps between neighbours in elements, in index order.
    pub fn strides(&self) -> &[i64] {
        self.numbers.split().1
    }

    /// Steps between neighbours in bytes, in index order.
    pub fn byte_strides(&self) -> impl Iterator<Item = i64> + '_ {
        let itemsize = i64::try_from(self.itemsize()).unwrap_or(i64::MAX);
        // The constructor has seen to it that these fit.
        self.strides().iter().map(move |stride| stride.wrapping_mul(itemsize))
    }

    /// Labels, if somebody stated them.
    pub fn dims(&self) -> Option<&Dims> {
        self.labels.as_ref()?.dims.as_ref()
    }

    /// First compute point, if somebody stated it.
    pub fn origin(&self) -> Option<&[i64]> {
        self.labels.as_ref()?.origin.as_deref()
    }

    /// Ghost widths, if somebody stated them.
    pub fn halo(&self) -> Option<&[(i64, i64)]> {
        self.labels.as_ref()?.halo.as_deref()
    }

    /// Number of dimensions.
    pub fn ndim(&self) -> usize {
        self.numbers.ndim
    }

    /// Number of elements.
    pub fn size(&self) -> i64 {
        if self.shape().contains(&0) {
            return 0;
        }
        self.shape().iter().fold(1, |size: i64, extent| size.saturating_mul(*extent))
    }

    /// Bytes of one element.
    pub fn itemsize(&self) -> usize {
        self.dtype.itemsize()
    }

    /// Bytes of all elements, without what lies between them.
    pub fn nbytes(&self) -> i64 {
        self.size().saturating_mul(i64::try_from(self.itemsize()).unwrap_or(i64::MAX))
    }

    /// The largest power of two that divides the address: what a kernel may rely on. At most 2**62.
    pub fn alignment(&self) -> u64 {
        1 << self.ptr.addr().trailing_zeros().min(62)
    }

    /// The order of the strides.
    pub fn layout(&self) -> Layout {
        Layout::of_strides(self.shape(), self.strides())
    }

    /// Whether the elements follow each other without gaps, last index fastest.
    pub fn is_c_contiguous(&self) -> bool {
        is_contiguous(self.shape(), self.strides(), 0..self.ndim())
    }

    /// Whether the elements follow each other without gaps, first index fastest.
    pub fn is_f_contiguous(&self) -> bool {
        is_contiguous(self.shape(), self.strides(), (0..self.ndim()).rev())
    }

    /// The bytes the elements touch, relative to [`Descriptor::ptr`]; `None` if there are no elements.
    pub fn byte_span(&self) -> Option<(i128, i128)> {
        byte_span(self.shape(), self.strides(), self.itemsize())
    }
}
