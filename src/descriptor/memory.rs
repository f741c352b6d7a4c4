//! What a field's memory is like: its order, its reach, whether it may be written, and what it shares.

use super::Descriptor;
use crate::error::Result;
use crate::layout::{Layout, LayoutError, Strided, byte_span, is_contiguous, is_unshared, overlap};
use crate::protocol::ExchangeError;

impl Descriptor {
    /// The largest power of two that divides the address: what a kernel may rely on. At most 2**62.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert!(field.alignment() >= 64);
    /// ```
    pub fn alignment(&self) -> u64 {
        1 << self.ptr.addr().trailing_zeros().min(62)
    }

    /// The order of the strides.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.layout().to_vec(), [0, 1]);
    /// ```
    pub fn layout(&self) -> Layout {
        Layout::of_strides(self.shape(), self.strides())
    }

    /// Whether the elements follow each other without gaps, last index fastest.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert!(field.is_c_contiguous());
    /// ```
    pub fn is_c_contiguous(&self) -> bool {
        is_contiguous(self.shape(), self.strides(), 0..self.ndim())
    }

    /// Whether the elements follow each other without gaps, first index fastest.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert!(!field.is_f_contiguous());
    /// ```
    pub fn is_f_contiguous(&self) -> bool {
        is_contiguous(self.shape(), self.strides(), (0..self.ndim()).rev())
    }

    /// The bytes the elements touch, relative to [`Descriptor::ptr`]; `None` if there are no elements.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.byte_span(), Some((0, 160)));
    /// ```
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

    /// Refuses memory that may not be written, named by `field`, and elements of which one is written with another.
    pub(crate) fn check_writable(&self, field: &'static str) -> Result<()> {
        if self.readonly {
            let fix = "it is written, so pass an array that may be written";
            return Err(ExchangeError::ReadOnly { field, fix }.into());
        }
        if self.is_c_contiguous() || is_unshared(self.shape(), self.strides()) {
            return Ok(());
        }
        Err(LayoutError::SharedElements { shape: self.shape().to_vec(), strides: self.strides().to_vec() }.into())
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
