//! Imports NumPy arrays by reading their C struct: exact arrays, and subclasses that inherit `__dlpack__`.

#![allow(unsafe_code, reason = "the array struct is read without a call into NumPy")]

use numpy::npyffi::{NPY_ARRAY_WRITEABLE, PyArrayObject};
use numpy::{PyArrayDescr, PyUntypedArray};
use pyo3::prelude::*;
use pyo3::{PyTypeInfo, intern};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::protocol::ExchangeError;
use crate::python::convert::dtype;
use crate::python::ffi::numpy_api::{base, is_array, is_exact};
use crate::python::import::imported::Imported;
use crate::python::import::owners;
use crate::python::import::request::{Ownership, Request};

#[inline]
pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    if is_exact(object) { import_struct(object, request, imported) } else { Ok(false) }
}

/// Imports instances of subclasses such as `numpy.memmap` that do not override `__dlpack__`. Rejects masked arrays: the mask
/// would be lost.
pub(super) fn import_subclass(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    let py = object.py();
    if !is_array(object) {
        return Ok(false);
    }
    if object.is_instance(&py.import(intern!(py, "numpy.ma"))?.getattr(intern!(py, "MaskedArray"))?)? {
        let got = "a masked array, whose mask no protocol can express".to_owned();
        let allowed = "an ordinary array: pass .data, or .filled() to replace masked elements";
        return Err(ExchangeError::Argument { argument: "obj", got, allowed }.into());
    }
    let export = intern!(py, "__dlpack__");
    let base = PyUntypedArray::type_object(py).getattr(export)?;
    let inherited = object.get_type().getattr(export)?.is(&base);
    if inherited { import_struct(object, request, imported) } else { Ok(false) }
}

/// Imports an object that is an array.
#[inline]
fn import_struct(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    if request.ownership == Ownership::Borrow {
        imported.ran_no_code = !describe(object, imported.descriptor)?;
        return Ok(imported.borrowed());
    }
    import_pinned(object, imported)
}

/// As [`import_struct`], for memory that outlives the call.
fn import_pinned(object: &Bound<'_, PyAny>, imported: &mut Imported<'_, '_>) -> PyResult<bool> {
    // The owner first: it keeps the memory at the address that is read next.
    let owner = match base(object).and_then(|base| owners::exporting_tensor(&base)) {
        Some(owner) => owner,
        None => owners::pinned_array(object)?,
    };
    describe(object, imported.descriptor)?;
    Ok(imported.owned(owner))
}

/// Describes an exact array for the length of a call. Such an array has no metadata and no hooks, and its memory is the host's:
/// nothing else is left of an import. `None` for other objects; else whether foreign code may have run.
#[inline]
pub fn describe_exact(object: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<Option<bool>> {
    if is_exact(object) { describe(object, descriptor).map(Some) } else { Ok(None) }
}

/// Describes an object that is an array. `true` if its dtype had to be inspected, which may run foreign code.
#[inline]
pub(super) fn describe(object: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<bool> {
    let array = object.as_ptr().cast::<PyArrayObject>();
    // SAFETY: the callers have checked the type, and an array has a dtype, which lives as long as it does.
    let native = unsafe { dtype::of_native((*array).fields.descr) };
    let dtype = match native {
        Some(dtype) => dtype,
        None => unusual(object)?,
    };
    // Read after the dtype: inspecting it may run foreign code, which may change the array's shape.
    // SAFETY: as above; no code runs before this returns that could change the array or free what the struct points to.
    let (fields, shape, byte_strides) = unsafe {
        let fields = &(*array).fields;
        let ndim = usize::try_from(fields.nd).unwrap_or(0);
        (fields, numbers(fields.dimensions, ndim), numbers(fields.strides, ndim))
    };
    let readonly = fields.flags & NPY_ARRAY_WRITEABLE == 0;
    let data = fields.data.cast();
    descriptor.set_with_byte_strides(data, Device::CPU, dtype, readonly, shape, byte_strides)?;
    Ok(native.is_none())
}

/// Returns the element type of an array if it is not one of NumPy's own in native byte order.
#[cold]
fn unusual(array: &Bound<'_, PyAny>) -> PyResult<DType> {
    let object = array.as_ptr().cast::<PyArrayObject>();
    // SAFETY: the callers have checked the type, and an array has a dtype.
    let descriptor = unsafe { Bound::from_borrowed_ptr(array.py(), (*object).fields.descr.cast()) };
    dtype::of_descriptor(&descriptor.cast_into::<PyArrayDescr>()?)
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
