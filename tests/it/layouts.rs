//! Fields at chosen places in memory, with canaries around and between their elements.

#![allow(unsafe_code, reason = "fields are laid into memory by hand")]

use std::ops::Range;

use dlfield::{DType, Descriptor, Device, Owner, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::naive::{indices, offset, wide};
use crate::strategies::permutation;

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

/// Any side.
pub fn side(ndim: usize) -> impl Strategy<Value = Side> {
    let gap = prop_oneof![4 => Just(0i64), 1 => 1i64..4];
    (permutation(ndim), vec(gap, ndim), vec(prop::bool::weighted(0.2), ndim), 0usize..70)
        .prop_map(|(order, gaps, backwards, offset)| Side { order, gaps, backwards, offset })
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
