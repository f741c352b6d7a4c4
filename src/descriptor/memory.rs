//! The memory of a field: alignment, stride order, byte span, write access and overlap.

use super::Descriptor;
use crate::error::{ExchangeError, ExchangeErrorKind};
use crate::layout::{Layout, Strided, byte_span, is_contiguous, overlap};

impl Descriptor {
    /// Returns the address of the first point to compute: the element at the origin, or without one after the lower halo.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 1), (2, 0)])).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.domain_ptr().addr() - field.ptr().addr(), (1 * 5 + 2) * 8);
    /// ```
    pub fn domain_ptr(&self) -> *mut u8 {
        let start = |axis: usize| match (self.origin(), self.halo()) {
            (Some(origin), _) => origin[axis],
            (None, Some(halo)) => halo[axis].0,
            (None, None) => 0,
        };
        let steps = self.byte_strides().enumerate().map(|(axis, stride)| start(axis).wrapping_mul(stride));
        self.ptr().wrapping_offset(isize::try_from(steps.fold(0, i64::wrapping_add)).unwrap_or(0))
    }

    /// Returns the largest power of two, in bytes, that divides the address: the alignment a kernel may rely on. At most 2**62.
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

    /// Returns the order of the strides.
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

    /// Returns whether the elements follow each other without gaps, last index fastest.
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

    /// Returns whether the elements follow each other without gaps, first index fastest.
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

    /// Returns the bytes that the elements occupy, relative to [`Descriptor::ptr`]: the lowest, and one past the highest.
    /// `None` if there are no elements.
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

    /// Returns whether the elements of both fields have a byte in common, so that writing to one may change the other.
    ///
    /// The answer is exact, except for fields with many unrelated strides, where it is `true`. Fields on
    /// devices that do not share addresses never overlap.
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

    /// Rejects read-only memory, with `field` as its name in the error, and elements that share memory with each other.
    pub(crate) fn check_writable(&self, field: &'static str) -> crate::Result<()> {
        if self.readonly {
            return Err(read_only(field, "it is written, so pass an array that may be written").into());
        }
        if self.is_c_contiguous() || crate::layout::is_unshared(self.shape(), self.strides()) {
            return Ok(());
        }
        Err(crate::layout::shared_elements(self.shape(), self.strides()).into())
    }

    /// Returns the lowest address of the elements and one past the highest; any two if there are no elements.
    #[inline]
    pub(crate) fn reach(&self) -> (usize, usize) {
        // All addresses of elements are in the address space, so nothing overflows for a field that has elements.
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

/// Returns the error for read-only memory that is to be written, or that a format cannot express.
#[cold]
pub(crate) fn read_only(argument: &str, fix: &str) -> ExchangeError {
    ExchangeError::from_sentence(argument, &"the memory is read-only")
        .with_fix(&fix)
        .with_kind(ExchangeErrorKind::ReadOnly)
}
