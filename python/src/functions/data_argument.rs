//! The argument `data` of `from_array` and of the functions `*_like`: any array, or what NumPy converts to one.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::export::integers;
use crate::functions::keywords::Given;
use dlfield::native::errors::ErrorKind;
use dlfield::native::import::{self, Imported, Request, RequestAccess, Value};
use dlfield::native::{dtype, fastcall, numpy_api};
use dlfield::{DType, Descriptor, Device, Tensor};

/// Imports an array, or what NumPy can convert to one, without reading its elements. `origin` is the caller's argument.
pub(super) fn described(data: &Bound<'_, PyAny>, origin: Given<'_, '_>) -> PyResult<Tensor> {
    let given = import::with_given_origin(data, origin)?;
    import::own(data, Some(&given))?.map_or_else(|| converted(data, None), Ok)
}

/// As [`described`], for elements that are read and copied to `near`; those of the other byte order are converted, and integers in
/// lists cast to `wanted`.
pub(super) fn readable(
    data: &Bound<'_, PyAny>,
    near: Device,
    wanted: Option<DType>,
    origin: Given<'_, '_>,
) -> PyResult<Value> {
    let given = import::with_given_origin(data, origin)?;
    let found = import::value(data, near, Some(&given))
        .and_then(|found| found.map_or_else(|| converted(data, wanted).map(Value::from), Ok));
    match found {
        Err(error) if ErrorKind::DType.is(data.py(), &error) => Ok(in_native_byte_order(data)?.ok_or(error)?.into()),
        found => found,
    }
}

/// Describes a NumPy array in place, without owning it: for a copy that runs no other code meanwhile. Returns whether it has.
///
/// Only for an array that has its memory itself: a device may still work on what a view shows, which its owner knows.
#[inline]
pub(super) fn described_at_once(data: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> bool {
    if !numpy_api::is_exact(data) || numpy_api::base(data).is_some() {
        return false;
    }
    let request = const { &Request::new(RequestAccess::Read).with_metadata() };
    let mut imported = Imported::new(descriptor);
    match import::describe(data, request, &mut imported) {
        Ok(()) => imported.ran_no_code,
        Err(error) => {
            drop(error);
            fastcall::drop_deferred_references();
            false
        }
    }
}

/// Converts an object to an array with NumPy, and casts integers and bools to `wanted`; those of more than 64 bits to `int64`,
/// if nothing else is wanted, in which they do not fit.
fn converted(data: &Bound<'_, PyAny>, wanted: Option<DType>) -> PyResult<Tensor> {
    let py = data.py();
    let array = py.import("numpy")?.call_method1("asarray", (data,));
    // Rows of different lengths. Other errors may be those of an object in a list, and stay what they are.
    let is_value_error = |error: &PyErr| error.get_type(py).is(py.get_type::<PyValueError>());
    let mut array =
        array.map_err(|error| if is_value_error(&error) { dtype::named(py, error, "data") } else { error })?;
    let holds_objects = array.getattr("dtype")?.getattr("kind")?.extract::<char>()? == 'O';
    if let Some(wanted) = wanted.or(holds_objects.then_some(DType::I64)) {
        array = integers::fitted(array, wanted, "data")?;
    }
    // NumPy makes an array of one object from anything that it does not understand.
    let not_an_array =
        || ErrorKind::NotAnArray.error(format!("data: {} is not an array, nor a number or list", data.get_type()));
    if array.getattr("ndim")?.extract::<usize>()? == 0
        && array.getattr("dtype")?.getattr("kind")?.extract::<char>()? == 'O'
    {
        return Err(not_an_array());
    }
    with_metadata_of(data, import::own(&array, None)?.ok_or_else(not_an_array)?)
}

/// Converts an array of the other byte order with NumPy, as old NetCDF files have it; `None` for any other array.
fn in_native_byte_order(data: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    let array = data.py().import("numpy")?.call_method1("asarray", (data,))?;
    let dtype = array.getattr("dtype")?;
    if dtype.getattr("isnative")?.extract()? {
        return Ok(None);
    }
    let converted = array.call_method1("astype", (dtype.call_method1("newbyteorder", ("=",))?,))?;
    import::own(&converted, None)?.map(|tensor| with_metadata_of(data, tensor)).transpose()
}

/// Gives a tensor that NumPy converted the metadata that NumPy's array lacks.
fn with_metadata_of(data: &Bound<'_, PyAny>, mut tensor: Tensor) -> PyResult<Tensor> {
    tensor.relabel(import::metadata_of(data)?)?;
    Ok(tensor)
}
