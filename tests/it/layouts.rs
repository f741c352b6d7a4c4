//! Fields at chosen places in memory, with canaries around and between their elements.

#![allow(unsafe_code, reason = "fields are laid into memory by hand")]

use std::ops::Range;

use dlfield::{DType, Descriptor, Device, Owner, Tensor};

use crate::naive::{indices, offset, wide};

/// The byte around elements.
pub const CANARY: u8 = 0xA5;

/// Memory that contains a field.
#[derive(Clone, Debug)]
pub struct LaidOut {
    pub bytes: Vec<u8>,
    /// Byte offset of element 0.
    pub start: usize,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    pub dtype: DType,
}

/// The layout of one side: order of strides, gaps between rows, steps, directions, and start.
#[derive(Clone, Debug)]
pub struct Side {
    pub order: Vec<i64>,
    pub gaps: Vec<i64>,
    pub backwards: Vec<bool>,
    pub offset: usize,
}

impl Side {
    /// Returns memory with strides that do not overlap: each dimension steps over all faster ones, and a gap.
    pub fn lay(&self, shape: &[i64], dtype: DType) -> LaidOut {
        let mut strides = vec![0i64; shape.len()];
        let mut reach = 1i64;
        for axis in self.order.iter().map(|axis| usize::try_from(*axis).unwrap()) {
            strides[axis] = reach + self.gaps[axis];
            reach = strides[axis] * shape[axis].max(1);
        }
        let mut first = 0i64;
        for (axis, stride) in strides.iter_mut().enumerate() {
            if self.backwards[axis] {
                first += *stride * (shape[axis] - 1).max(0);
                *stride = -*stride;
            }
        }
        let itemsize = dtype.itemsize();
        let start = self.offset + usize::try_from(first).unwrap() * itemsize;
        let len = self.offset + (usize::try_from(reach).unwrap() + 4) * itemsize + 64;
        LaidOut { bytes: vec![CANARY; len], start, shape: shape.to_vec(), strides, dtype }
    }
}

impl LaidOut {
    /// Returns the first byte of every element, last index fastest.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        indices(&self.shape).into_iter().map(|index| self.place(&index).start)
    }

    /// Returns the bytes of an element.
    pub fn place(&self, index: &[i64]) -> Range<usize> {
        let itemsize = self.dtype.itemsize();
        let start = usize::try_from(wide(self.start) + offset(index, &self.strides, itemsize)).unwrap();
        start..start + itemsize
    }

    /// Sets every element to a value of its own, by its number.
    pub fn number(&mut self) {
        let itemsize = self.dtype.itemsize();
        for (number, place) in self.places().collect::<Vec<_>>().into_iter().enumerate() {
            for (byte, value) in self.bytes[place..place + itemsize].iter_mut().enumerate() {
                *value = u8::try_from((number * 31 + byte * 7 + number / 251) % 251).unwrap();
            }
        }
    }

    /// Returns the field on these bytes, which must outlive it.
    pub fn tensor(&mut self) -> Tensor {
        let ptr = self.bytes.as_mut_ptr().wrapping_add(self.start);
        let field = Descriptor::new(ptr, Device::CPU, self.dtype, false, &self.shape, &self.strides).unwrap();
        // SAFETY: the bytes outlive the tensor, which is dropped before they are read.
        unsafe { Tensor::from_parts(field, Owner::foreign(())) }
    }
}

/// Assigns, and checks every byte of the destination's memory.
pub fn assign(mut to: LaidOut, mut from: LaidOut) {
    from.number();
    let wanted: Vec<Vec<u8>> =
        from.places().map(|place| from.bytes[place..place + from.dtype.itemsize()].to_vec()).collect();
    let mut expected = to.bytes.clone();
    for (place, element) in to.places().zip(&wanted) {
        expected[place..place + element.len()].copy_from_slice(element);
    }
    // SAFETY: nobody else has the memory of either.
    unsafe { to.tensor().assign(&from.tensor()) }.unwrap();
    let first = to.bytes.iter().zip(&expected).position(|(got, wanted)| got != wanted);
    assert_eq!(first, None, "the first wrong byte, for {:?} of {:?} from {:?}", to.shape, to.strides, from.strides);
}
