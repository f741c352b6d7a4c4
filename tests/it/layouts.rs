//! Fields laid into memory by hand, with canaries around and between their elements.

#![allow(unsafe_code, reason = "fields are laid into memory by hand")]

use std::ops::Range;

use dlfield::{DType, Descriptor, Device, Owner, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::naive::{indices, offset, wide};
use crate::strategies::permutation;

/// What lies around elements.
pub const CANARY: u8 = 0xA5;

/// Memory with a field somewhere in it.
#[derive(Clone, Debug)]
pub struct LaidOut {
    pub bytes: Vec<u8>,
    /// Where element 0 is.
    pub start: usize,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    pub dtype: DType,
}

/// How one side lies: the order of its strides, gaps between rows, steps, directions, and where it starts.
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
    /// Strides without overlap: each dimension steps over all that are faster, and a gap.
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
    /// Where every element begins, last index fastest.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        indices(&self.shape).into_iter().map(|index| self.place(&index).start)
    }

    /// Which bytes an element has.
    pub fn place(&self, index: &[i64]) -> Range<usize> {
        let itemsize = self.dtype.itemsize();
        let start = usize::try_from(wide(self.start) + offset(index, &self.strides, itemsize)).unwrap();
        start..start + itemsize
    }

    /// Every element another one, by its number.
    pub fn number(&mut self) {
        let itemsize = self.dtype.itemsize();
        for (number, place) in self.places().collect::<Vec<_>>().into_iter().enumerate() {
            for (byte, value) in self.bytes[place..place + itemsize].iter_mut().enumerate() {
                *value = u8::try_from((number * 31 + byte * 7 + number / 251) % 251).unwrap();
            }
        }
    }

    /// The field, on these bytes: they have to outlive it.
    pub fn tensor(&mut self) -> Tensor {
        let ptr = self.bytes.as_mut_ptr().wrapping_add(self.start);
        let field = Descriptor::new(ptr, Device::CPU, self.dtype, false, &self.shape, &self.strides).unwrap();
        // SAFETY: the bytes outlive the tensor, which is gone before they are looked at.
        unsafe { Tensor::from_parts(field, Owner::foreign(())) }
    }
}
