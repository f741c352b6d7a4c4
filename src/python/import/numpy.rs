//! Imports NumPy arrays by reading their C struct: exact arrays, and subclasses that inherit `__dlpack__`.

#![allow(unsafe_code, reason = "the array struct is read without a call into NumPy")]

use numpy::npyffi::{NPY_ARRAY_WRITEABLE, PyArrayObject};
use numpy::{PyArrayDescr, PyUntypedArray};
use pyo3::prelude::*;
use pyo3::{PyTypeInfo, intern};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::python::convert::dtype;
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::numpy_api::{is_array, is_exact};
use crate::python::import::imported::Imported;
use crate::python::import::owners;
use crate::python::import::request::{Ownership, Request};
use crate::python::interrupt;

#[inline]
pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    if is_exact(object) { import_struct(object, request, imported) } else { Ok(false) }
}

/// Imports instances of subclasses such as `numpy.memmap` that do not override `__dlpack__`. Rejects masked arrays with a masked
/// point: the mask would be lost.
pub(super) fn import_subclass(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    let py = object.py();
    if !is_array(object) {
        return Ok(false);
    }
    refuse_mask(object, "obj")?;
    let export = intern!(py, "__dlpack__");
    let base = PyUntypedArray::type_object(py).getattr(export)?;
    let inherited = object.get_type().getattr(export)?.is(&base);
    if inherited { import_struct(object, request, imported) } else { Ok(false) }
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
fn import_struct(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    if request.ownership == Ownership::Borrow {
        describe(object, imported.descriptor)?;
        return Ok(imported.borrowed());
    }
    import_pinned(object, imported)
}

/// As [`import_struct`], for memory that outlives the call.
fn import_pinned(object: &Bound<'_, PyAny>, imported: &mut Imported<'_, '_>) -> PyResult<bool> {
    // The owner first: it keeps the memory at the address that is read next.
    let owner = owners::of_array(object)?;
    describe(object, imported.descriptor)?;
    Ok(imported.owned(owner))
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
    with_memory(object, |memory| {
        memory.data == found.ptr()
            && memory.shape == found.shape()
            && std::iter::zip(found.strides(), memory.byte_strides).all(is_same_stride)
            && (found.is_readonly() || !memory.readonly)
    })
}

/// Describes an object that is an array.
#[inline]
pub(super) fn describe(object: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<()> {
    match native_dtype(object) {
        Some(dtype) => set(object, dtype, descriptor),
        None => describe_inspected(object, descriptor),
    }
}

/// As [`describe`], for a dtype that has to be inspected first, which may call back into Python code.
#[cold]
fn describe_inspected(object: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<()> {
    dtype::of_descriptor(&dtype_object(object)?)?;
    redescribe(object, descriptor)
}

/// As [`describe`], without calling back into Python code: the error does not show an element type that cannot be shared.
pub(super) fn redescribe(object: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<()> {
    let dtype = match native_dtype(object) {
        Some(dtype) => dtype,
        None => dtype::find(&dtype_object(object)?)?.ok_or_else(|| {
            ErrorKind::DType.error("an array with elements of a type that cannot be shared".to_owned())
        })?,
    };
    set(object, dtype, descriptor)
}

#[inline]
fn set(object: &Bound<'_, PyAny>, dtype: DType, descriptor: &mut Descriptor) -> PyResult<()> {
    with_memory(object, |memory| {
        let Memory { data, readonly, shape, byte_strides } = memory;
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

/// What an array's struct says about its memory.
struct Memory<'a> {
    data: *mut u8,
    readonly: bool,
    shape: &'a [i64],
    byte_strides: &'a [i64],
}

/// Reads an object that is an array. `read` must not run code that could change the array.
#[inline]
fn with_memory<R>(object: &Bound<'_, PyAny>, read: impl FnOnce(Memory<'_>) -> R) -> R {
    // SAFETY: the callers have checked the type; no code runs before this returns that could free what the struct points to.
    let memory = unsafe {
        let fields = &(*object.as_ptr().cast::<PyArrayObject>()).fields;
        let ndim = usize::try_from(fields.nd).unwrap_or(0);
        Memory {
            data: fields.data.cast(),
            readonly: fields.flags & NPY_ARRAY_WRITEABLE == 0,
            shape: numbers(fields.dimensions, ndim),
            byte_strides: numbers(fields.strides, ndim),
        }
    };
    read(memory)
}

/// Returns the dtype object of an array.
#[cold]
fn dtype_object<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDescr>> {
    let object = array.as_ptr().cast::<PyArrayObject>();
    // SAFETY: the callers have checked the type, and an array has a dtype.
    let descriptor = unsafe { Bound::from_borrowed_ptr(array.py(), (*object).fields.descr.cast()) };
    Ok(descriptor.cast_into::<PyArrayDescr>()?)
}

/// Returns the `ndim` numbers at `start`.
///
/// # Safety
/// - `start` points to `ndim` numbers that stay readable for the lifetime, unless `ndim` is 0.
unsafe fn numbers<'a>(start: *const isize, ndim: usize) -> &'a [i64] {
    if ndim == 0 {
        return &[];
    }
    // SAFETY: passed on from the caller; `isize` and `i64` agree on 64-bit machines, the only targets.
    unsafe { std::slice::from_raw_parts(start.cast::<i64>(), ndim) }
}

const _: () = assert!(size_of::<isize>() == size_of::<i64>(), "dlfield is built for 64-bit machines");
