//! Imports NumPy arrays by reading their C struct: exact arrays, subclasses that inherit `__dlpack__`, and what an object returns
//! from `__array__`, the last protocol that is tried.
//!
//! Source: NumPy's page on interoperability, with the `copy` keyword of NumPy 2.

#![allow(unsafe_code, reason = "the array struct is read without a call into NumPy")]

use numpy::npyffi::{NPY_ARRAY_WRITEABLE, NpyTypes, PyArrayObject};
use numpy::{PyArrayDescr, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use pyo3::{PyTypeInfo, intern};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::ExchangeError;
use crate::python::convert::errors::ErrorKind;
use crate::python::convert::{args, dtype};
use crate::python::ffi::getattr::{self, Keyword};
use crate::python::ffi::numpy_api::{is_array, is_exact, is_fresh, is_scalar};
use crate::python::import::owners;
use crate::python::import::request::{Imported, Ownership, Request};
use crate::python::import::type_info::{Name, attribute};
use crate::python::py_owner::PyOwner;
use crate::python::{interrupt, trace};

/// Imports instances of subclasses such as `numpy.memmap` that do not override `__dlpack__`. Rejects masked arrays with a masked
/// point: the mask would be lost.
pub fn import_subclass(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    let py = object.py();
    if !is_array(object) {
        return Ok(false);
    }
    refuse_mask(object, "obj")?;
    let export = intern!(py, "__dlpack__");
    let base = PyUntypedArray::type_object(py).getattr(export)?;
    let inherited = object.get_type().getattr(export)?.is(&base);
    if inherited { import_struct(object, request, out) } else { Ok(false) }
}

/// Rejects a masked array of NumPy with a masked point; without one it is an ordinary array. Errors call it `argument`.
pub fn refuse_mask(object: &Bound<'_, PyAny>, argument: &str) -> PyResult<()> {
    match masked_points(object)? {
        0 => Ok(()),
        points => Err(masked(object, points, &format!("{argument}: expected an array"), argument)),
    }
}

/// Counts the masked points of an object: 0 unless it is one of NumPy's masked arrays.
pub fn masked_points(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    if !is_array(object) || is_exact(object) {
        return Ok(0);
    }
    let py = object.py();
    let module = py.import(intern!(py, "numpy.ma"))?;
    if !object.is_instance(&module.getattr(intern!(py, "MaskedArray"))?)? {
        return Ok(0);
    }
    module.call_method1(intern!(py, "count_masked"), (object,))?.extract()
}

/// The error for an array with masked points, with what makes them NaN.
#[cold]
pub fn masked(array: &Bound<'_, PyAny>, points: usize, expected: &str, name: &str) -> PyErr {
    let has_nan = array.getattr("dtype").and_then(|dtype| dtype.getattr("kind")?.extract::<char>());
    let cast = match interrupt::answer(array.py(), has_nan) {
        Ok(Some('f' | 'c')) => "",
        Ok(_) => ".astype(float)",
        Err(interrupt) => return interrupt,
    };
    ErrorKind::Exchange.error(format!(
        "{expected} without masked points, got one with {points} masked, which no protocol can express; pass \
         {name}{cast}.filled(np.nan), or {name}.filled(value) with another value for them"
    ))
}

/// Imports an object that is an array.
#[inline]
pub fn import_struct(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    if request.ownership == Ownership::Share {
        // The owner first: it keeps the memory at the address that is read next.
        out.owner = Some(owners::of_array(object)?);
    }
    describe(object, out.descriptor)?;
    Ok(true)
}

/// Imports the array that an object returns from `__array__`.
pub fn import_array_of(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    static COPY: Keyword = Keyword::new("copy");
    let py = object.py();
    let Some(method) = attribute(object, Name::Array)? else { return Ok(false) };
    let array = if request.rejects_copy() {
        match getattr::call(&method, &[PyBool::new(py, false).as_any()], Some(COPY.get(py)?)) {
            // An `__array__` from before NumPy 2 has no keyword `copy`.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0()?,
            other => other?,
        }
    } else {
        method.call0()?
    };
    let is_copy = is_fresh(&array);
    if is_copy && request.rejects_copy() {
        return Err(request.refused_copy("__array__ returned an array made for this call").into());
    }
    if !import_subclass(&array, &Request { ownership: Ownership::Share, ..*request }, out)? {
        let (got, allowed) = (args::shown(&array), "a numpy.ndarray as the return value");
        return Err(ExchangeError::new("__array__", &allowed, &got).into());
    }
    if is_copy {
        trace::copied(py, out.descriptor.nbytes(), || "__array__ has made an array for this call".to_owned());
    }
    // The array may not keep the object that has the memory; a description keeps that object itself.
    out.owner_needs_object = request.ownership == Ownership::Borrow;
    if request.ownership == Ownership::Share {
        out.owner = out.owner.take().map(|owner| owner.with(PyOwner::new(object)));
    }
    Ok(true)
}

/// Returns the element type of a scalar of NumPy, which has array protocols but no memory of its own to share; `None` for other
/// objects.
pub fn numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    if !is_scalar(object, NpyTypes::PyGenericArrType_Type) {
        return Ok(None);
    }
    dtype::of_descriptor(&object.getattr(intern!(object.py(), "dtype"))?.cast_into::<PyArrayDescr>()?).map(Some)
}

/// Describes an exact array of one of NumPy's own element types in native byte order, for the length of a call. That needs no call of
/// other code, and nothing else is left of an import: such an array has no metadata and no hooks, and its memory is the host's.
/// `false` for other objects.
#[inline]
pub fn locate(object: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<bool> {
    match if is_exact(object) { native_dtype(object) } else { None } {
        Some(dtype) => set(object, dtype, descriptor).map(|()| true),
        None => Ok(false),
    }
}

/// Whether an exact array has the address, element type, shape and strides that it was described with, and is still writable if it
/// was. `false` for other objects. As describing it again, in a fraction of the time.
#[inline]
pub fn is_as_described(object: &Bound<'_, PyAny>, found: &Descriptor) -> bool {
    if !is_exact(object) || native_dtype(object) != Some(found.dtype()) {
        return false;
    }
    let itemsize = i64::try_from(found.dtype().itemsize()).unwrap_or(i64::MAX);
    let is_same_stride = |(stride, bytes): (&i64, &i64)| stride.checked_mul(itemsize) == Some(*bytes);
    with_memory(object, |data, readonly, shape, byte_strides| {
        data == found.ptr()
            && shape == found.shape()
            && std::iter::zip(found.strides(), byte_strides).all(is_same_stride)
            && (found.is_readonly() || !readonly)
    })
}

/// Describes an object that is an array. A dtype that is not NumPy's own may call back into Python code for the error.
#[inline]
pub fn describe(object: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<()> {
    if let Some(dtype) = native_dtype(object) {
        return set(object, dtype, descriptor);
    }
    dtype::of_descriptor(&object.cast::<PyUntypedArray>()?.dtype())?;
    redescribe(object, descriptor)
}

/// As [`describe`], without calling back into Python code: the error does not show an element type that cannot be shared.
pub fn redescribe(object: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<()> {
    let dtype = match native_dtype(object) {
        Some(dtype) => dtype,
        None => dtype::find(&object.cast::<PyUntypedArray>()?.dtype())?.ok_or_else(|| {
            ErrorKind::DType.error("an array with elements of a type that cannot be shared".to_owned())
        })?,
    };
    set(object, dtype, descriptor)
}

#[inline]
fn set(object: &Bound<'_, PyAny>, dtype: DType, descriptor: &mut Descriptor) -> PyResult<()> {
    with_memory(object, |data, readonly, shape, byte_strides| {
        descriptor.set_with_byte_strides(data, Device::CPU, dtype, readonly, shape, byte_strides)
    })?;
    Ok(())
}

/// The element type of an object that is an array, if it is one of NumPy's own in native byte order.
#[inline]
fn native_dtype(object: &Bound<'_, PyAny>) -> Option<DType> {
    // SAFETY: the callers have checked the type, and an array has a dtype, which lives as long as it does.
    unsafe { dtype::of_native((*object.as_ptr().cast::<PyArrayObject>()).fields.descr) }
}

/// Reads an object that is an array: its address, whether that is read-only, its shape, and its strides in bytes. `read` must not run
/// code that could change the array.
#[inline(always)]
fn with_memory<R>(object: &Bound<'_, PyAny>, read: impl FnOnce(*mut u8, bool, &[i64], &[i64]) -> R) -> R {
    // SAFETY: the callers have checked the type; no code runs before this returns that could free what the struct points to.
    unsafe {
        let fields = &(*object.as_ptr().cast::<PyArrayObject>()).fields;
        let ndim = usize::try_from(fields.nd).unwrap_or(0);
        let readonly = fields.flags & NPY_ARRAY_WRITEABLE == 0;
        read(fields.data.cast(), readonly, numbers(fields.dimensions, ndim), numbers(fields.strides, ndim))
    }
}

/// Returns the `ndim` numbers at `start`, without a question about NULL, which an array does not have there.
///
/// # Safety
/// - `start` points to `ndim` numbers that stay readable for the lifetime, unless `ndim` is 0.
#[inline(always)]
unsafe fn numbers<'a>(start: *const isize, ndim: usize) -> &'a [i64] {
    // SAFETY: passed on from the caller; `isize` and `i64` agree on 64-bit machines, the only targets.
    if ndim == 0 { &[] } else { unsafe { std::slice::from_raw_parts(start.cast::<i64>(), ndim) } }
}

const _: () = assert!(size_of::<isize>() == size_of::<i64>(), "dlfield is built for 64-bit machines");
