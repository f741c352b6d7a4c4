//! Python's buffer protocol.
//!
//! Source: PEP 3118, and the tables of request flags on the C API's page on the buffer protocol. What they leave open is as
//! in NumPy, except for requests without `PyBUF_ND`: these get one dimension of bytes, as from CPython's own exporters.
//! NumPy returns 0 dimensions for them, which some consumers take for a single element, and with `PyBUF_FORMAT` the real
//! format, with which consumers that count bytes read past the end.

#![allow(unsafe_code, reason = "a C struct is filled in")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::classes::tensor::PyTensor;
use dlfield::descriptor::Descriptor;
use dlfield::dtype::DType;
use dlfield::layout::Extents;
use dlfield::native::sync;
use dlfield::protocol::{ExchangeError, pep3118};

/// The format of unsigned bytes.
const BYTES: &CStr = c"B";

/// Shape and byte strides, which have to live as long as the buffer.
struct Numbers {
    shape: Extents,
    strides: Extents,
}

/// Fills `view` as `flags` request, or rejects the request.
///
/// # Safety
/// - `view` is the struct that the interpreter passes to `__getbuffer__`, or NULL.
pub(crate) unsafe fn fill(slf: &Bound<'_, PyTensor>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("view: NULL; allowed is a Py_buffer to fill"));
    }
    // SAFETY: not NULL, so the interpreter's struct, whose `obj` must be NULL on failure.
    unsafe { (*view).obj = null_mut() };
    let descriptor = slf.get().0.descriptor();
    let orders = (descriptor.is_c_contiguous(), descriptor.is_f_contiguous());
    let format = check(descriptor, flags, orders)?;
    sync::synchronize_host(slf.py(), &slf.get().0)?;
    // Without dimensions there are no shape and strides to point to.
    let shaped = requests(flags, ffi::PyBUF_ND);
    let numbers = (shaped && descriptor.ndim() > 0)
        .then(|| Numbers { shape: descriptor.shape().into(), strides: strides(descriptor, flags, orders) });
    // With a format, `itemsize` is that of the format; without one, it is still that of the elements.
    let itemsize = if format == Some(BYTES) { 1 } else { descriptor.itemsize() };
    // Boxed, so that their addresses stay valid until `release` frees the box.
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
            Some(numbers) if requests(flags, ffi::PyBUF_STRIDES) => numbers.strides.as_mut_ptr().cast(),
            _ => null_mut(),
        };
        (*view).suboffsets = null_mut();
        (*view).internal = numbers.cast::<c_void>();
        (*view).obj = slf.clone().into_any().into_ptr();
    }
    Ok(())
}

/// Frees what [`fill`] has allocated.
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
fn requests(flags: c_int, flag: c_int) -> bool {
    flags & flag == flag
}

/// Byte strides; `c` and `f`: whether the memory is contiguous in C and in Fortran order. Strides of extents 0 and 1 have no
/// meaning, but consumers that ask for contiguous memory compare them with compact strides: for contiguous memory they are the
/// compact ones, as in NumPy.
fn strides(descriptor: &Descriptor, flags: c_int, (c, f): (bool, bool)) -> Extents {
    let mut strides: Extents = descriptor.byte_strides().collect();
    let pairs = strides.iter_mut().zip(descriptor.shape());
    let mut step = i64::try_from(descriptor.itemsize()).unwrap_or(i64::MAX);
    let compact = |(stride, extent): (&mut i64, &i64)| {
        *stride = step;
        step = step.saturating_mul(*extent);
    };
    if c && !(f && requests(flags, ffi::PyBUF_F_CONTIGUOUS)) {
        pairs.rev().for_each(compact);
    } else if f {
        pairs.for_each(compact);
    }
    strides
}

/// The element format, if it is requested.
fn format(dtype: DType, flags: c_int) -> Result<Option<&'static CStr>, ExchangeError> {
    if !requests(flags, ffi::PyBUF_FORMAT) {
        return Ok(None);
    }
    if !requests(flags, ffi::PyBUF_ND) {
        return Ok(Some(BYTES));
    }
    let missing = ExchangeError::NotExpressible { name: dtype.name(), protocol: "the buffer protocol" };
    pep3118::encode(dtype).map(Some).ok_or(missing)
}

/// Rejects a request that cannot be met. Returns the element format, if it is requested.
fn check(descriptor: &Descriptor, flags: c_int, (c, f): (bool, bool)) -> PyResult<Option<&'static CStr>> {
    if !descriptor.device().is_host_readable() {
        let error = dlfield::DeviceError::NotHostReadable { found: descriptor.device() };
        // Consumers of this protocol expect a `BufferError`.
        return Err(PyBufferError::new_err(error.to_string()));
    }
    let format = format(descriptor.dtype(), flags)?;
    if requests(flags, ffi::PyBUF_WRITABLE) && descriptor.is_readonly() {
        return Err(ExchangeError::ReadOnly { field: "flags", fix: "request it without PyBUF_WRITABLE" }.into());
    }
    let refuse = |wanted| Err(ExchangeError::NotContiguous { wanted }.into());
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
