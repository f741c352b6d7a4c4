//! Holds a buffer that its producer has exported by the buffer protocol, and releases it on drop.

#![allow(unsafe_code, reason = "a C struct is filled in by the producer")]

use std::ffi::CStr;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::with_exposed_provenance_mut;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::error::{DTypeError, Error, ExchangeError};
use crate::layout::byte_strided_reach;
use crate::protocol::buffer;
use crate::protocol::dlpack::{checked_ndim, null_shape};
use crate::protocol::pep3118::is_address;
use crate::python::convert::errors;
use crate::python::ffi::attach::when_attached_by_pyo3;
use crate::python::ffi::numpy_api::{is_array, numbers};
use crate::python::import::owners;
use crate::tensor::Owner;

/// Whether the object has the buffer protocol.
pub fn is_exporter(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the call takes any object.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
}

/// An exported buffer: it keeps its address and size until this is dropped, on any thread. After the interpreter has ended
/// it is not released.
pub struct Held(ManuallyDrop<Box<ffi::Py_buffer>>);

// SAFETY: the struct is only read, and released with the interpreter attached; its memory is what the protocol shares.
unsafe impl Send for Held {}
// SAFETY: the struct is only read, and released with the interpreter attached; its memory is what the protocol shares.
unsafe impl Sync for Held {}

impl Held {
    /// Requests the buffer with all its fields, writable or read-only. The producer's exception reaches the caller.
    pub fn get(object: &Bound<'_, PyAny>) -> PyResult<Held> {
        // The struct may hold pointers to itself, so it is filled where it stays.
        let mut view = Box::new(MaybeUninit::<ffi::Py_buffer>::zeroed());
        // SAFETY: the call takes any object and a struct to fill.
        let code = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), ffi::PyBUF_FULL_RO) };
        if code != 0 {
            return Err(errors::exception_set_by("the buffer protocol", object));
        }
        // SAFETY: filled on success, and all zeros is a valid struct, too.
        Ok(Held(ManuallyDrop::new(unsafe { view.assume_init() })))
    }

    /// Returns an owner of the memory: that of the `Tensor` whose memory it is, else one that holds the buffer and, as that does
    /// not keep NumPy from resizing, the array whose memory it is.
    ///
    /// # Errors
    /// [`ExchangeError`] if the array has been resized since it exported the buffer.
    pub fn into_owner(self, py: Python<'_>) -> PyResult<Owner> {
        // The exporter of this buffer, which need not be the object that was asked for it.
        // SAFETY: NULL, or an object that the buffer keeps alive.
        let exporter = unsafe { Bound::from_borrowed_ptr_or_opt(py, self.0.obj) };
        let Some(exporter) = exporter else { return Ok(Owner::foreign(self)) };
        let shown = if is_array(&exporter) { exporter } else { owners::underlying(&exporter).unwrap_or(exporter) };
        if let Some(owner) = owners::exporting_tensor(&shown) {
            return Ok(owner);
        }
        if !is_array(&shown) {
            return Ok(Owner::foreign(self));
        }
        let pinned = owners::pinned_array(&shown)?;
        // Before that, code that an allocation ran, or the program, may have resized the array.
        if self.reach()?.is_some_and(|reach| !owners::owns(&shown, reach)) {
            let got = "a buffer of a NumPy array that was resized after the buffer was made".to_owned();
            let fix = "take a memoryview of the array as it is now";
            return Err(ExchangeError::new("obj", &"a new one", &got).with_fix(&fix).into());
        }
        Ok(Owner::foreign((pinned, self)))
    }

    /// Returns the addresses of the elements, from the lowest byte to one past the highest; `None` without elements.
    fn reach(&self) -> PyResult<Option<(usize, usize)>> {
        let buffer::Buffer { shape, byte_strides, .. } = self.read()?;
        let (start, len, _) = self.bytes();
        let whole = [i64::try_from(len).unwrap_or(i64::MAX)];
        let (shape, byte_strides, itemsize) = match (shape, byte_strides) {
            (Some(shape), Some(byte_strides)) => (shape, byte_strides, self.0.itemsize.unsigned_abs()),
            _ => (&whole[..], &[1][..], 1),
        };
        Ok(byte_strided_reach(start.addr(), shape, byte_strides, itemsize))
    }

    /// Returns the address of the first byte, the number of bytes, and whether the buffer is read-only, as the producer says.
    pub fn bytes(&self) -> (*mut u8, isize, bool) {
        (self.0.buf.cast(), self.0.len, self.0.readonly != 0)
    }

    /// Whether the buffer is contiguous in an order: `b'C'`, `b'F'`, or `b'A'` for either.
    pub fn is_contiguous(&self, order: u8) -> bool {
        #[allow(clippy::cast_possible_wrap, reason = "ASCII fits every char type")]
        let order = order as std::ffi::c_char;
        // SAFETY: the struct was filled by its producer and is still held.
        unsafe { ffi::PyBuffer_IsContiguous(&raw const **self.0, order) != 0 }
    }

    /// Whether the buffer is the memory of a pointer itself, as that of the pointers of `ctypes` is.
    pub fn is_pointer(&self) -> bool {
        let format = self.0.format;
        // SAFETY: not NULL, so by the protocol a C string, of a buffer that is still held.
        let of_addresses = || unsafe { CStr::from_ptr(format) }.to_str().is_ok_and(is_address);
        self.0.ndim == 0 && !format.is_null() && of_addresses()
    }

    /// Returns what the producer says of the elements.
    fn read(&self) -> PyResult<buffer::Buffer<'_>> {
        let view = &**self.0;
        let ndim = checked_ndim(view.ndim)?;
        // SAFETY: the producer has filled in the struct, which is still held; by the protocol each list is NULL or has
        // `ndim` entries.
        let (format, shape, byte_strides, suboffsets) = unsafe {
            (
                (!view.format.is_null()).then(|| CStr::from_ptr(view.format)),
                numbers(view.shape, ndim),
                numbers(view.strides, ndim),
                numbers(view.suboffsets, ndim),
            )
        };
        Ok(buffer::Buffer {
            address: view.buf.addr(),
            len: size(view.len),
            itemsize: size(view.itemsize),
            readonly: view.readonly != 0,
            format: format.map(text).transpose()?,
            shape,
            byte_strides,
            suboffsets,
        })
    }

    /// Returns the descriptor of the elements, checked.
    pub fn describe(&self) -> PyResult<Descriptor> {
        let found = self.read()?;
        let ndim = self.0.ndim.unsigned_abs() as usize;
        if found.shape.is_none() && ndim > 1 {
            return Err(null_shape(ndim).into());
        }
        let has_addresses = found.format.is_some_and(is_address);
        Ok(found.read().map_err(|error| match error {
            Error::DType(error) if has_addresses => error.with_fix(&"pass the address to from_pointer").into(),
            error => error,
        })?)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the buffer is not used after this.
        let address = Box::into_raw(unsafe { ManuallyDrop::take(&mut self.0) }).expose_provenance();
        when_attached_by_pyo3(move |_| {
            // SAFETY: the box of above, filled in by the producer, and released only here.
            unsafe {
                let mut view = Box::from_raw(with_exposed_provenance_mut::<ffi::Py_buffer>(address));
                ffi::PyBuffer_Release(&raw mut *view);
            }
        });
    }
}

/// Converts a format to text.
fn text(format: &CStr) -> Result<&str, DTypeError> {
    format.to_str().map_err(|_| {
        let got = format_args!("{:?}", format.to_string_lossy());
        DTypeError::new("format", &"a letter of the struct module such as 'd'", &got)
    })
}

/// Converts a number of bytes, which is negative only if the producer is wrong.
fn size(bytes: isize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
