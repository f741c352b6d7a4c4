//! Python's integers, alone and in lists, which have no element type of their own: before NumPy casts them, they have to fit.

use numpy::npyffi::NpyTypes;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyRange, PyTuple};

use crate::dtype::DType;
use crate::python::convert::{args, dtype};
use crate::python::ffi::new_error::{ArgumentError, new_error};
use crate::python::ffi::numpy_api;
use crate::python::module::values;
use dlpark::ffi::DLDataTypeCode;

/// Returns the array that NumPy makes of a list, a tuple or a range, with integers and bools cast as by [`fitted`]; `None` for
/// any other value.
pub(crate) fn array_of<'py>(
    value: &Bound<'py, PyAny>,
    wanted: DType,
    argument: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_list =
        value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyRange>();
    if !is_list {
        return Ok(None);
    }
    fitted(values::as_array(value, argument)?, wanted, argument).map(Some)
}

/// Casts an array of integers or bools to integers or bools, and integers of more than 64 bits, which NumPy keeps as objects, to
/// any type. An array of other elements stays as it is, and so does one for floating-point numbers, to which the rule
/// "same_kind" casts.
///
/// Raises `OverflowError` for a number that does not fit.
pub(crate) fn fitted<'py>(array: Bound<'py, PyAny>, wanted: DType, argument: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let kind: char = array.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
    let is_wide = kind == 'O' && holds_integers(&array)?;
    let is_for_floats = !matches!(wanted.code(), DLDataTypeCode::BOOL | DLDataTypeCode::INT | DLDataTypeCode::UINT);
    if !is_wide && (is_for_floats || !matches!(kind, 'b' | 'i' | 'u')) {
        return Ok(array);
    }
    if kind != 'b' && array.getattr(intern!(py, "size"))?.extract::<usize>()? > 0 {
        for extreme in [intern!(py, "min"), intern!(py, "max")] {
            check_fits(&array.call_method0(extreme)?, wanted, argument)?;
        }
    }
    let cast =
        py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (array, dtype::to_numpy(py, wanted)?));
    cast.map_err(|error| {
        // The element types that NumPy does not have are not cast from objects.
        let is_type_error = error.is_instance_of::<PyTypeError>(py);
        let message =
            format!("{argument}: integers of more than 64 bits cannot be cast to {wanted}; cast them to float64 first");
        if is_type_error { dtype::wrapped(py, error, &message) } else { dtype::named(py, error, argument) }
    })
}

/// Rejects one of Python's or NumPy's integers that the integers of type `wanted` do not have, by an `OverflowError`. Other types
/// are left to NumPy.
fn check_fits(found: &Bound<'_, PyAny>, wanted: DType, argument: &str) -> PyResult<()> {
    let bits = u32::from(wanted.bits());
    let (lowest, highest): (i128, i128) = match wanted.code() {
        DLDataTypeCode::INT => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        DLDataTypeCode::UINT => (0, (1 << bits) - 1),
        _ => return Ok(()),
    };
    // Python's integers have no limit.
    if found.extract::<i128>().is_ok_and(|found| (lowest..=highest).contains(&found)) {
        return Ok(());
    }
    // NumPy's integers are shown with their class.
    let found = args::shown(&found.call_method0(intern!(found.py(), "__index__"))?);
    let expected = format_args!("{lowest} to {highest} for {wanted}");
    Err(new_error::<PyOverflowError>(ArgumentError::new(argument, &expected, &found)))
}

/// Rejects one integer as [`check_fits`], before NumPy casts it: Python's, NumPy's, or that of one of its arrays without dimensions.
/// Every other value passes.
pub(crate) fn check_one(value: &Bound<'_, PyAny>, wanted: DType, argument: &str) -> PyResult<()> {
    let is_integer = if value.is_instance_of::<PyInt>() {
        !args::is_bool(value)
    } else if numpy_api::is_scalar(value, NpyTypes::PyGenericArrType_Type)
        || value.cast::<PyUntypedArray>().is_ok_and(|array| array.ndim() == 0)
    {
        let dtype = value.getattr_opt(intern!(value.py(), "dtype"))?;
        let kind = dtype.map(|dtype| dtype.getattr(intern!(value.py(), "kind"))?.extract::<char>()).transpose()?;
        matches!(kind, Some('i' | 'u'))
    } else {
        false
    };
    if is_integer { check_fits(value, wanted, argument) } else { Ok(()) }
}

/// Whether all elements of an array of objects are Python's integers, and there are some.
fn holds_integers(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let objects = array.call_method0(intern!(array.py(), "ravel"))?.call_method0(intern!(array.py(), "tolist"))?;
    let objects = objects.cast::<PyList>()?;
    Ok(!objects.is_empty() && objects.iter().all(|object| object.is_exact_instance_of::<PyInt>()))
}
