//! The checks of a descriptor: whether its parts fit together.

use super::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Count, ExchangeError, Tuple};
use crate::layout::{MAX_NDIM, byte_span};

/// No memory lies below: systems leave the first pages out, so that an offset from NULL is found.
const LOWEST: usize = 1 << 16;

impl Descriptor {
    /// Fills all parts and checks them. `strides` are in units of `1 / 2**shift` elements: elements for 0, bytes for the binary
    /// logarithm of the element size. That size is a power of two, so shifting right divides, exactly if no bit that is set is
    /// shifted out.
    #[allow(clippy::too_many_arguments, reason = "a description has this many parts, and the unit of the strides")]
    #[inline(always)]
    pub(super) fn fill(
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
        // Fast path: a field that has elements, and whose numbers are all far below 64 bits, is valid. Other fields may be valid
        // too. `|` collects the bits of all numbers, so that one comparison after the loop finds any that is too large, or
        // negative. Until there is one, no product wraps: its factors are below 2**32 and 2**31.
        let (mut numbers, mut products, mut lost) = (0u64, 0u64, 0i64);
        let (mut reach, mut count) = (0u64, 1u64);
        // The bits of a stride that is not a whole number of elements.
        let partial = (1i64 << shift) - 1;
        for ((extent, step), (from_shape, from_strides)) in extents.iter_mut().zip(steps).zip(shape.iter().zip(strides))
        {
            *extent = *from_shape;
            *step = *from_strides >> shift;
            lost |= *from_strides & partial;
            let (last, way) = (from_shape.wrapping_sub(1).cast_unsigned(), step.unsigned_abs());
            numbers |= last | way;
            let distance = last.wrapping_mul(way);
            reach = reach.wrapping_add(distance);
            count = count.wrapping_mul(from_shape.cast_unsigned());
            products |= distance | count;
        }
        // No halo override: a descriptor is filled in place only by its sole user, and is blank or was filled in place before.
        debug_assert!(self.halo_override.get().is_none(), "filled in place while others have it");
        (self.ptr, self.device, self.dtype, self.readonly, self.metadata) = (ptr, device, dtype, readonly, None);
        // An element has at most 16 bytes, so `reach * 16` bounds the distance of any element.
        let address = ptr.addr();
        let near = |bytes: usize| address >= bytes + LOWEST && address < 1 << 62;
        let plain = numbers < 1 << 31 && products < 1 << 32 && lost == 0;
        if plain && usize::try_from(reach * 16).is_ok_and(near) {
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
            too_many_dims(ndim)
        } else {
            let got = format_args!("{} for {}", Count(strides, "entry"), Count(ndim, "dimension"));
            ExchangeError::new("strides", &"one entry for each dimension", &got)
        }
    }

    /// Replaces byte strides that are not whole elements by 1 where no element depends on them; rejects them elsewhere.
    #[cold]
    fn convert(&mut self, byte_strides: &[i64], shift: u32) -> Result<(), ExchangeError> {
        let itemsize = self.dtype.itemsize();
        let (shape, strides) = self.numbers.split_mut();
        for (axis, (stride, bytes)) in strides.iter_mut().zip(byte_strides).enumerate() {
            if *stride << shift != *bytes {
                if shape[axis] != 1 && !shape.contains(&0) {
                    let expected = format_args!("multiples of the element size {itemsize}");
                    return Err(ExchangeError::new(
                        "strides",
                        &expected,
                        &format_args!("{bytes} bytes at axis {axis}"),
                    ));
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
            let got = format_args!("{} at axis {axis}", shape[axis]);
            return Err(ExchangeError::new("shape", &"extents of 0 or more", &got));
        }
        let empty = shape.contains(&0);
        for (extent, stride) in shape.iter().zip(strides.iter_mut()) {
            if (empty || *extent == 1) && stride.checked_mul(byte_size).is_none() {
                *stride = 1;
            }
        }
        match byte_span(shape, strides, itemsize) {
            Some(_) if self.ptr.is_null() => {
                return Err(ExchangeError::new("data", &"an address, as the tensor has elements", &"NULL"));
            }
            Some((low, high)) => {
                let address = i128::try_from(self.ptr.addr()).unwrap_or(i128::MAX);
                let end = i128::from(u64::MAX);
                if let Ok(got) = usize::try_from(address.saturating_add(low))
                    && got < LOWEST
                {
                    let expected =
                        "an address from 0x10000 on, as the tensor has elements and lower addresses are never memory";
                    return Err(ExchangeError::new("data", &expected, &format_args!("{got:#x}")));
                }
                if address.saturating_add(low) < 0
                    || address.saturating_add(high) > end
                    || high.saturating_sub(low) > i128::from(i64::MAX)
                {
                    let (shape, strides) = (Tuple(shape), Tuple(strides));
                    let got = format_args!("{strides} for shape {shape} of {itemsize}-byte elements");
                    return Err(ExchangeError::new("strides", &"elements inside the address space", &got));
                }
            }
            None => {}
        }
        // The bytes of all elements must be countable, regardless of the strides; extents of 0 are left out of the product.
        let count = |bytes: i64, extent: &i64| bytes.checked_mul(*extent);
        if shape.iter().filter(|extent| **extent != 0).try_fold(byte_size, count).is_none() {
            let got = format_args!("{} of {itemsize}-byte elements", Tuple(shape));
            return Err(ExchangeError::new("shape", &"less than 2**63 bytes", &got));
        }
        Ok(())
    }
}

/// Returns the error for more dimensions than a library takes.
#[cold]
pub(crate) fn too_many_dims(got: usize) -> ExchangeError {
    ExchangeError::new("ndim", &format_args!("at most {MAX_NDIM} dimensions"), &got)
}
