//! Python's buffer protocol.
//!
//! Source: PEP 3118 and the C API's page on the buffer protocol, whose table of request flags is followed.

#![allow(unsafe_code, reason = "a C struct is filled in")]

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::layout::Extents;
use crate::protocol::{ExchangeError, pep3118};
use crate::py::place;
use crate::py::tensor::PyTensor;

/// Shape and byte strides, which have to live as long as the buffer.
struct Numbers {
    shape: Extents,
    strides: Extents,
}

/// Fills `view` as asked, or says why it can't be had.
///
/// # Safety
/// - `view` is the struct that the interpreter passes to `__getbuffer__`, or NULL.
pub(crate) unsafe fn fill(slf: &Bound<'_, PyTensor>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("view: NULL; allowed is a Py_buffer to fill"));
    }
    // SAFETY: not NULL, so the interpreter's struct, of which failure must leave no object behind.
    unsafe { (*view).obj = null_mut() };
    let descriptor = slf.get().0.descriptor();
    let format = check(descriptor, flags)?;
    place::await_others(slf.py(), &slf.get().0)?;
    let asked = |flag: c_int| flags & flag == flag;
    let mut numbers = Box::new(Numbers {
        shape: Extents::from_slice(descriptor.shape()),
        strides: descriptor.byte_strides().collect(),
    });
    // SAFETY: as above. The numbers are boxed, so their addresses stay until `release` takes the box back.
    unsafe {
        (*view).buf = descriptor.ptr().cast();
        (*view).len = isize::try_from(descriptor.nbytes()).unwrap_or(isize::MAX);
        (*view).itemsize = isize::try_from(descriptor.itemsize()).unwrap_or(isize::MAX);
        (*view).readonly = descriptor.is_readonly().into();
        (*view).ndim = c_int::try_from(descriptor.ndim()).unwrap_or(c_int::MAX);
        (*view).format = if asked(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { null_mut() };
        (*view).shape = if asked(ffi::PyBUF_ND) { numbers.shape.as_mut_ptr().cast() } else { null_mut() };
        (*view).strides = if asked(ffi::PyBUF_STRIDES) { numbers.strides.as_mut_ptr().cast() } else { null_mut() };
        (*view).suboffsets = null_mut();
        (*view).internal = Box::into_raw(numbers).cast::<c_void>();
        (*view).obj = slf.clone().into_any().into_ptr();
    }
    Ok(())
}

/// Frees what [`fill`] has set aside.
///
/// # Safety
/// - `view` was filled by [`fill`] and is not used again.
pub(crate) unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: `internal` is the box that `fill` leaked, taken back once.
    drop(unsafe { Box::from_raw((*view).internal.cast::<Numbers>()) });
}

/// Whether the request can be met, and the element format.
fn check(descriptor: &crate::Descriptor, flags: c_int) -> PyResult<&'static std::ffi::CStr> {
    let asked = |flag: c_int| flags & flag == flag;
    if !descriptor.device().is_host_readable() {
        return Err(crate::DeviceError::NotHostReadable { found: descriptor.device() }).map_err(|error| {
            // Consumers of this protocol look for BufferError.
            PyBufferError::new_err(error.to_string())
        });
    }
    let name = descriptor.dtype().name();
    let format = pep3118::encode(descriptor.dtype())
        .ok_or(ExchangeError::NotExpressible { name, protocol: "the buffer protocol" })?;
    if asked(ffi::PyBUF_WRITABLE) && descriptor.is_readonly() {
        return Err(ExchangeError::ReadOnly { field: "flags", fix: "ask without PyBUF_WRITABLE" }.into());
    }
    let (c, f) = (descriptor.is_c_contiguous(), descriptor.is_f_contiguous());
    let refuse = |wanted| Err(ExchangeError::NotContiguous { wanted }.into());
    if asked(ffi::PyBUF_C_CONTIGUOUS) && !c {
        return refuse("C");
    }
    if asked(ffi::PyBUF_F_CONTIGUOUS) && !f {
        return refuse("F");
    }
    if asked(ffi::PyBUF_ANY_CONTIGUOUS) && !c && !f {
        return refuse("C or F");
    }
    // Without strides the consumer takes the elements for C order.
    if !asked(ffi::PyBUF_STRIDES) && !c {
        return refuse("C");
    }
    Ok(format)
}
