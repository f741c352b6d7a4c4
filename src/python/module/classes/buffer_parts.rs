//! What the buffers of a tensor have in common, kept with the tensor.

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use crate::descriptor::Descriptor;
use crate::layout::extents::Extents;
use crate::protocol::pep3118;

/// What all buffers of a tensor have in common, computed for the first of them and kept with the tensor. A buffer points to
/// the shape and the strides, and keeps the tensor alive, so that nothing is allocated for it and nothing has to be released.
#[derive(Default)]
pub(crate) struct BufferParts(OnceLock<Box<Parts>>);

impl BufferParts {
    pub(crate) fn of(&self, descriptor: &Descriptor) -> &Parts {
        self.0.get_or_init(|| Box::new(Parts::new(descriptor)))
    }
}

pub(crate) struct Parts {
    pub(crate) len: isize,
    pub(crate) itemsize: isize,
    pub(crate) ndim: c_int,
    pub(crate) is_c: bool,
    pub(crate) is_f: bool,
    /// `None` if Python's `struct` formats do not have the element type.
    pub(crate) format: Option<&'static CStr>,
    pub(crate) shape: Extents,
    pub(crate) strides: Extents,
    /// The strides for requests of Fortran order.
    pub(crate) f_strides: Extents,
}

impl Parts {
    fn new(descriptor: &Descriptor) -> Parts {
        let (is_c, is_f) = (descriptor.is_c_contiguous(), descriptor.is_f_contiguous());
        Parts {
            len: isize::try_from(descriptor.nbytes()).unwrap_or(isize::MAX),
            itemsize: isize::try_from(descriptor.itemsize()).unwrap_or(isize::MAX),
            ndim: c_int::try_from(descriptor.ndim()).unwrap_or(c_int::MAX),
            is_c,
            is_f,
            format: pep3118::encode(descriptor.dtype()),
            shape: descriptor.shape().into(),
            strides: strides(descriptor, is_c, is_f && !is_c),
            f_strides: strides(descriptor, is_c && !is_f, is_f),
        }
    }
}

/// Byte strides; `c` or `f`: in whose order the memory is contiguous. Strides of extents 0 and 1 have no meaning, but consumers
/// that ask for contiguous memory compare them with compact strides: for contiguous memory they are the compact ones, as in
/// NumPy.
fn strides(descriptor: &Descriptor, c: bool, f: bool) -> Extents {
    let mut strides: Extents = descriptor.byte_strides().collect();
    let pairs = strides.iter_mut().zip(descriptor.shape());
    let mut step = i64::try_from(descriptor.itemsize()).unwrap_or(i64::MAX);
    let compact = |(stride, extent): (&mut i64, &i64)| {
        *stride = step;
        step = step.saturating_mul(*extent);
    };
    if c {
        pairs.rev().for_each(compact);
    } else if f {
        pairs.for_each(compact);
    }
    strides
}
