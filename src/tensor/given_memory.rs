//! Lays fields into memory that the caller passes, by `buffer=`.

#![allow(unsafe_code, reason = "the caller states what the memory is")]

use super::{Owner, Tensor};
use crate::descriptor::Descriptor;
use crate::dtype::DType;
use crate::error::{LayoutError, LayoutErrorKind, Result};
use crate::layout::{Promise, Spec, lcm};
use crate::memory::Contents;

impl Tensor {
    /// As [`Tensor::empty`] or [`Tensor::zeros`], in place and in memory that exists, which `owner` keeps: `bytes` from `start`
    /// on. The field begins at the first address at which its aligned index is aligned. Zeros are written to the field and its
    /// padding, and nowhere else.
    ///
    /// # Errors
    /// As for [`Spec::place`]; [`LayoutError`] for too little memory; those of [`Tensor::fill`] for zeros. The tensor is of no use
    /// then.
    ///
    /// # Safety
    /// - The memory is on the device of `spec`, and readable and writable for as long as `owner` lives.
    /// - The owner is not one of a block of this crate that safe code reads, unless it is marked as exported.
    /// - No other code reads or writes the memory meanwhile; on a device, until its current stream has finished the work.
    pub(crate) unsafe fn place_in(
        &mut self,
        spec: &Spec,
        start: *mut u8,
        bytes: usize,
        owner: Owner,
        contents: Contents,
    ) -> Result<()> {
        // Not as `allocate_in_place` does: what that calls is compiled into it as long as nothing else calls it.
        let placed = spec.place()?;
        // The layout counts from a block that starts at a multiple of the alignment, which this memory need not do.
        let wanted = placed.block_bytes.saturating_sub(placed.first_byte);
        let itemsize = i64::try_from(spec.dtype().itemsize()).unwrap_or(i64::MAX);
        let alignment = lcm(placed.alignment_size, itemsize).and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(1);
        let (first, address) = (placed.first_byte % alignment, start.addr() % alignment);
        let skipped = if first >= address { first - address } else { first + (alignment - address) };
        // A field without elements needs no memory, so it fits anywhere.
        let skipped = if wanted == 0 && skipped > bytes { 0 } else { skipped };
        match skipped.checked_add(wanted) {
            Some(needed) if needed <= bytes => {}
            needed => {
                let missing = needed.map_or(usize::MAX, |needed| needed - bytes);
                let expected = format_args!("{wanted} bytes behind {skipped} that align the field to {alignment}");
                let got = format_args!("{bytes}: {missing} are missing");
                return Err(LayoutError::new("buffer", &expected, &got).with_kind(LayoutErrorKind::TooLarge).into());
            }
        }
        let start = start.wrapping_add(skipped);
        if contents == Contents::Zeros && wanted > 0 {
            let all = [i64::try_from(wanted).unwrap_or(i64::MAX)];
            let all = Descriptor::new(start, placed.device, DType::U8, false, &all, &[1])?;
            // SAFETY: bytes of the caller's memory, which no other code uses meanwhile.
            unsafe { Tensor::from_parts(all, owner.clone()).fill_bytes(&[0]) }?;
        }
        // The block of the field is its part of the memory; the padding may be pickled only after a copy, as it may hold
        // anything: so the field is not said to be whole.
        let owner = owner.with_block(start, wanted);
        let field = Descriptor::new(start, placed.device, placed.dtype, false, &placed.shape, &placed.strides)?;
        *self = Tensor { descriptor: field, owner, promise: Promise::NONE, is_whole: false };
        self.promise.layout = Some(placed.layout);
        self.promise.padding = placed.padding;
        self.promise.alignment_size = placed.alignment_size;
        self.promise.aligned_index = placed.aligned_index;
        self.relabel(placed.metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places a field at an offset in a block that starts at a multiple of 64 bytes, and returns it with its distance from
    /// there, or the bytes that are missing.
    fn placed(spec: &Spec, offset: usize, bytes: usize, contents: Contents) -> Result<(Tensor, usize), usize> {
        let room = i64::try_from(offset + bytes).expect("small");
        let block = Tensor::full(&Spec::new(&[room], DType::U8), 0xA5u8).expect("small");
        let mut made = Tensor::BLANK;
        let start = block.descriptor().ptr().wrapping_add(offset);
        // SAFETY: inside the block, which the owner keeps and nobody else uses.
        match unsafe { made.place_in(spec, start, bytes, block.owner().clone(), contents) } {
            Ok(()) => {
                let distance = made.descriptor().ptr().addr() - start.addr();
                Ok((made, distance))
            }
            Err(error) => {
                let message = error.to_string();
                let missing = message.rsplit_once(": ").and_then(|(_, text)| text.strip_suffix(" are missing"));
                // Not a number of bytes that any test expects.
                Err(missing.and_then(|number| number.parse().ok()).unwrap_or(usize::MAX))
            }
        }
    }

    #[test]
    fn fields_start_at_the_first_aligned_address() {
        let spec = Spec::new(&[3, 5], DType::F64);
        assert_eq!(placed(&spec, 0, 120, Contents::Undefined).map(|made| made.1), Ok(0));
        assert_eq!(placed(&spec, 4, 124, Contents::Undefined).map(|made| made.1), Ok(4));
        assert_eq!(placed(&spec, 4, 123, Contents::Undefined).map(|made| made.1), Err(1));
        let aligned = spec.alignment_size(64).aligned_index(&[0, 1]);
        let (made, distance) = placed(&aligned, 8, 56 + 192, Contents::Zeros).expect("room");
        assert_eq!((distance, made.descriptor().strides(), made.alignment_size()), (48, &[8, 1][..], 64));
        assert_eq!(made.aligned_index(), [0, 1]);
        assert_eq!(placed(&aligned, 8, 48 + 191, Contents::Zeros).map(|made| made.1), Err(1));
    }

    #[test]
    fn zeros_are_written_to_the_padding_and_nowhere_else() {
        let spec = Spec::new(&[3, 5], DType::F32).alignment_size(32);
        let (made, distance) = placed(&spec, 4, 28 + 96 + 7, Contents::Zeros).expect("room");
        assert_eq!(distance, 28);
        // SAFETY: bytes of the block, which only this test uses.
        let around = unsafe { std::slice::from_raw_parts(made.descriptor().ptr().wrapping_sub(28), 28 + 96 + 7) };
        let is_zero: Vec<bool> = around.iter().map(|byte| *byte == 0).collect();
        assert!(is_zero[28..28 + 96].iter().all(|zero| *zero));
        assert!(!is_zero[..28].iter().chain(&is_zero[28 + 96..]).any(|zero| *zero));
    }

    #[test]
    fn fields_without_elements_fit_anywhere() {
        let spec = Spec::new(&[3, 0], DType::F64).alignment_size(64);
        for (offset, bytes) in [(0, 0), (1, 0), (1, 8), (1, 63)] {
            assert!(placed(&spec, offset, bytes, Contents::Zeros).is_ok(), "{bytes} bytes at {offset}");
        }
    }
}
