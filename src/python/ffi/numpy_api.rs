//! NumPy's array type, without importing NumPy.

#![allow(unsafe_code, reason = "types and array structs are read as the C structs they are")]

use std::ffi::CStr;
use std::ops::Range;
use std::ptr::null_mut;
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicPtr, Ordering};

use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use numpy::npyffi::{NPY_ARRAY_OWNDATA, NpyTypes, PyArrayInterface, PyArrayObject, get_type_object, npy_intp};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods, get_array_module};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3::{ffi, intern};

use crate::layout::Extents;
use crate::protocol::array_struct::ArrayStruct;
use crate::python::ffi::getattr::loaded;
use crate::python::interrupt;
use crate::tensor::{Owner, owner_in};

/// NumPy's array type; NULL until NumPy is known to be imported.
static ARRAY: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

/// NumPy's array type, or NULL if NumPy is not imported: then no arrays exist, so it is not imported for this.
#[inline]
fn array_type(py: Python<'_>) -> *mut ffi::PyTypeObject {
    let known = ARRAY.load(Ordering::Relaxed);
    if known.is_null() { find(py) } else { known }
}

#[cold]
fn find(py: Python<'_>) -> *mut ffi::PyTypeObject {
    let found = loaded(py, "numpy").and_then(|numpy| numpy.map_or(Ok(()), |_| require(py)));
    if let Err(error) = found {
        interrupt::put_off(py, &error);
    }
    ARRAY.load(Ordering::Relaxed)
}

/// Whether NumPy is known to be imported, as it is once an array was seen.
#[inline]
pub fn is_imported() -> bool {
    !ARRAY.load(Ordering::Relaxed).is_null()
}

/// Imports NumPy before its C API is used, which would panic otherwise.
pub fn require(py: Python<'_>) -> PyResult<()> {
    if ARRAY.load(Ordering::Relaxed).is_null() {
        get_array_module(py)?.getattr(intern!(py, "_ARRAY_API"))?.cast_into::<PyCapsule>()?;
        // SAFETY: attached, and NumPy's C API is there; the call returns NumPy's type object.
        ARRAY.store(unsafe { get_type_object(py, NpyTypes::PyArray_Type) }, Ordering::Relaxed);
    }
    Ok(())
}

/// Whether the object is a `numpy.ndarray`, and not of a subclass.
#[inline]
pub fn is_exact(object: &Bound<'_, PyAny>) -> bool {
    object.get_type_ptr() == array_type(object.py())
}

/// Whether the object is a `numpy.ndarray`.
pub fn is_array(object: &Bound<'_, PyAny>) -> bool {
    let array = array_type(object.py());
    // SAFETY: two live types.
    !array.is_null() && unsafe { ffi::PyType_IsSubtype(object.get_type_ptr(), array) != 0 }
}

/// Whether the object is a scalar of NumPy, of this type or a subtype; `PyGenericArrType_Type` is that of all.
pub fn is_scalar(object: &Bound<'_, PyAny>, ty: NpyTypes) -> bool {
    let py = object.py();
    // SAFETY: the array type is not NULL, so NumPy's C API is there; the second call gets two live types.
    !array_type(py).is_null() && unsafe { ffi::PyType_IsSubtype(object.get_type_ptr(), get_type_object(py, ty)) != 0 }
}

/// The object that an array borrows its memory from; `None` if the array owns it.
#[inline]
pub fn base<'py>(array: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the callers have checked the type; the base is NULL or an object that the array keeps alive.
    unsafe {
        let fields = &(*array.as_ptr().cast::<PyArrayObject>()).fields;
        // A write-back copy owns its memory and has a base too.
        let borrowed = fields.flags & NPY_ARRAY_OWNDATA == 0;
        if borrowed { Bound::from_borrowed_ptr_or_opt(array.py(), fields.base) } else { None }
    }
}

/// Returns the `ndim` numbers at `start`; `None` for NULL unless `ndim` is 0.
///
/// # Safety
/// - `start` is NULL or points to `ndim` numbers that stay readable for the lifetime.
#[inline]
pub unsafe fn numbers<'a>(start: *const isize, ndim: usize) -> Option<&'a [i64]> {
    match (start.is_null(), ndim) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: not NULL, so readable as the caller promises; `isize` and `i64` agree on 64-bit machines, the only targets.
        (false, _) => Some(unsafe { from_raw_parts(start.cast(), ndim) }),
    }
}

/// Whether an array's memory was made for this call: the caller has the only reference to the array, and so on along its
/// bases. `false` for memory that NumPy does not own, as nothing tells.
pub fn is_fresh(array: &Bound<'_, PyAny>) -> bool {
    let mut object = array.clone();
    // The clone is one reference more.
    while is_array(&object) && references(&object) <= 2 {
        match base(&object) {
            Some(base) => object = base,
            None => return own_memory(&object).is_some(),
        }
    }
    false
}

/// Returns the number of references to an object.
pub fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: a bound object is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

/// Returns the owner of a `Tensor`'s memory that `numpy.from_dlpack` has made an array of; `None` for any other base of an array.
///
/// Source: `NPY_DLPACK_INTERNAL_CAPSULE_NAME` and its versioned twin in NumPy's `npy_dlpack.h`.
pub fn owner_of_import(base: &Bound<'_, PyAny>) -> Option<Owner> {
    const VERSIONED: &CStr = c"numpy_dltensor_versioned";
    const LEGACY: &CStr = c"numpy_dltensor";
    let capsule = base.cast_exact::<PyCapsule>().ok()?;
    let held = |name| capsule.is_valid_checked(Some(name)).then(|| capsule.pointer_checked(Some(name)).ok()).flatten();
    // SAFETY: NumPy keeps the managed tensor of each kind in a capsule of this name, as long as the capsule lives.
    unsafe {
        if let Some(versioned) = held(VERSIONED) {
            return owner_in(versioned.cast::<DLManagedTensorVersioned>().as_ref());
        }
        owner_in(held(LEGACY)?.cast::<DLManagedTensor>().as_ref())
    }
}

/// The memory that NumPy has allocated for an array, which it can resize; `None` for memory of others.
pub fn own_memory(array: &Bound<'_, PyAny>) -> Option<Range<usize>> {
    let array = array.cast::<PyUntypedArray>().ok().filter(|array| base(array).is_none())?;
    // SAFETY: the type is that of arrays.
    let fields = unsafe { &(*array.as_array_ptr()).fields };
    let (start, bytes) = (fields.data.addr(), array.len() * array.dtype().itemsize());
    (fields.flags & NPY_ARRAY_OWNDATA != 0).then(|| start..start + bytes)
}

/// A `PyArrayInterface` without its `descr`, and that if it is valid.
type StructAndDescr<'py> = (ArrayStruct, Option<Bound<'py, PyAny>>);

/// Reads the `PyArrayInterface` in a capsule. `None` for an object that is not such a capsule. Errors as [`ArrayStruct::ndim`].
pub fn array_struct<'py>(capsule: &Bound<'py, PyAny>) -> PyResult<Option<StructAndDescr<'py>>> {
    let Some(unnamed) = capsule.cast::<PyCapsule>().ok().filter(|capsule| capsule.is_valid_checked(None)) else {
        return Ok(None);
    };
    let start = unnamed.pointer_checked(None)?.cast::<PyArrayInterface>();
    // SAFETY: by NumPy's protocol a capsule without a name holds the struct, which lives as long as the capsule.
    let raw = unsafe { *start.as_ref() };
    let ndim = ArrayStruct::ndim(raw.two, raw.nd)?;
    let numbers = |first: *const npy_intp| {
        // SAFETY: the protocol promises `nd` numbers at this address, which is not NULL. They are 64 bits wide.
        (!first.is_null()).then(|| Extents::from_slice(unsafe { from_raw_parts(first.cast::<i64>(), ndim) }))
    };
    let found = ArrayStruct {
        ndim,
        typekind: raw.typekind.to_ne_bytes()[0],
        itemsize: raw.itemsize,
        flags: raw.flags,
        shape: numbers(raw.shape),
        byte_strides: numbers(raw.strides),
        address: u64::try_from(raw.data.addr()).unwrap_or(u64::MAX),
    };
    let descr = if found.has_descr() { raw.descr } else { null_mut() };
    // SAFETY: NULL, or by the flag an object that the struct keeps alive.
    let descr = unsafe { Bound::from_borrowed_ptr_or_opt(capsule.py(), descr) };
    Ok(Some((found, descr)))
}
