//! A field in memory, checked: what every protocol is turned into and made from.

mod check;
mod labels;
mod numbers;

use std::sync::Arc;

pub(crate) use self::labels::Labels;
use self::numbers::Numbers;
use crate::device::Device;
use crate::dtype::DType;
use crate::layout::{Layout, Strided, byte_span, is_contiguous, overlap};
use crate::protocol::ExchangeError;

/// Address, device, element type, shape and strides of a field, and what is known of its labels.
///
/// Having one is the proof that these fit together: at most [`crate::layout::MAX_NDIM`] dimensions, no negative extent, as many
/// strides as extents, every element's address inside the address space, every stride a 64-bit number of bytes, and
/// no null address unless there are no elements. It says nothing about who owns the memory; see [`crate::Tensor`].
#[derive(Clone, Debug)]
pub struct Descriptor {
    ptr: *mut u8,
    device: Device,
    dtype: DType,
    readonly: bool,
    numbers: Numbers,
    // Shared: most arrays of other libraries have none, those of one signature all the same.
    labels: Option<Arc<Labels>>,
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

    /// Whether any byte of an element is one of an element of `other`, too: what writes to the one may change the other.
    ///
    /// Exact but for fields that are strided in many unrelated ways, of which it is `true`; see [`overlap`]. Memory of
    /// devices that do not share their addresses is never the same.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Index, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[8], DType::F64)).unwrap();
    /// let every_other = |start| field.view(&[Index::Range { start, len: 4, step: 2 }]).unwrap();
    /// assert!(!every_other(0).descriptor().overlaps(every_other(1).descriptor()));
    /// assert!(every_other(0).descriptor().overlaps(field.descriptor()));
    /// ```
    pub fn overlaps(&self, other: &Descriptor) -> bool {
        self.device.shares_addresses(other.device) && overlap(&self.strided(), &other.strided())
    }

    /// Addresses of the first byte of an element, and of what comes after the last; any two if there are no elements.
    #[inline]
    pub(crate) fn reach(&self) -> (usize, usize) {
        // All addresses of elements are in the address space, so none of these numbers overflows where it means something.
        let itemsize = self.itemsize().cast_signed();
        let (mut low, mut high) = (0isize, itemsize);
        for (extent, stride) in self.shape().iter().zip(self.strides()) {
            let way = isize::try_from((extent - 1).wrapping_mul(*stride)).unwrap_or(0).wrapping_mul(itemsize);
            if way < 0 {
                low = low.wrapping_add(way);
            } else {
                high = high.wrapping_add(way);
            }
        }
        (self.ptr.addr().wrapping_add_signed(low), self.ptr.addr().wrapping_add_signed(high))
    }

    fn strided(&self) -> Strided<'_> {
        let (shape, strides) = self.numbers.split();
        Strided { address: self.ptr.addr(), shape, strides, itemsize: self.itemsize() }
    }
}
