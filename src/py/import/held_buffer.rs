//! A buffer that its producer has exported, held until it is dropped.

#![allow(unsafe_code, reason = "a C struct is filled in by the producer")]

use std::ffi::{CStr, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::slice::from_raw_parts;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::dtype::DTypeError;
use crate::protocol::{ExchangeError, buffer};
use crate::py::errors;
use crate::tensor::Owner;

/// Whether the object has the protocol.
pub(super) fn is_exporter(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the call takes any object.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
}

/// A buffer that its producer has handed over: it stays where it is and keeps its size until this is dropped, on any
/// thread. After the interpreter has ended there is nobody left to release it to.
pub(super) struct Held(Box<ffi::Py_buffer>);

// SAFETY: the struct is read only, and released with the interpreter attached; its memory is what the protocol shares.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

impl Held {
    /// Asks for the buffer with all it says, to be read at least. The producer's own exception passes through.
    pub(super) fn get(object: &Bound<'_, PyAny>) -> PyResult<Held> {
        // The struct may hold pointers to itself, so it is filled where it stays.
        let mut view = Box::new(MaybeUninit::<ffi::Py_buffer>::zeroed());
        // SAFETY: the call takes any object and a struct to fill.
        let code = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), ffi::PyBUF_FULL_RO) };
        if code != 0 {
            return Err(errors::set_by("the buffer protocol", object));
        }
        // SAFETY: filled on success; all zeros is a valid struct besides.
        Ok(Held(unsafe { view.assume_init() }))
    }

    /// Keeps the buffer until the owner is gone.
    pub(super) fn into_owner(self) -> Owner {
        let mut held = ManuallyDrop::new(self);
        // SAFETY: the buffer is taken out of a value that is not used or dropped any more, and `release` takes it back.
        unsafe {
            let view = Box::into_raw(std::ptr::read(&raw mut held.0));
            Owner::object(view.cast(), release)
        }
    }

    /// Address of the buffer's first byte by its own word, number of bytes, and whether it must not be written.
    pub(super) fn bytes(&self) -> (*mut u8, isize, bool) {
        (self.0.buf.cast(), self.0.len, self.0.readonly != 0)
    }

    /// Whether the bytes lie next to each other in C order.
    pub(super) fn is_contiguous(&self) -> bool {
        #[allow(clippy::cast_possible_wrap, reason = "ASCII fits every char type")]
        let order = b'C' as std::ffi::c_char;
        // SAFETY: the struct was filled by its producer and is still held.
        unsafe { ffi::PyBuffer_IsContiguous(&raw const *self.0, order) != 0 }
    }

    /// The elements, checked.
    pub(super) fn describe(&self) -> PyResult<Descriptor> {
        let view = &*self.0;
        let ndim = usize::try_from(view.ndim).map_err(|_| ExchangeError::NegativeNdim { got: view.ndim.into() })?;
        // SAFETY: the producer has filled the struct, is held to it, and each list is NULL or has `ndim` entries.
        let (format, shape, byte_strides, suboffsets) = unsafe {
            (
                (!view.format.is_null()).then(|| CStr::from_ptr(view.format)),
                numbers(view.shape, ndim),
                numbers(view.strides, ndim),
                numbers(view.suboffsets, ndim),
            )
        };
        if shape.is_none() && ndim > 1 {
            return Err(ExchangeError::NullShape { ndim }.into());
        }
        let format = format.map(text).transpose()?;
        let found = buffer::Buffer {
            address: view.buf.addr(),
            len: size(view.len),
            itemsize: size(view.itemsize),
            readonly: view.readonly != 0,
            format,
            shape,
            byte_strides,
            suboffsets,
        };
        Ok(found.read()?)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: filled by the producer, released here or in `release`, with the interpreter attached.
        Python::try_attach(|_| unsafe { ffi::PyBuffer_Release(&raw mut *self.0) });
    }
}

/// Releases a buffer that was made an owner.
///
/// # Safety
/// - `view` is the address of a [`Held`]'s buffer, which the caller gives up.
unsafe fn release(view: *mut c_void) {
    // SAFETY: passed on from the caller.
    drop(Held(unsafe { Box::from_raw(view.cast()) }));
}

/// The `ndim` numbers at `start`; `None` for NULL unless there are none.
///
/// # Safety
/// - `start` is NULL or points to `ndim` numbers that stay readable for the lifetime.
unsafe fn numbers<'a>(start: *const isize, ndim: usize) -> Option<&'a [i64]> {
    match (start.is_null(), ndim) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: not NULL, so readable by the caller's word; `isize` and `i64` agree on the 64-bit machines this is built for.
        (false, _) => Some(unsafe { from_raw_parts(start.cast(), ndim) }),
    }
}

/// A format as text.
fn text(format: &CStr) -> Result<&str, DTypeError> {
    format.to_str().map_err(|_| DTypeError::Unreadable {
        field: "format",
        got: format.to_string_lossy().into_owned(),
        allowed: "a letter of the struct module such as 'd'",
    })
}

/// A number of bytes, which is negative only where the producer is wrong.
fn size(bytes: isize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
