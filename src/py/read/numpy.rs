//! NumPy arrays, read as the C struct they are: exact ones, and subclasses that export just as their base does.

#![allow(unsafe_code, reason = "the array struct is read without a call into NumPy")]

use numpy::npyffi::{NPY_ARRAY_WRITEABLE, NpyTypes, PyArrayObject, get_type_object};
use numpy::{PyArrayDescr, PyUntypedArray};
use pyo3::PyTypeInfo;
use pyo3::intern;
use pyo3::prelude::*;

use super::{Purpose, Reading, Request};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::layout::Extents;
use crate::protocol::ExchangeError;
use crate::py::dtype;

/// Whether the object is a `numpy.ndarray` and no subclass of it.
pub(super) fn is_exact(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the interpreter is attached; the call returns NumPy's type object.
    let array_type = unsafe { get_type_object(object.py(), NpyTypes::PyArray_Type) };
    object.get_type_ptr() == array_type
}

pub(super) fn read(object: &Bound<'_, PyAny>, _: &Request<'_, '_>, _: Purpose) -> PyResult<Option<Reading>> {
    if is_exact(object) { read_struct(object).map(Some) } else { Ok(None) }
}

/// Subclasses such as `numpy.memmap`, unless they have a `__dlpack__` of their own. Masked arrays are refused: the mask
/// would be lost.
pub(super) fn read_subclass(object: &Bound<'_, PyAny>, _: &Request<'_, '_>, _: Purpose) -> PyResult<Option<Reading>> {
    let py = object.py();
    if object.cast::<PyUntypedArray>().is_err() {
        return Ok(None);
    }
    if object.is_instance(&py.import(intern!(py, "numpy.ma"))?.getattr(intern!(py, "MaskedArray"))?)? {
        let got = "a masked array, whose mask no protocol can tell".to_owned();
        let allowed = "an ordinary array: pass .data, or .filled() where masked elements matter";
        return Err(ExchangeError::Argument { argument: "obj", got, allowed }.into());
    }
    let export = intern!(py, "__dlpack__");
    let base = PyUntypedArray::type_object(py).getattr(export)?;
    if object.get_type().getattr(export)?.is(&base) { read_struct(object).map(Some) } else { Ok(None) }
}

/// Reads the struct of an object that is an array.
fn read_struct(object: &Bound<'_, PyAny>) -> PyResult<Reading> {
    // SAFETY: the callers have checked the type; the struct lives as long as the object, and `nd` numbers stand behind both pointers.
    let (fields, shape, byte_strides) = unsafe {
        let fields = &(*object.as_ptr().cast::<PyArrayObject>()).fields;
        let ndim = usize::try_from(fields.nd).unwrap_or(0);
        (fields, numbers(fields.dimensions, ndim), numbers(fields.strides, ndim))
    };
    // SAFETY: the dtype lives as long as the array.
    let dtype = match unsafe { dtype::of_native(fields.descr) } {
        Some(dtype) => dtype,
        None => {
            let descriptor = object.getattr(pyo3::intern!(object.py(), "dtype"))?.cast_into::<PyArrayDescr>()?;
            dtype::of_descriptor(&descriptor)?
        }
    };
    let strides = in_elements(&shape, byte_strides, dtype.itemsize())?;
    let readonly = fields.flags & NPY_ARRAY_WRITEABLE == 0;
    Ok(Reading::Borrowed(Descriptor::new(fields.data.cast(), Device::CPU, dtype, readonly, shape, strides)?))
}

/// Copies `ndim` numbers of the array struct.
///
/// # Safety
/// - `start` points to `ndim` numbers, unless `ndim` is 0.
unsafe fn numbers(start: *const isize, ndim: usize) -> Extents {
    if ndim == 0 {
        return Extents::new();
    }
    // SAFETY: passed on from the caller; `isize` and `i64` agree on the 64-bit machines this is built for.
    Extents::from_slice(unsafe { std::slice::from_raw_parts(start.cast::<i64>(), ndim) })
}

const _: () = assert!(size_of::<isize>() == size_of::<i64>(), "dlfield is built for 64-bit machines");

/// Byte strides to strides in elements. Those of extents of 1, and of arrays without elements, mean nothing.
fn in_elements(shape: &[i64], mut strides: Extents, itemsize: usize) -> Result<Extents, ExchangeError> {
    let shift = itemsize.trailing_zeros();
    let unused = |axis: usize| shape[axis] == 1 || shape.contains(&0);
    for axis in 0..strides.len() {
        let bytes = strides[axis];
        // The element size is a power of two: shifting divides, exactly where nothing is lost.
        strides[axis] = bytes >> shift;
        if strides[axis] << shift != bytes {
            if !unused(axis) {
                return Err(ExchangeError::PartialStride { axis, got: bytes, itemsize });
            }
            strides[axis] = 1;
        }
    }
    Ok(strides)
}
