//! Fields at chosen places in memory, with canaries around and between their elements.

#![allow(unsafe_code, reason = "fields are laid into memory by hand")]

use dlfield::{DType, Descriptor, Device, Owner, Tensor};

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
    /// Returns C order without gaps.
    pub fn c_order(ndim: usize) -> Side {
        let order = (0..i64::try_from(ndim).unwrap()).rev().collect();
        Side { order, gaps: vec![0; ndim], backwards: vec![false; ndim], offset: 0 }
    }

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
    pub fn places(&self) -> Vec<usize> {
        self.repeated(&self.shape)
    }

    /// The same for a shape in which extents of 1 are repeated, and leading ones may be missing.
    pub fn repeated(&self, shape: &[i64]) -> Vec<usize> {
        let mut places = vec![i64::try_from(self.start).unwrap()];
        let (leading, itemsize) = (self.shape.len() - shape.len(), i64::try_from(self.dtype.itemsize()).unwrap());
        for (axis, extent) in (leading..).zip(shape) {
            let step = if self.shape[axis] == 1 { 0 } else { self.strides[axis] * itemsize };
            places = places.iter().flat_map(|place| (0..*extent).map(move |at| place + at * step)).collect();
        }
        places.into_iter().map(|place| usize::try_from(place).unwrap()).collect()
    }

    /// Sets every element to a value of its own, by its number.
    pub fn number(&mut self) {
        let itemsize = self.dtype.itemsize();
        for (number, place) in self.places().into_iter().enumerate() {
            for (byte, value) in self.bytes[place..place + itemsize].iter_mut().enumerate() {
                *value = u8::try_from((number * 31 + byte * 7 + number / 251) % 251).unwrap();
            }
        }
    }

    /// Assigns another field to this one.
    pub fn assign(&mut self, from: &mut LaidOut) -> dlfield::Result<()> {
        // SAFETY: both have memory of their own that nobody else uses.
        unsafe { self.tensor().assign(&from.tensor()) }
    }

    /// Returns the field on these bytes, which must outlive it.
    pub fn tensor(&mut self) -> Tensor {
        let ptr = self.bytes.as_mut_ptr().wrapping_add(self.start);
        let field = Descriptor::new(ptr, Device::CPU, self.dtype, false, &self.shape, &self.strides).unwrap();
        // SAFETY: the bytes outlive the tensor, which is dropped before they are read.
        unsafe { Tensor::from_parts(field, Owner::foreign(())) }
    }
}

/// Assigns with repeated extents of 1, and checks every byte of the destination's memory.
pub fn assign(mut to: LaidOut, mut from: LaidOut) {
    from.number();
    let itemsize = from.dtype.itemsize();
    let mut expected = to.bytes.clone();
    for (place, source) in to.places().into_iter().zip(from.repeated(&to.shape)) {
        expected[place..place + itemsize].copy_from_slice(&from.bytes[source..source + itemsize]);
    }
    to.assign(&mut from).unwrap();
    let first = to.bytes.iter().zip(&expected).position(|(got, wanted)| got != wanted);
    assert_eq!(first, None, "the first wrong byte, for {:?} of {:?} from {:?}", to.shape, to.strides, from.strides);
}
