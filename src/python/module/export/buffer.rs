//! Python's buffer protocol.
//!
//! Source: PEP 3118, and the tables of request flags on the C API's page on the buffer protocol. What they leave open is as
//! in NumPy, except for requests without `PyBUF_ND`: these get one dimension of bytes, as from CPython's own exporters.
//! NumPy returns 0 dimensions for them, which some consumers take for a single element, and with `PyBUF_FORMAT` the real
//! format, with which consumers that count bytes read past the end.

#![allow(unsafe_code, reason = "a C struct is filled in")]

use std::ffi::{CStr, c_int};
use std::ptr::null_mut;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::descriptor::{Descriptor, read_only};
use crate::device::not_host_readable;
use crate::dtype::DType;
use crate::error::ExchangeError;
use crate::layout::extents::Extents;
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::buffer_parts::Parts;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::values::bytes::not_contiguous;
use crate::python::sync;
use crate::tensor::managed::inexpressible;

/// The format of unsigned bytes.
const BYTES: &CStr = c"B";

/// Fills `view` as `flags` request, or rejects the request.
///
/// # Safety
/// - `view` is the struct that the interpreter passes to `__getbuffer__`, or NULL.
#[inline]
pub(crate) unsafe fn fill(slf: &Bound<'_, PyTensor>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
    if view.is_null() {
        return Err(new_error::<PyBufferError>("view: expected a Py_buffer to fill, got NULL"));
    }
    // SAFETY: not NULL, so the interpreter's struct, whose `obj` must be NULL on failure.
    unsafe { (*view).obj = null_mut() };
    let PyTensor(tensor, parts) = slf.get();
    let descriptor = tensor.descriptor();
    let parts = parts.of(descriptor);
    let format = check(descriptor, parts, flags)?;
    sync::synchronize_host(slf.py(), tensor)?;
    let shaped = requests(flags, ffi::PyBUF_ND);
    // Without dimensions there are no shape and strides to point to.
    let pointed = |numbers: &Extents, wanted: bool| match wanted && parts.ndim > 0 {
        true => numbers.as_ptr().cast::<isize>().cast_mut(),
        false => null_mut(),
    };
    let strides = if requests(flags, ffi::PyBUF_F_CONTIGUOUS) { &parts.f_strides } else { &parts.strides };
    // SAFETY: `view` is the interpreter's struct to fill. The numbers live as long as the tensor, to which `obj` is a
    // reference, and consumers do not
    // write to them.
    unsafe {
        (*view).buf = descriptor.ptr().cast();
        (*view).len = parts.len;
        // With a format, `itemsize` is that of the format; without one, it is still that of the elements.
        (*view).itemsize = if format == Some(BYTES) { 1 } else { parts.itemsize };
        (*view).readonly = descriptor.is_readonly().into();
        (*view).ndim = if shaped { parts.ndim } else { 1 };
        (*view).format = format.map_or(null_mut(), |format| format.as_ptr().cast_mut());
        (*view).shape = pointed(&parts.shape, shaped);
        (*view).strides = pointed(strides, requests(flags, ffi::PyBUF_STRIDES));
        (*view).suboffsets = null_mut();
        (*view).internal = null_mut();
        (*view).obj = slf.clone().into_any().into_ptr();
    }
    Ok(())
}

/// Whether the request has all bits of a flag.
fn requests(flags: c_int, flag: c_int) -> bool {
    flags & flag == flag
}

/// The element format, if it is requested.
#[inline]
fn format(dtype: DType, parts: &Parts, flags: c_int) -> Result<Option<&'static CStr>, ExchangeError> {
    if !requests(flags, ffi::PyBUF_FORMAT) {
        return Ok(None);
    }
    if !requests(flags, ffi::PyBUF_ND) {
        return Ok(Some(BYTES));
    }
    let missing = || inexpressible(dtype, "the buffer protocol");
    parts.format.map(Some).ok_or_else(missing)
}

/// Rejects a request that cannot be met. Returns the element format, if it is requested.
#[inline]
fn check(descriptor: &Descriptor, parts: &Parts, flags: c_int) -> PyResult<Option<&'static CStr>> {
    if !descriptor.device().is_host_readable() {
        let error = not_host_readable(descriptor.device());
        // Consumers of this protocol expect a `BufferError`.
        return Err(new_error::<PyBufferError>(error.to_string()));
    }
    let format = format(descriptor.dtype(), parts, flags)?;
    if requests(flags, ffi::PyBUF_WRITABLE) && descriptor.is_readonly() {
        return Err(read_only("flags", "request it without PyBUF_WRITABLE").into());
    }
    let (c, f) = (parts.is_c, parts.is_f);
    let refuse = |order| Err(not_contiguous(order).into());
    if requests(flags, ffi::PyBUF_C_CONTIGUOUS) && !c {
        return refuse("C");
    }
    if requests(flags, ffi::PyBUF_F_CONTIGUOUS) && !f {
        return refuse("F");
    }
    if requests(flags, ffi::PyBUF_ANY_CONTIGUOUS) && !c && !f {
        return refuse("C or F");
    }
    // Without strides the consumer assumes C order.
    if !requests(flags, ffi::PyBUF_STRIDES) && !c {
        return refuse("C");
    }
    Ok(format)
}
