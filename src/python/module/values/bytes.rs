//! Bytes that another object keeps, with any format: the buffers of pickles.

#![allow(unsafe_code, reason = "the producer vouches for the memory of its buffer")]

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{ExchangeError, ExchangeErrorKind};
use crate::python::import::Held;
use crate::tensor::Tensor;

/// Returns the contiguous bytes that an object exports by the buffer protocol, as a field of bytes that holds the buffer. The producer's exception reaches the caller.
///
/// # Errors
/// [`ExchangeError`] unless they are contiguous.
pub fn held_bytes(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let held = Held::get(object)?;
    if !held.is_contiguous(b'C') {
        return Err(not_contiguous("C").into());
    }
    let (start, len, readonly) = held.bytes();
    let bytes = Descriptor::new(start, Device::CPU, DType::U8, readonly, &[i64::try_from(len).unwrap_or(0)], &[1])?;
    let owner = held.into_owner(object.py())?;
    // SAFETY: by the protocol, the bytes stay there while the buffer is held; the owner keeps them.
    Ok(unsafe { Tensor::from_parts(bytes, owner) })
}

/// Returns the error for elements that are not contiguous in an order: `"C"`, `"F"` or `"C or F"`.
#[cold]
pub(crate) fn not_contiguous(order: &str) -> ExchangeError {
    let expected = format_args!("{order}-contiguous elements, as the consumer requests");
    ExchangeError::new("strides", &expected, &"others")
        .with_fix(&"request strides, or pass a copy")
        .with_kind(ExchangeErrorKind::NeedsCopy)
}
