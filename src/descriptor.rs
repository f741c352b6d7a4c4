//! A field in memory, checked: what every protocol is turned into and made from.

use crate::device::Device;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::layout::{Extents, Layout, LayoutError, MAX_NDIM, byte_span, check_halo, check_origin, is_contiguous};
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
    shape: Extents,
    strides: Extents,
    dims: Option<Dims>,
    // Boxed: most arrays of other libraries have neither, and descriptors are moved a lot.
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
        shape: Extents,
        mut strides: Extents,
    ) -> Result<Descriptor, ExchangeError> {
        if shape.len() > MAX_NDIM {
            return Err(ExchangeError::TooManyDims { got: shape.len() });
        }
        if shape.len() != strides.len() {
            return Err(ExchangeError::StridesLength { ndim: shape.len(), got: strides.len() });
        }
        if let Some(axis) = shape.iter().position(|extent| *extent < 0) {
            return Err(ExchangeError::NegativeExtent { axis, got: shape[axis] });
        }
        let itemsize = dtype.itemsize();
        let byte_size = i64::try_from(itemsize).unwrap_or(i64::MAX);
        let empty = shape.contains(&0);
        for (extent, stride) in shape.iter().zip(&mut strides) {
            if (empty || *extent == 1) && stride.checked_mul(byte_size).is_none() {
                *stride = 1;
            }
        }
        match byte_span(&shape, &strides, itemsize) {
            Some(_) if ptr.is_null() => return Err(ExchangeError::NullData),
            Some((low, high)) => {
                let address = i128::try_from(ptr.addr()).unwrap_or(i128::MAX);
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
        Ok(Descriptor { ptr, device, dtype, readonly, shape, strides, dims: None, origin: None, halo: None })
    }

    /// Checks that the parts fit together, as [`Descriptor::new`]; `byte_strides` count bytes.
    ///
    /// # Errors
    /// [`ExchangeError`] naming the part at fault.
    pub fn from_byte_strides(
        ptr: *mut u8,
        device: Device,
        dtype: DType,
        readonly: bool,
        shape: &[i64],
        byte_strides: &[i64],
    ) -> Result<Descriptor, ExchangeError> {
        let itemsize = dtype.itemsize();
        let shift = itemsize.trailing_zeros();
        let empty = shape.contains(&0);
        let mut strides = Extents::from_slice(byte_strides);
        for (axis, stride) in strides.iter_mut().enumerate() {
            let bytes = *stride;
            // The element size is a power of two: shifting divides, exactly where nothing is lost.
            *stride = bytes >> shift;
            if *stride << shift != bytes {
                if !empty && shape.get(axis) != Some(&1) {
                    return Err(ExchangeError::PartialStride { axis, got: bytes, itemsize });
                }
                *stride = 1;
            }
        }
        Descriptor::new(ptr, device, dtype, readonly, Extents::from_slice(shape), strides)
    }

    /// States the labels.
    ///
    /// # Errors
    /// [`crate::DimsError::Length`] if there is not one per dimension.
    pub fn with_dims(mut self, dims: Dims) -> Result<Descriptor, crate::DimsError> {
        dims.check_len(self.ndim())?;
        self.dims = Some(dims);
        Ok(self)
    }

    /// States the first compute point.
    ///
    /// # Errors
    /// [`LayoutError`] if there is not one entry per dimension, or one lies outside the field.
    pub fn with_origin(mut self, origin: Box<[i64]>) -> Result<Descriptor, LayoutError> {
        check_origin(&origin, &self.shape)?;
        self.origin = Some(origin);
        Ok(self)
    }

    /// States the ghost widths, each 0 or more and together at most the extent.
    ///
    /// # Errors
    /// [`LayoutError`] otherwise.
    pub fn with_halo(mut self, halo: Box<[(i64, i64)]>) -> Result<Descriptor, LayoutError> {
        check_halo(&halo, &self.shape)?;
        self.halo = Some(halo);
        Ok(self)
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
        &self.shape
    }

    /// Steps between neighbours in elements, in index order.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// Steps between neighbours in bytes, in index order.
    pub fn byte_strides(&self) -> impl Iterator<Item = i64> + '_ {
        let itemsize = i64::try_from(self.itemsize()).unwrap_or(i64::MAX);
        // The constructor has seen to it that these fit.
        self.strides.iter().map(move |stride| stride.wrapping_mul(itemsize))
    }

    /// Labels, if somebody stated them.
    pub fn dims(&self) -> Option<&Dims> {
        self.dims.as_ref()
    }

    /// First compute point, if somebody stated it.
    pub fn origin(&self) -> Option<&[i64]> {
        self.origin.as_deref()
    }

    /// Ghost widths, if somebody stated them.
    pub fn halo(&self) -> Option<&[(i64, i64)]> {
        self.halo.as_deref()
    }

    /// Number of dimensions.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    pub fn size(&self) -> i64 {
        if self.shape.contains(&0) {
            return 0;
        }
        self.shape.iter().fold(1, |size: i64, extent| size.saturating_mul(*extent))
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
        Layout::of_strides(&self.shape, &self.strides)
    }

    /// Whether the elements follow each other without gaps, last index fastest.
    pub fn is_c_contiguous(&self) -> bool {
        is_contiguous(&self.shape, &self.strides, 0..self.ndim())
    }

    /// Whether the elements follow each other without gaps, first index fastest.
    pub fn is_f_contiguous(&self) -> bool {
        is_contiguous(&self.shape, &self.strides, (0..self.ndim()).rev())
    }

    /// The bytes the elements touch, relative to [`Descriptor::ptr`]; `None` if there are no elements.
    pub fn byte_span(&self) -> Option<(i128, i128)> {
        byte_span(&self.shape, &self.strides, self.itemsize())
    }
}
