//! A checked field in memory: every protocol imports to it and exports from it.

mod check;
mod halo_override;
mod memory;
mod metadata;
mod numbers;
mod spans;

use std::sync::{Arc, OnceLock};

pub(crate) use self::check::too_many_dims;
use self::halo_override::HaloOverride;
pub(crate) use self::memory::read_only;
use self::numbers::Numbers;
pub use self::spans::Spans;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{ExchangeError, Result};
use crate::layout::Metadata;

/// Address, device, element type, shape, strides and metadata of a field.
///
/// Every descriptor is valid: it has at most [`crate::layout::MAX_NDIM`] dimensions, no negative extent, as many strides as
/// extents, every element's address inside the address space but not in its first 64 KiB, and every stride a 64-bit number of
/// bytes; without elements the address may be any. It does not own the memory; see [`crate::Tensor`].
///
/// # Example
/// ```
/// use dlfield::{Descriptor, Device, DType};
/// let mut memory = [0.0f64; 12];
/// // The transposed of a field of shape (3, 4) in C order.
/// let field = Descriptor::new(memory.as_mut_ptr().cast(), Device::CPU, DType::F64, false, &[4, 3], &[1, 4]).unwrap();
/// assert!(field.is_f_contiguous());
/// assert!(format!("{field:?}").starts_with("Descriptor { shape: [4, 3], strides: [1, 4], dtype: DType(float64), device: Device(cpu)"));
/// ```
pub struct Descriptor {
    ptr: *mut u8,
    device: Device,
    dtype: DType,
    readonly: bool,
    numbers: Numbers,
    // Shared: most arrays of other libraries have none, and all arguments of one signature field have the same.
    metadata: Option<Arc<Metadata>>,
    /// The metadata that was set later, through a shared reference; it replaces `metadata`.
    halo_override: OnceLock<Box<HaloOverride>>,
}

impl Clone for Descriptor {
    fn clone(&self) -> Descriptor {
        let Descriptor { ptr, device, dtype, readonly, ref numbers, .. } = *self;
        let (numbers, metadata) = (numbers.clone(), self.share_metadata());
        Descriptor { ptr, device, dtype, readonly, numbers, metadata, halo_override: OnceLock::new() }
    }

    /// In place, because moving a descriptor takes longer than filling it.
    #[inline]
    fn clone_from(&mut self, source: &Descriptor) {
        (self.ptr, self.device, self.dtype, self.readonly) = (source.ptr, source.device, source.dtype, source.readonly);
        let (shape, strides) = self.numbers.room(source.ndim());
        shape.copy_from_slice(source.shape());
        strides.copy_from_slice(source.strides());
        self.set_metadata(source.share_metadata());
    }
}

// SAFETY: a descriptor stores an address and never dereferences it; code that does so proves its own access.
#[allow(unsafe_code, reason = "an address may travel between threads")]
unsafe impl Send for Descriptor {}
// SAFETY: a descriptor stores an address and never dereferences it; code that does so proves its own access.
#[allow(unsafe_code, reason = "an address may travel between threads")]
unsafe impl Sync for Descriptor {}

impl Descriptor {
    /// A descriptor without a field: a null address and no elements.
    #[allow(clippy::declare_interior_mutable_const, reason = "each use is a description of its own")]
    pub(crate) const BLANK: Descriptor = Descriptor {
        ptr: std::ptr::null_mut(),
        device: Device::CPU,
        dtype: DType::U8,
        readonly: true,
        numbers: Numbers::NONE,
        metadata: None,
        halo_override: OnceLock::new(),
    };

    /// Builds a descriptor after checking that its parts fit together.
    ///
    /// `ptr` is the address of the element at index 0, `shape` counts elements and so do `strides`. A stride that leads to no
    /// other element (of an extent of 1, or of a field without elements) and does not fit into 64 bits of bytes is replaced by
    /// 1.
    ///
    /// # Errors
    /// [`ExchangeError`] naming the part that breaks what [`Descriptor`] lists, or for 2**63 bytes or more.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Descriptor, Device};
    /// let mut memory = [1.0f64, 2.0, 3.0];
    /// let last = (&raw mut memory[2]).cast();
    /// let turned = Descriptor::new(last, Device::CPU, DType::F64, false, &[3], &[-1]).unwrap();
    /// assert_eq!(turned.byte_span(), Some((-16, 8)));
    /// assert!(Descriptor::new(last, Device::CPU, DType::F64, false, &[-3], &[1]).is_err());
    /// ```
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

    /// Builds a descriptor as [`Descriptor::new`] does, from strides in bytes.
    ///
    /// # Errors
    /// [`ExchangeError`] unless each stride that leads to another element is a multiple of the element size; the
    /// errors of [`Descriptor::new`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Descriptor, Device};
    /// let mut memory = [0i16; 6];
    /// let start = memory.as_mut_ptr().cast();
    /// let field = Descriptor::from_byte_strides(start, Device::CPU, DType::I16, true, &[2, 3], &[6, 2]).unwrap();
    /// assert_eq!(field.strides(), [3, 1]);
    /// ```
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

    /// As [`Descriptor::new`], in place: a new descriptor would be moved several times to its final address, which takes longer
    /// than making it. After an error the descriptor is blank.
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

    /// Makes this a descriptor without a field.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.ptr = std::ptr::null_mut();
        self.numbers.room(1).0[0] = 0;
        self.set_metadata(None);
    }

    /// Sets whether the memory is read-only.
    pub(crate) fn set_readonly(&mut self, readonly: bool) {
        self.readonly = readonly;
    }

    /// Returns a descriptor of the same memory that is read-only.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert!(field.clone().into_readonly().is_readonly());
    /// ```
    #[must_use]
    pub fn into_readonly(self) -> Descriptor {
        Descriptor { readonly: true, ..self }
    }

    /// Returns a descriptor of the same memory, named as another device that can access it.
    pub(crate) fn on(self, device: Device) -> Descriptor {
        Descriptor { device, ..self }
    }

    /// Returns a descriptor of the same memory that is writable; the caller guarantees that writing is allowed.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert!(!field.clone().into_readonly().into_writable().is_readonly());
    /// ```
    #[must_use]
    pub fn into_writable(self) -> Descriptor {
        Descriptor { readonly: false, ..self }
    }

    /// Returns the address of the element at index 0; may be null if there are no elements.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert!(field.ptr().addr().is_multiple_of(64));
    /// ```
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// Returns the device of the memory.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.device(), dlfield::Device::CPU);
    /// ```
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns the element type.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.dtype(), DType::F64);
    /// ```
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns whether the memory is read-only.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert!(!field.is_readonly());
    /// ```
    pub fn is_readonly(&self) -> bool {
        self.readonly
    }

    /// Returns the shape: the number of elements along each dimension, in index order.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.shape(), [4, 5]);
    /// ```
    pub fn shape(&self) -> &[i64] {
        self.numbers.split().0
    }

    /// Returns the strides in elements, in index order.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.strides(), [5, 1]);
    /// ```
    pub fn strides(&self) -> &[i64] {
        self.numbers.split().1
    }

    /// Returns the strides in bytes, in index order.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert!(field.byte_strides().eq([40, 8]));
    /// ```
    pub fn byte_strides(&self) -> impl Iterator<Item = i64> + '_ {
        let itemsize = i64::try_from(self.itemsize()).unwrap_or(i64::MAX);
        // The constructor has checked that these products fit.
        self.strides().iter().map(move |stride| stride.wrapping_mul(itemsize))
    }

    /// Returns the number of dimensions.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.ndim(), 2);
    /// ```
    pub fn ndim(&self) -> usize {
        self.numbers.ndim
    }

    /// Returns the number of elements.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.size(), 20);
    /// ```
    pub fn size(&self) -> i64 {
        if self.shape().contains(&0) {
            return 0;
        }
        self.shape().iter().fold(1, |size: i64, extent| size.saturating_mul(*extent))
    }

    /// Returns the bytes of one element.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.itemsize(), 8);
    /// ```
    pub fn itemsize(&self) -> usize {
        self.dtype.itemsize()
    }

    /// Returns the bytes of all elements, without the gaps between them.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.nbytes(), 160);
    /// ```
    pub fn nbytes(&self) -> i64 {
        self.size().saturating_mul(i64::try_from(self.itemsize()).unwrap_or(i64::MAX))
    }
}
