//! A field in memory, checked: what every protocol is turned into and made from.

mod check;
mod halo_override;
mod memory;
mod metadata;
mod numbers;
mod stated_metadata;

use std::sync::{Arc, OnceLock};

use self::halo_override::HaloOverride;
pub(crate) use self::metadata::Metadata;
use self::numbers::Numbers;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::protocol::ExchangeError;

/// Address, device, element type, shape and strides of a field, and what is known of its labels.
///
/// Having one is the proof that these fit together: at most [`crate::layout::MAX_NDIM`] dimensions, no negative extent, as many
/// strides as extents, every element's address inside the address space, every stride a 64-bit number of bytes, and
/// no null address unless there are no elements. It says nothing about who owns the memory; see [`crate::Tensor`].
#[derive(Debug)]
pub struct Descriptor {
    ptr: *mut u8,
    device: Device,
    dtype: DType,
    readonly: bool,
    numbers: Numbers,
    // Shared: most arrays of other libraries have none, those of one signature all the same.
    labels: Option<Arc<Metadata>>,
    /// What was stated since, through a shared reference: it counts instead.
    halo_override: OnceLock<Box<HaloOverride>>,
}

impl Clone for Descriptor {
    fn clone(&self) -> Descriptor {
        let Descriptor { ptr, device, dtype, readonly, ref numbers, .. } = *self;
        let (numbers, labels) = (numbers.clone(), self.stated().cloned());
        Descriptor { ptr, device, dtype, readonly, numbers, labels, halo_override: OnceLock::new() }
    }
}

// SAFETY: a descriptor holds an address and never follows it; whoever does answers for the access.
#[allow(unsafe_code, reason = "an address may travel between threads")]
unsafe impl Send for Descriptor {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "an address may travel between threads")]
unsafe impl Sync for Descriptor {}

impl Descriptor {
    /// Of no field: no elements, nowhere.
    #[allow(clippy::declare_interior_mutable_const, reason = "each use is a description of its own")]
    pub(crate) const BLANK: Descriptor = Descriptor {
        ptr: std::ptr::null_mut(),
        device: Device::CPU,
        dtype: DType::U8,
        readonly: true,
        numbers: Numbers::NONE,
        labels: None,
        halo_override: OnceLock::new(),
    };

    /// Checks that the parts fit together. `strides` count elements.
    ///
    /// A stride that means nothing (of an extent of 1, or of a field without elements) and cannot be told in bytes is
    /// replaced by 1.
    ///
    /// # Errors
    /// [`ExchangeError`] naming the part at fault.
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

    /// As [`Descriptor::new`], with strides in bytes, each a multiple of the element size where it means something.
    ///
    /// # Errors
    /// [`ExchangeError::PartialStride`], and as for [`Descriptor::new`].
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

    /// In place a description of no field.
    #[cfg(feature = "python")]
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.ptr = std::ptr::null_mut();
        self.numbers.room(1).0[0] = 0;
        self.set_labels(None);
    }

    /// Says whether the memory must not be written.
    pub(crate) fn set_readonly(&mut self, readonly: bool) {
        self.readonly = readonly;
    }

    /// The same memory, not to be written.
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

    /// The same memory under the name of another device that reaches it.
    pub(crate) fn on(self, device: Device) -> Descriptor {
        Descriptor { device, ..self }
    }

    /// The same memory, to be written on the caller's word that this is allowed.
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

    /// Address of the element at index 0; may be null if there are no elements.
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

    /// Where the memory is.
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

    /// Element type.
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

    /// Whether the memory must not be written.
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

    /// Extents, in index order.
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

    /// Steps between neighbours in elements, in index order.
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

    /// Steps between neighbours in bytes, in index order.
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
        // The constructor has seen to it that these fit.
        self.strides().iter().map(move |stride| stride.wrapping_mul(itemsize))
    }

    /// Number of dimensions.
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

    /// Number of elements.
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

    /// Bytes of one element.
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

    /// Bytes of all elements, without what lies between them.
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
