//! The value that `ones` and `full` write to every element.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyComplexMethods, PyFloat, PyInt, PyList, PyTuple};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::python::convert::{args, dtype};
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::integers;
use crate::python::module::methods::numbers;
use crate::python::module::values;

/// The bytes of one element.
type Element = SmallVec<[u8; 16]>;

/// The bytes of one element with `value`, cast as by `numpy.full`.
pub(super) fn element(value: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Element> {
    converted(value, dtype).map_or_else(|| by_numpy(value, dtype), Ok)
}

/// The bytes of a one.
pub(super) fn one(py: Python<'_>, dtype: DType) -> PyResult<Element> {
    of_int(1, dtype).map_or_else(|| by_numpy(PyInt::new(py, 1).as_any(), dtype), Ok)
}

/// Converts one of Python's own numbers to an element of NumPy's own types, if neither rounding nor an error of NumPy can
/// depend on NumPy's version or on `numpy.errstate`; `None` otherwise.
fn converted(value: &Bound<'_, PyAny>, dtype: DType) -> Option<Element> {
    // A subclass may convert itself to another number.
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        of_float(number.value(), dtype)
    } else if let Ok(number) = value.cast_exact::<PyInt>() {
        of_int(number.extract().ok()?, dtype)
    } else if let Ok(flag) = value.cast_exact::<PyBool>() {
        of_int(i64::from(flag.is_true()), dtype)
    } else if let Ok(number) = value.cast_exact::<PyComplex>() {
        of_complex(number.real(), number.imag(), dtype)
    } else {
        None
    }
}

fn of_float(number: f64, dtype: DType) -> Option<Element> {
    match dtype {
        DType::F64 => Some(bytes(number.to_ne_bytes())),
        DType::F32 => Some(bytes(narrowed(number)?.to_ne_bytes())),
        DType::C64 | DType::C128 => of_complex(number, 0.0, dtype),
        // Of NumPy's casts to integers and bool, some are errors or warn.
        _ => None,
    }
}

fn of_complex(real: f64, imaginary: f64, dtype: DType) -> Option<Element> {
    match dtype {
        DType::C128 => Some(pair(real.to_ne_bytes(), imaginary.to_ne_bytes())),
        DType::C64 => Some(pair(narrowed(real)?.to_ne_bytes(), narrowed(imaginary)?.to_ne_bytes())),
        _ => None,
    }
}

fn of_int(number: i64, dtype: DType) -> Option<Element> {
    /// Integers up to here are numbers of 24 bits, which `float32` has.
    const EXACT: u64 = 1 << 24;
    Some(match dtype {
        DType::I8 => bytes(i8::try_from(number).ok()?.to_ne_bytes()),
        DType::I16 => bytes(i16::try_from(number).ok()?.to_ne_bytes()),
        DType::I32 => bytes(i32::try_from(number).ok()?.to_ne_bytes()),
        DType::I64 => bytes(number.to_ne_bytes()),
        DType::U8 => bytes(u8::try_from(number).ok()?.to_ne_bytes()),
        DType::U16 => bytes(u16::try_from(number).ok()?.to_ne_bytes()),
        DType::U32 => bytes(u32::try_from(number).ok()?.to_ne_bytes()),
        DType::U64 => bytes(u64::try_from(number).ok()?.to_ne_bytes()),
        DType::BOOL if number == 0 || number == 1 => bytes(u8::try_from(number).ok()?.to_ne_bytes()),
        DType::F32 | DType::F64 | DType::C64 | DType::C128 if number.unsigned_abs() <= EXACT => {
            of_float(f64::from(i32::try_from(number).ok()?), dtype)?
        }
        _ => return None,
    })
}

/// Rounds to `float32`; `None` for numbers at which the processor sets a flag that NumPy reports: too large, too small, or
/// not a number.
fn narrowed(number: f64) -> Option<f32> {
    let in_range = (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&number.abs());
    #[allow(clippy::cast_possible_truncation, reason = "rounding is intended")]
    (in_range || number == 0.0 || number.is_infinite()).then_some(number as f32)
}

fn bytes<const N: usize>(bytes: [u8; N]) -> Element {
    Element::from_slice(&bytes)
}

fn pair<const N: usize>(first: [u8; N], second: [u8; N]) -> Element {
    let mut both = Element::from_slice(&first);
    both.extend_from_slice(&second);
    both
}

/// The bytes of one element with `value`, cast by `numpy.full` itself.
fn by_numpy(value: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Element> {
    let py = value.py();
    // NumPy reads no memory of a device.
    let on_host = value.cast::<PyTensor>().ok().map(numbers::on_host).transpose()?;
    let value = on_host.as_ref().unwrap_or(value);
    integers::check_one(value, dtype, "fill_value")?;
    let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    let array = values::as_array(value, "fill_value")?;
    if !is_list {
        integers::check_one(&array, dtype, "fill_value")?;
    }
    let scalar = (PyTuple::empty(py), value, dtype::to_numpy(py, dtype)?);
    let array = py.import("numpy")?.call_method1("full", scalar).map_err(|error| {
        if error.is_instance_of::<PyTypeError>(py) {
            let what = format!("fill_value: {} is not a {}", args::shown(value), dtype);
            return dtype::wrapped(py, error, &what);
        }
        let is_value_error = error.get_type(py).is(py.get_type::<PyValueError>());
        if is_value_error && is_list {
            let what =
                format!("fill_value: {} is not one element; from_array(data) copies several", args::shown(value));
            return dtype::named(py, error, &what);
        }
        dtype::named(py, error, "fill_value")
    })?;
    let bytes = array.call_method0("tobytes")?;
    Ok(Element::from_slice(bytes.cast::<PyBytes>()?.as_bytes()))
}
