//! The argument `data` of `from_array` and of the functions `*_like`: any array, or what NumPy converts to one.

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::new_error::ArgumentError;
use crate::python::ffi::numpy_api;
use crate::python::import::{self, Imported, Request, RequestAccess};
use crate::python::interrupt;
use crate::python::module::export::{self, integers};
use crate::python::module::functions::keywords::Given;
use crate::python::module::values::{self, Value};
use crate::tensor::Tensor;

/// Imports an array, or what NumPy can convert to one, without reading its elements. `origin` is the caller's argument.
pub(super) fn described(data: &Bound<'_, PyAny>, origin: Given<'_, '_>) -> PyResult<Tensor> {
    let given = import::with_given_origin(data, origin)?;
    match import::own(data, Some(&given)) {
        // Of the other byte order: the same memory tells all but the elements.
        Err(error) if ErrorKind::DType.is(data.py(), &error) => {
            let array = values::as_array(data, "data")?;
            let view = array.call_method1("view", (export::numpy::native_dtype(&array)?.ok_or(error)?,))?;
            let tensor = import::own(&view, Some(&given))?.map_or_else(|| converted(&view, None), Ok)?;
            export::numpy::with_metadata_of(data, tensor)
        }
        found => found?.map_or_else(|| converted(data, None), Ok),
    }
}

/// As [`described`], for elements that are read and copied to `near`. NumPy casts integers in lists to `wanted`, and elements
/// that only NumPy has to a type that tensors have.
pub(super) fn readable(
    data: &Bound<'_, PyAny>,
    near: Device,
    wanted: Option<DType>,
    origin: Given<'_, '_>,
) -> PyResult<Value> {
    let given = import::with_given_origin(data, origin)?;
    match values::value(data, near, Some(&given)) {
        Ok(None) => converted(data, wanted).map(Value::from),
        Ok(Some(found)) => Ok(found),
        Err(error) if ErrorKind::DType.is(data.py(), &error) => {
            export::numpy::converted(data, wanted, "data")?.map(Value::from).ok_or(error)
        }
        Err(error) => Err(ErrorKind::of_argument(data.py(), "data", error)),
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
        Ok(()) => true,
        Err(error) => {
            interrupt::put_off(data.py(), &error);
            false
        }
    }
}

/// Converts an object to an array with NumPy, and casts integers and bools to `wanted`; those of more than 64 bits to `int64`,
/// unless another type is requested, in which they do not fit.
fn converted(data: &Bound<'_, PyAny>, wanted: Option<DType>) -> PyResult<Tensor> {
    let mut array = values::as_array(data, "data")?;
    let holds_objects = array.getattr("dtype")?.getattr("kind")?.extract::<char>()? == 'O';
    if let Some(wanted) = wanted.or(holds_objects.then_some(DType::I64)) {
        array = integers::fitted(array, wanted, "data")?;
    }
    // NumPy makes an array of one object from anything that it does not understand.
    let not_an_array =
        || ErrorKind::NotAnArray.error(ArgumentError::new("data", &"an array, a number or a list", &data.get_type()));
    if array.getattr("ndim")?.extract::<usize>()? == 0
        && array.getattr("dtype")?.getattr("kind")?.extract::<char>()? == 'O'
    {
        return Err(not_an_array());
    }
    let tensor = match import::own(&array, None) {
        Err(error) if ErrorKind::DType.is(data.py(), &error) => {
            return export::numpy::converted(data, wanted, "data")?.ok_or(error);
        }
        found => found?.ok_or_else(not_an_array)?,
    };
    export::numpy::with_metadata_of(data, tensor)
}
