//! The whole memory block of a field, as a field of one dimension.

use super::Tensor;
use crate::descriptor::Descriptor;
use crate::error::{ExchangeError, ExchangeErrorKind, Result, Tuple};
use crate::layout::{Extents, Padding, Promise, is_unshared};

impl Tensor {
    /// Returns the memory block of the field as a contiguous field of one dimension, on the same memory: what MPI, checksums and
    /// object stores need. It has the field's element type, and is read-only if the field is.
    ///
    /// Of memory that dlfield allocated these are all elements of the allocation, padding included, also for a
    /// part of it: all views of an allocation have the same block. Of other memory it is what lies between the first and the last
    /// element of this field, if the elements fill it: dimensions may be in any order, and strides negative.
    ///
    /// # Errors
    /// [`ExchangeError`] for memory that others allocated, with gaps between the elements, or shared elements.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Index, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[3, 5], DType::F64).alignment_size(64)).unwrap();
    /// let block = field.block().unwrap();
    /// assert_eq!((block.descriptor().shape(), block.descriptor().strides()), (&[3 * 8][..], &[1][..]));
    /// let row = field.view(&[Index::At(1)]).unwrap();
    /// assert_eq!(row.block().unwrap().descriptor().ptr(), block.descriptor().ptr());
    /// ```
    pub fn block(&self) -> Result<Tensor> {
        let from = &self.descriptor;
        let (start, bytes) = match self.allocated_range() {
            Some(range) => range,
            None => self.filled_range()?,
        };
        let size = i64::try_from(bytes / from.itemsize()).unwrap_or(i64::MAX);
        let descriptor = Descriptor::new(start, from.device(), from.dtype(), from.is_readonly(), &[size], &[1])?;
        let promise = Promise {
            layout: None,
            padding: Padding::None,
            alignment_size: self.remaining_alignment(&descriptor, &Extents::from_elem(0, 1)),
            aligned_index: None,
        };
        // The elements are in the allocation, or are those of this field, which the owner keeps.
        Ok(Tensor { descriptor, owner: self.owner.clone(), promise, is_whole: false })
    }

    /// Returns the address and the bytes of dlfield's allocation, from its first whole element on; `None` for memory of others.
    fn allocated_range(&self) -> Option<(*mut u8, usize)> {
        let (start, bytes) = self.owner.block()?;
        let (low, high) =
            if self.descriptor.size() == 0 { (start.addr(), start.addr()) } else { self.descriptor.reach() };
        if low < start.addr() || high > start.addr() + bytes {
            // An array of another library that reaches past the memory, as no view here does.
            return None;
        }
        // Only a view with another element type may begin in the middle of an element.
        let itemsize = self.descriptor.itemsize();
        let first = self.descriptor.ptr().addr().wrapping_sub(start.addr()) % itemsize;
        Some((start.wrapping_add(first), bytes.saturating_sub(first)))
    }

    /// Returns the address of the lowest element and the bytes of all elements, if these have neither gaps nor bytes in common.
    pub(super) fn filled_range(&self) -> Result<(*mut u8, usize), ExchangeError> {
        let from = &self.descriptor;
        let Some((low, high)) = from.byte_span() else { return Ok((from.ptr(), 0)) };
        let is_filled = high - low == i128::from(from.nbytes()) && is_unshared(from.shape(), from.strides());
        match (isize::try_from(low), usize::try_from(high - low)) {
            (Ok(low), Ok(bytes)) if is_filled => Ok((from.ptr().wrapping_offset(low), bytes)),
            _ => {
                let (elements, span) = (from.nbytes(), high - low);
                let (shape, strides) = (Tuple(from.shape()), Tuple(from.strides()));
                let expected = "elements that fill the memory once, or an allocation of dlfield";
                let got = format_args!(
                    "elements of {elements} bytes, shape {shape} and strides {strides} in {span} bytes of memory"
                );
                Err(ExchangeError::new("block", &expected, &got)
                    .with_fix(&"pass a copy")
                    .with_kind(ExchangeErrorKind::NeedsCopy))
            }
        }
    }
}
