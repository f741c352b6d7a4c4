//! Fields as bytes: the memory that a pickle passes on as it lies, and fields on memory that one brings.

#![allow(unsafe_code, reason = "bytes are reached through their address")]

use super::{Owner, Tensor};
use crate::copy;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{ExchangeError, Result};
use crate::layout::{Promise, alignment_too_large, is_unshared, lcm, offset, shared_elements};
use crate::memory::Contents;
use crate::protocol::array_interface::outside_buffer;

/// New blocks for bytes start at a multiple of this, as those of other fields on the host.
const BLOCK_ALIGNMENT: i64 = 64;

/// Where the elements of a field are in a range of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    /// Bytes from the start of the range to the element at index 0.
    pub offset: i64,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: &'a [i64],
    /// Strides in elements.
    pub strides: &'a [i64],
    /// Whether no other field has elements in the range.
    pub is_whole: bool,
}

impl Tensor {
    /// Returns the bytes with all elements of this field and none of others', as they lie, and the number of bytes before the
    /// element at index 0. `None` if elements of other fields may lie between.
    ///
    /// Of an allocation all bytes, and those that belong to no element are made zero: they may hold what other programs must not
    /// see. Else what the elements fill.
    ///
    /// # Errors
    /// As for [`Descriptor::new`].
    ///
    /// # Safety
    /// - The memory is the host's, and no device writes to it. No other code reads or writes the padding meanwhile.
    pub(crate) unsafe fn own_bytes(&self) -> Result<Option<(Tensor, i64)>> {
        let from = &self.descriptor;
        let (start, bytes) = match (from.byte_span(), self.owner.block()) {
            (None, _) => (from.ptr(), 0),
            (Some((low, high)), Some((start, bytes))) if self.is_whole => {
                if self.owner.is_allocated() {
                    let first = isize::try_from(low).map_or(from.ptr(), |low| from.ptr().wrapping_offset(low));
                    let end = start.wrapping_add(bytes);
                    let last = first.wrapping_offset(isize::try_from(high - low).unwrap_or(0));
                    debug_assert!(start <= first && last <= end, "the elements are in the block");
                    // SAFETY: all elements of the allocation are this field's, so the rest of its bytes are padding, which the
                    // caller vouches for.
                    unsafe {
                        start.write_bytes(0, first.addr() - start.addr());
                        clear_gaps(first, &steps(from), from.itemsize(), end);
                    }
                }
                (start, bytes)
            }
            (Some(_), _) => match self.filled_range() {
                Ok(range) => range,
                Err(_) => return Ok(None),
            },
        };
        let before = from.ptr().addr().wrapping_sub(start.addr()).cast_signed();
        let mut bytes = bytes_at(start, bytes)?;
        bytes.set_readonly(from.is_readonly());
        // SAFETY: the bytes are of the memory that the owner keeps.
        let bytes = unsafe { Tensor::from_parts(bytes, self.owner.clone()) };
        Ok(Some((bytes, i64::try_from(before).unwrap_or(0))))
    }

    /// Returns the address and the bytes of the block of which this field is a part; `None` if it is not known.
    pub(crate) fn block_range(&self) -> Option<(*mut u8, usize)> {
        self.owner.block()
    }

    /// Returns whether these are all elements of the block.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns the field whose elements lie in a field of bytes as `placement` says, which may come from anywhere:
    /// each number is checked. It is read-only if the bytes are.
    ///
    /// # Errors
    /// [`ExchangeError`] or [`LayoutError`] naming the number at fault.
    ///
    /// # Safety
    /// - If `placement` says so, no elements of other fields are between the bytes.
    pub(crate) unsafe fn on_bytes(bytes: &Tensor, placement: Placement<'_>) -> Result<Tensor> {
        let Placement { offset, dtype, shape, strides, is_whole } = placement;
        let (start, len) = (bytes.descriptor.ptr(), bytes.descriptor.nbytes());
        let (device, readonly) = (bytes.descriptor.device(), bytes.descriptor.is_readonly());
        // Of numbers that are wrong, this may be any address; the elements are compared with the bytes before it is used.
        let ptr = start.wrapping_offset(isize::try_from(offset).unwrap_or(isize::MAX));
        let mut descriptor = Descriptor::new(ptr, device, dtype, readonly, shape, strides)?;
        let len = usize::try_from(len).unwrap_or(0);
        match descriptor.byte_span() {
            None => descriptor = Descriptor::new(start, device, dtype, readonly, shape, strides)?,
            Some((low, high)) => {
                let (low, high) = (i128::from(offset) + low, i128::from(offset) + high);
                if low < 0 || i128::try_from(len).unwrap_or(i128::MAX) < high {
                    return Err(outside_buffer("state", low, high, len).into());
                }
            }
        }
        if !is_unshared(shape, strides) {
            return Err(shared_elements(shape, strides).into());
        }
        // SAFETY: the elements are inside the bytes, which their owner keeps.
        let mut field = unsafe { Tensor::from_parts(descriptor, bytes.owner.clone().with_block(start, len)) };
        field.is_whole = is_whole;
        Ok(field)
    }

    /// As [`Tensor::on_bytes`], on a copy of the bytes with the alignment that `promise` states.
    ///
    /// # Errors
    /// As for [`Tensor::on_bytes`]; [`crate::MemoryError`].
    ///
    /// # Safety
    /// - As for [`Tensor::copy_of_shared`].
    pub(crate) unsafe fn copy_of_bytes(bytes: &Tensor, placement: Placement<'_>, promise: &Promise) -> Result<Tensor> {
        // Checked before memory is allocated.
        // SAFETY: the field is dropped at once; nothing is read or written through it.
        drop(unsafe { Tensor::on_bytes(bytes, placement) }?);
        let itemsize = i64::try_from(placement.dtype.itemsize()).unwrap_or(i64::MAX);
        let too_wide = || alignment_too_large(promise.alignment_size, placement.dtype.itemsize());
        let alignment = promise.alignment_size.max(1);
        let index = promise.aligned_index.as_deref().unwrap_or(&[]);
        let aligned = offset(index, placement.strides, itemsize).and_then(|at| at.checked_add(placement.offset));
        // None for the bytes of an allocation, which start at a multiple of the alignment.
        let before = (-aligned.ok_or_else(too_wide)?).rem_euclid(alignment);
        let all = bytes.descriptor.nbytes().checked_add(before);
        let alignment = lcm(alignment, BLOCK_ALIGNMENT);
        let fits = all.zip(alignment).is_some_and(|(all, alignment)| all.checked_add(alignment).is_some());
        let sized = |number: Option<i64>| number.filter(|_| fits).and_then(|number| usize::try_from(number).ok());
        let (all, alignment) = (sized(all).ok_or_else(too_wide)?, sized(alignment).ok_or_else(too_wide)?);
        let (owner, block) = Owner::allocate(Device::CPU, all, alignment, Contents::Undefined)?;
        let before = sized(Some(before)).ok_or_else(too_wide)?;
        // SAFETY: the block has room for both parts, and nobody else has it; the caller vouches for the source.
        unsafe {
            block.write_bytes(0, before);
            let copied = bytes_at(block.wrapping_add(before), all - before)?;
            copy::copy(&copied, &bytes.descriptor)?;
            Tensor::on_bytes(&Tensor::from_parts(copied, owner), placement)
        }
    }
}

/// Returns a description of bytes on the host.
fn bytes_at(start: *mut u8, bytes: usize) -> Result<Descriptor, ExchangeError> {
    Descriptor::new(start, Device::CPU, DType::U8, false, &[i64::try_from(bytes).unwrap_or(i64::MAX)], &[1])
}

/// Extents and distances in bytes of the dimensions that lead to other elements, the largest distance first.
fn steps(descriptor: &Descriptor) -> Vec<(usize, usize)> {
    let steps = descriptor.shape().iter().zip(descriptor.byte_strides()).filter(|(extent, _)| **extent != 1);
    let sized = |extent: i64| usize::try_from(extent).unwrap_or(0);
    let mut steps: Vec<_> =
        steps.map(|(extent, step)| (sized(*extent), usize::try_from(step.unsigned_abs()).unwrap_or(0))).collect();
    steps.sort_unstable_by_key(|(_, step)| std::cmp::Reverse(*step));
    steps
}

/// Makes all bytes from `start` to `end` zero that belong to no element. The first element is at `start`.
///
/// # Safety
/// - The memory between is one allocation that may be written. Each step reaches past all elements of the smaller ones.
unsafe fn clear_gaps(start: *mut u8, steps: &[(usize, usize)], itemsize: usize, end: *mut u8) {
    let mut run = itemsize;
    let mut outer = steps;
    while let Some(((extent, step), rest)) = outer.split_last().filter(|((_, step), _)| *step == run) {
        run = extent * step;
        outer = rest;
    }
    // SAFETY: passed on from the caller.
    unsafe { clear_between(start, outer, run, end) };
}

/// As [`clear_gaps`], for contiguous elements of `run` bytes, and steps with gaps between.
///
/// # Safety
/// - As for [`clear_gaps`].
unsafe fn clear_between(start: *mut u8, steps: &[(usize, usize)], run: usize, end: *mut u8) {
    let Some(((extent, step), inner)) = steps.split_first() else {
        let gap = start.wrapping_add(run);
        // SAFETY: the run is inside, by the contract of `clear_gaps`, so the gap is too.
        unsafe { gap.write_bytes(0, end.addr() - gap.addr()) };
        return;
    };
    for at in 0..*extent {
        let next = start.wrapping_add((at + 1) * step);
        // SAFETY: what is between two steps, or after the last one, is inside.
        unsafe { clear_between(start.wrapping_add(at * step), inner, run, if at + 1 == *extent { end } else { next }) };
    }
}
