//! Python's buffer protocol.
//!
//! Source: PEP 3118 and the C API's page on the buffer protocol, whose tables of request flags are followed. What they leave
//! open is as in NumPy, but for requests without `PyBUF_ND`: these are bytes in one dimension, as in the interpreter's own
//! exporters. NumPy says 0 dimensions there, which is a single element to consumers that go by it, and with `PyBUF_FORMAT`
//! its real format, by which consumers that count bytes read beyond the end.

#![allow(unsafe_code, reason = "a C struct is filled in")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::dtype::DType;
use crate::layout::Extents;
use crate::protocol::{ExchangeError, pep3118};
use crate::py::sync;
use crate::py::tensor::PyTensor;

/// The format of unsigned bytes.
const BYTES: &CStr = c"B";

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
    sync::synchronize_host(slf.py(), &slf.get().0)?;
    // A single element has no shape and strides to point to.
    let shaped = asked(flags, ffi::PyBUF_ND);
    let numbers = (shaped && descriptor.ndim() > 0)
        .then(|| Numbers { shape: descriptor.shape().into(), strides: strides(descriptor, flags) });
    // What has a format has elements of that size; without one the size of the elements is said all the same.
    let itemsize = if format == Some(BYTES) { 1 } else { descriptor.itemsize() };
    // Boxed, so their addresses stay until `release` takes the box back.
    let numbers = numbers.map_or(null_mut(), |numbers| Box::into_raw(Box::new(numbers)));
    // SAFETY: `view` as above, and `numbers` is NULL or the box just made.
    unsafe {
        (*view).buf = descriptor.ptr().cast();
        (*view).len = isize::try_from(descriptor.nbytes()).unwrap_or(isize::MAX);
        (*view).itemsize = isize::try_from(itemsize).unwrap_or(isize::MAX);
        (*view).readonly = descriptor.is_readonly().into();
        (*view).ndim = if shaped { c_int::try_from(descriptor.ndim()).unwrap_or(c_int::MAX) } else { 1 };
        (*view).format = format.map_or(null_mut(), |format| format.as_ptr().cast_mut());
        (*view).shape = numbers.as_mut().map_or(null_mut(), |numbers| numbers.shape.as_mut_ptr().cast());
        (*view).strides = match numbers.as_mut() {
            Some(numbers) if asked(flags, ffi::PyBUF_STRIDES) => numbers.strides.as_mut_ptr().cast(),
            _ => null_mut(),
        };
        (*view).suboffsets = null_mut();
        (*view).internal = numbers.cast::<c_void>();
        (*view).obj = slf.clone().into_any().into_ptr();
    }
    Ok(())
}

/// Frees what [`fill`] has set aside.
///
/// # Safety
/// - `view` was filled by [`fill`] and is not used again.
pub(crate) unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: the struct that `fill` filled in.
    let numbers = unsafe { (*view).internal }.cast::<Numbers>();
    if !numbers.is_null() {
        // SAFETY: the box that `fill` leaked, taken back once.
        drop(unsafe { Box::from_raw(numbers) });
    }
}

/// Whether the request has all bits of a flag.
fn asked(flags: c_int, flag: c_int) -> bool {
    flags & flag == flag
}

/// Byte strides. Those of extents of 0 and 1 lead nowhere, and consumers that ask for contiguous memory compare them with
/// those of compact memory all the same: there they are what NumPy says.
fn strides(descriptor: &Descriptor, flags: c_int) -> Extents {
    let mut strides: Extents = descriptor.byte_strides().collect();
    let pairs = strides.iter_mut().zip(descriptor.shape());
    let mut step = i64::try_from(descriptor.itemsize()).unwrap_or(i64::MAX);
    let compact = |(stride, extent): (&mut i64, &i64)| {
        *stride = step;
        step = step.saturating_mul(*extent);
    };
    let (c, f) = (descriptor.is_c_contiguous(), descriptor.is_f_contiguous());
    if c && !(f && asked(flags, ffi::PyBUF_F_CONTIGUOUS)) {
        pairs.rev().for_each(compact);
    } else if f {
        pairs.for_each(compact);
    }
    strides
}

/// The element format, if it is asked for.
fn format(dtype: DType, flags: c_int) -> Result<Option<&'static CStr>, ExchangeError> {
    if !asked(flags, ffi::PyBUF_FORMAT) {
        return Ok(None);
    }
    if !asked(flags, ffi::PyBUF_ND) {
        return Ok(Some(BYTES));
    }
    let missing = ExchangeError::NotExpressible { name: dtype.name(), protocol: "the buffer protocol" };
    pep3118::encode(dtype).map(Some).ok_or(missing)
}

/// Whether the request can be met, and the element format if that is asked for.
fn check(descriptor: &Descriptor, flags: c_int) -> PyResult<Option<&'static CStr>> {
    if !descriptor.device().is_host_readable() {
        let error = crate::DeviceError::NotHostReadable { found: descriptor.device() };
        // Consumers of this protocol look for BufferError.
        return Err(PyBufferError::new_err(error.to_string()));
    }
    let format = format(descriptor.dtype(), flags)?;
    if asked(flags, ffi::PyBUF_WRITABLE) && descriptor.is_readonly() {
        return Err(ExchangeError::ReadOnly { field: "flags", fix: "ask without PyBUF_WRITABLE" }.into());
    }
    let (c, f) = (descriptor.is_c_contiguous(), descriptor.is_f_contiguous());
    let refuse = |wanted| Err(ExchangeError::NotContiguous { wanted }.into());
    if asked(flags, ffi::PyBUF_C_CONTIGUOUS) && !c {
        return refuse("C");
    }
    if asked(flags, ffi::PyBUF_F_CONTIGUOUS) && !f {
        return refuse("F");
    }
    if asked(flags, ffi::PyBUF_ANY_CONTIGUOUS) && !c && !f {
        return refuse("C or F");
    }
    // Without strides the consumer takes the elements for C order.
    if !asked(flags, ffi::PyBUF_STRIDES) && !c {
        return refuse("C");
    }
    Ok(format)
}
