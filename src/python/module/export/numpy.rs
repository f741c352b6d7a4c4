//! NumPy arrays on our memory, and assignment through NumPy.

#![allow(unsafe_code, reason = "arrays are made through NumPy's C API")]

use std::ptr::{NonNull, null_mut};

use numpy::npyffi::{NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, get_type_object};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{DTypeError, DTypeErrorKind};
use crate::layout::Spec;
use crate::layout::extents::Extents;
use crate::python::convert::errors::ErrorKind;
use crate::python::convert::{args, dtype};
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::integers;
use crate::python::module::values;
use crate::python::{copies, import, interrupt, sync};
use crate::tensor::Tensor;
use crate::tensor::device::needs_copy;
use dlpark::ffi::DLDataTypeCode;

/// Returns a NumPy array on the tensor's memory, which it keeps alive. Read-only memory gives a read-only array.
pub(crate) fn view<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    view_of(&PyTensor::create(py, tensor.clone())?)
}

/// As [`view`], with the Python tensor itself as the array's base.
pub(crate) fn view_of<'py>(base: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    let py = base.py();
    let descriptor = base.get().0.descriptor();
    if sync::may_have_device_work(&base.get().0) {
        reach(py, &base.get().0)?;
    }
    array_on(base.as_any(), descriptor, !descriptor.is_readonly())
}

/// Returns a NumPy array with the shape and strides of `descriptor`, which describes host memory that `base` keeps alive.
pub(crate) fn array_on<'py>(
    base: &Bound<'py, PyAny>,
    descriptor: &Descriptor,
    writable: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = base.py();
    let element = dtype::to_numpy(py, descriptor.dtype())?.clone();
    // `isize` and `i64` are the same on the 64-bit machines this is built for.
    let mut shape: Extents = Extents::from_slice(descriptor.shape());
    let mut strides: Extents = descriptor.byte_strides().collect();
    let flags = if writable { NPY_ARRAY_WRITEABLE } else { 0 };
    let ndim = i32::try_from(shape.len()).unwrap_or(i32::MAX);
    // Without an address NumPy would allocate, and ignore the owner and the read-only flag.
    let nowhere = NonNull::<u128>::dangling().as_ptr().cast::<u8>();
    let data = if descriptor.ptr().is_null() { nowhere } else { descriptor.ptr() };
    // SAFETY: shape and strides have `ndim` entries; the call takes over the dtype's reference; `base` keeps the memory,
    // and becomes the array's base below before other code sees the array.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            element.into_dtype_ptr(),
            ndim,
            shape.as_mut_ptr().cast(),
            strides.as_mut_ptr().cast(),
            data.cast(),
            flags,
            null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        let base = base.clone().into_ptr();
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array)
    }
}

/// Rejects memory that the host cannot read, and waits for device work on other memory.
#[cold]
fn reach(py: Python<'_>, tensor: &Tensor) -> PyResult<()> {
    let device = tensor.descriptor().device();
    if !device.is_host_readable() {
        let message = format!(
            "device: {device} has no host buffer; copy it with to_device('cpu') or as_numpy(..., copy=True), or pass its \
             to_cupy() to CuPy's function of the same name"
        );
        return Err(ErrorKind::NoSuchBuffer.error(message));
    }
    Ok(sync::wait_for_device(py, tensor)?)
}

/// `target[...] = value` with NumPy's broadcasting and its "same_kind" rule for casts. Errors call the value `argument`.
pub(crate) fn assign<'py>(target: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>, argument: &str) -> PyResult<()> {
    let py = target.py();
    let named = |error| dtype::named(py, error, argument);
    let wanted = dtype::of_descriptor(&target.cast::<PyUntypedArray>()?.dtype())?;
    integers::check_one(value, wanted, argument)?;
    let array = integers::array_of(value, wanted, argument)?;
    let value = array.as_ref().unwrap_or(value);
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "casting"), intern!(py, "same_kind"))?;
    let copied = py.import(intern!(py, "numpy"))?.call_method(intern!(py, "copyto"), (target, value), Some(&keywords));
    match copied {
        Ok(_) => Ok(()),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            let message = format!("{argument}: its dtype cannot be cast by the rule 'same_kind'; cast it first");
            Err(dtype::wrapped(py, error, &message))
        }
        Err(error) if error.get_type(py).is(py.get_type::<PyValueError>()) => {
            let (numpy, expected) = (py.import(intern!(py, "numpy"))?, target.getattr(intern!(py, "shape"))?);
            let fits = numpy.call_method1(intern!(py, "broadcast_to"), (value, &expected));
            if interrupt::answer(py, fits)?.is_some() {
                return Err(named(error));
            }
            let wrong = shape_error(argument, &numpy.call_method1(intern!(py, "shape"), (value,))?, &expected);
            wrong.set_cause(py, Some(error));
            Err(wrong)
        }
        Err(error) => Err(named(error)),
    }
}

/// Casts a value to the elements of a new tensor of its shape, by the rule "same_kind". Errors call the value `argument`.
pub(crate) fn cast(value: &Bound<'_, PyAny>, wanted: DType, argument: &str) -> PyResult<Tensor> {
    let py = value.py();
    integers::check_one(value, wanted, argument)?;
    let array = integers::array_of(value, wanted, argument)?;
    let value = array.as_ref().unwrap_or(value);
    // NumPy casts Python's numbers by their value: the array that it makes of one is only asked for its shape.
    let shape = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "shape"), (value,))?;
    let made = Tensor::empty(&Spec::new(&shape.extract::<Vec<i64>>()?, wanted))?;
    assign(&view(py, &made)?, value, argument)?;
    Ok(made)
}

/// Returns a tensor whose elements NumPy can cast, as this crate has no such cast: on the host, if one of the two devices is. Else an
/// error says that the host has to cast; it is NumPy's for a cast that NumPy does not have either.
#[cold]
pub(crate) fn for_cast(py: Python<'_>, from: &Tensor, to: (DType, Device), argument: &str) -> PyResult<Tensor> {
    let (dtype, device) = (from.descriptor().dtype(), from.descriptor().device());
    if device.is_host_readable() || to.1.is_host_readable() {
        return Ok(copies::to(py, from, Device::CPU, None)?);
    }
    cast(view(py, &Tensor::empty(&Spec::new(&[0], dtype))?)?.as_any(), to.0, argument)?;
    let got = format_args!("{dtype} to {} on {device}, as only the host casts them", to.0);
    Err(DTypeError::new(argument, &"elements that a device casts", &got)
        .with_fix(&"copy to 'cpu' first")
        .with_kind(DTypeErrorKind::CastOnDevice)
        .into())
}

/// Casts an array of a type that tensors do not have, with its labels: of the other byte order, as old NetCDF files have it, to the same
/// numbers; `longdouble` and its complex numbers to `wanted`. `None` for any other array. Errors call the array `argument`.
#[cold]
pub(crate) fn converted(value: &Bound<'_, PyAny>, wanted: Option<DType>, argument: &str) -> PyResult<Option<Tensor>> {
    let array = values::as_array(value, argument)?;
    let to = match native_dtype(&array)? {
        Some(native) => dtype::find(native.cast()?)?,
        None if matches!(array.getattr("dtype")?.getattr("char")?.extract()?, 'g' | 'G') => wanted,
        None => None,
    };
    to.map(|to| with_metadata_of(value, cast(&array, to, argument)?)).transpose()
}

/// The dtype of an array of the other byte order, in the order of this machine; `None` for any other array, and for `longdouble`.
pub(crate) fn native_dtype<'py>(array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let dtype = array.getattr("dtype")?;
    if dtype.getattr("isnative")?.extract()? || matches!(dtype.getattr("char")?.extract()?, 'g' | 'G') {
        return Ok(None);
    }
    dtype.call_method1("newbyteorder", ("=",)).map(Some)
}

/// Gives a tensor that NumPy converted the metadata that NumPy's array does not have.
pub(crate) fn with_metadata_of(value: &Bound<'_, PyAny>, mut tensor: Tensor) -> PyResult<Tensor> {
    tensor.relabel(import::metadata_of(value)?)?;
    Ok(tensor)
}

/// Rejects the integer in a tensor without dimensions by an `OverflowError` if it does not fit, as one of NumPy's.
pub(crate) fn check_number(py: Python<'_>, tensor: &Tensor, wanted: DType, argument: &str) -> PyResult<()> {
    let found = tensor.descriptor();
    let is_integer = |dtype: DType| matches!(dtype.code(), DLDataTypeCode::INT | DLDataTypeCode::UINT);
    let may_overflow = found.dtype() != wanted && is_integer(found.dtype()) && is_integer(wanted);
    if found.ndim() > 0 || !may_overflow {
        return Ok(());
    }
    integers::check_one(&view(py, &copies::to(py, tensor, Device::CPU, None)?)?, wanted, argument)
}

/// The error for a value that is not repeated to the shape of its target.
pub(crate) fn shape_error(argument: &str, got: &Bound<'_, PyAny>, expected: &Bound<'_, PyAny>) -> PyErr {
    let (expected, got) = (args::shown(expected), args::shown(got));
    ErrorKind::Layout.error(format!("{argument}: expected a shape that repeats to {expected}, got {got}"))
}

/// `target[key] = value` for keys that only NumPy handles, with the same rule for casts.
pub(crate) fn assign_at<'py>(
    target: &Bound<'py, PyAny>,
    key: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let selected = target.get_item(key)?;
    if selected.cast::<PyUntypedArray>().is_err() {
        return target.set_item(key, value);
    }
    assign(&selected, value, "value")?;
    target.set_item(key, selected)
}

/// `__array__`: the view, cast or copied if requested.
pub(crate) fn array<'py>(
    base: &Bound<'py, PyTensor>,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = base.py();
    let array = view_of(base)?;
    let wanted = match dtype.filter(|dtype| !dtype.is_none()) {
        Some(dtype) => py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "dtype"), (dtype,))?,
        None => array.getattr(intern!(py, "dtype"))?,
    };
    let same = wanted.eq(array.getattr(intern!(py, "dtype"))?)?;
    match (same, copy) {
        (true, None | Some(false)) => Ok(array),
        (true, Some(true)) => array.call_method1(intern!(py, "copy"), ("K",)),
        (false, Some(false)) => {
            let held = base.get().0.descriptor().dtype();
            Err(needs_copy(&format_args!("dtype {wanted} is requested and the memory holds {held}")).into())
        }
        // NumPy 2.4 leaves elements unset that it casts to a sub-array in another order than C.
        (false, None | Some(true)) if wanted.getattr(intern!(py, "subdtype"))?.is_none() => {
            array.call_method1(intern!(py, "astype"), (wanted,))
        }
        (false, None | Some(true)) => array.call_method1(intern!(py, "astype"), (wanted, "C")),
    }
}
