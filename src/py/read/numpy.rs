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
use crate::protocol::ExchangeError;
use crate::py::dtype;
use crate::py::tensor::PyTensor;

/// Whether the object is a `numpy.ndarray` and no subclass of it.
#[inline]
pub(super) fn is_exact(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the interpreter is attached; the call returns NumPy's type object.
    let array_type = unsafe { get_type_object(object.py(), NpyTypes::PyArray_Type) };
    object.get_type_ptr() == array_type
}

pub(super) fn read(
    object: &Bound<'_, PyAny>,
    _: &Request<'_, '_>,
    purpose: Purpose,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    if is_exact(object) { read_struct(object, purpose, descriptor).map(Some) } else { Ok(None) }
}

/// Subclasses such as `numpy.memmap`, unless they have a `__dlpack__` of their own. Masked arrays are refused: the mask
/// would be lost.
pub(super) fn read_subclass(
    object: &Bound<'_, PyAny>,
    _: &Request<'_, '_>,
    purpose: Purpose,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
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
    let inherited = object.get_type().getattr(export)?.is(&base);
    if inherited { read_struct(object, purpose, descriptor).map(Some) } else { Ok(None) }
}

/// Describes an object that is an array, and says who keeps its memory.
fn read_struct(object: &Bound<'_, PyAny>, purpose: Purpose, descriptor: &mut Descriptor) -> PyResult<Reading> {
    describe(object, descriptor)?;
    // SAFETY: an array's struct.
    let base = unsafe { (*object.as_ptr().cast::<PyArrayObject>()).fields.base };
    if purpose == Purpose::Describe || base.is_null() {
        return Ok(Reading::Borrowed);
    }
    // A view of a tensor of ours shares that tensor's owner. To own the view instead would make a chain that grows with
    // every way there and back.
    // SAFETY: not NULL, so a live object that the array keeps.
    let base = unsafe { Bound::from_borrowed_ptr(object.py(), base) };
    Ok(match base.cast_exact::<PyTensor>() {
        Ok(tensor) => Reading::Owned(tensor.get().0.owner().clone()),
        Err(_) => Reading::Borrowed,
    })
}

/// Reads the struct of an object that is an array.
#[inline]
pub(super) fn describe(object: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<()> {
    // SAFETY: the callers have checked the type; the struct and what it points to live as long as the object, which
    // nobody else touches before this returns.
    let (fields, shape, byte_strides) = unsafe {
        let fields = &(*object.as_ptr().cast::<PyArrayObject>()).fields;
        let ndim = usize::try_from(fields.nd).unwrap_or(0);
        (fields, numbers(fields.dimensions, ndim), numbers(fields.strides, ndim))
    };
    // SAFETY: the dtype lives as long as the array.
    let dtype = match unsafe { dtype::of_native(fields.descr) } {
        Some(dtype) => dtype,
        None => {
            let unusual = object.getattr(intern!(object.py(), "dtype"))?.cast_into::<PyArrayDescr>()?;
            dtype::of_descriptor(&unusual)?
        }
    };
    let readonly = fields.flags & NPY_ARRAY_WRITEABLE == 0;
    let data = fields.data.cast();
    Ok(descriptor.set_with_byte_strides(data, Device::CPU, dtype, readonly, shape, byte_strides)?)
}

/// The `ndim` numbers at `start`.
///
/// # Safety
/// - `start` points to `ndim` numbers that stay readable for the lifetime, unless `ndim` is 0.
unsafe fn numbers<'a>(start: *const isize, ndim: usize) -> &'a [i64] {
    if ndim == 0 {
        return &[];
    }
    // SAFETY: passed on from the caller; `isize` and `i64` agree on the 64-bit machines this is built for.
    unsafe { std::slice::from_raw_parts(start.cast::<i64>(), ndim) }
}

const _: () = assert!(size_of::<isize>() == size_of::<i64>(), "dlfield is built for 64-bit machines");
