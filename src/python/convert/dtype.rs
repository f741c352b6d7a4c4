//! Element types: NumPy's dtype objects, and the other forms that users pass.

#![allow(unsafe_code, reason = "dtype objects are read as the C structs they are")]

use std::fmt::Display;
use std::sync::atomic::{AtomicU8, Ordering};

use numpy::npyffi::PyArray_Descr;
use numpy::npyffi::types::NPY_TYPES;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use crate::dtype::DType;
use crate::error::DTypeError;
use crate::layout::Extents;
use crate::python::convert::args::shown;
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::new_error::new_error_of;
use crate::python::ffi::{getattr, numpy_api};
use crate::python::interrupt::is_interrupt;
use crate::python::nearest::did_you_mean;

/// The first type number that NumPy gives to types of other packages.
const FIRST_USER_TYPE: i32 = 256;

/// For each added type number, the index of the element type plus 1; 0 while unknown. NumPy assigns the numbers once per
/// process.
static USER_TYPES: [AtomicU8; 64] = [const { AtomicU8::new(0) }; 64];

/// NumPy's dtype object of each element type, made on first use.
static DESCRIPTORS: [PyOnceLock<Py<PyArrayDescr>>; DType::COUNT] = [const { PyOnceLock::new() }; DType::COUNT];

/// Parses a `dtype` argument: an element type, and the trailing dimensions of a sub-array type.
pub fn parse(value: &Bound<'_, PyAny>) -> PyResult<(DType, Extents)> {
    let py = value.py();
    if let Ok(text) = value.cast::<PyString>()
        && let Some(dtype) = text.to_cow().ok().and_then(|text| DType::from_name(&text))
    {
        return Ok((dtype, Extents::new()));
    }
    if let Some(dtype) = of_torch(value)? {
        return Ok((dtype, Extents::new()));
    }
    // NumPy shows it in its error: PyTorch crashes as it prints a tensor whose storage was freed.
    let is_tensor = getattr::on_type(&value.get_type(), intern!(py, "__torch_function__")).is_some();
    if value.is_none() || is_tensor {
        return Err(DTypeError::new("dtype", &"an element type, as np.dtype() takes it", &shown(value)).into());
    }
    numpy_api::require(py)?;
    let descriptor = PyArrayDescr::new(py, value).map_err(|error| unknown(value, error))?;
    if let Some((base, _)) = subarray(&descriptor)? {
        let shape = crate::python::convert::args::ints("dtype", &descriptor.getattr("shape")?)?;
        return Ok((of_descriptor(&base)?, shape));
    }
    Ok((of_descriptor(&descriptor)?, Extents::new()))
}

/// The error for a value that NumPy cannot convert to a dtype.
#[cold]
fn unknown(value: &Bound<'_, PyAny>, cause: PyErr) -> PyErr {
    let py = value.py();
    let nearest = value.cast::<PyString>().ok().map(|text| {
        let names = DType::all().map(DType::name).chain(["float", "int", "complex"]);
        did_you_mean(py, &text.to_string_lossy(), names)
    });
    let expected = "an element type, such as 'float64', or a dtype of NumPy, ml_dtypes, PyTorch or JAX";
    let got = format_args!("{}{}", shown(value), nearest.unwrap_or_default());
    wrapped(py, cause, &DTypeError::new("dtype", &expected, &got))
}

fn subarray<'py>(
    descriptor: &Bound<'py, PyArrayDescr>,
) -> PyResult<Option<(Bound<'py, PyArrayDescr>, Bound<'py, PyAny>)>> {
    if descriptor.num() != NPY_TYPES::NPY_VOID as i32 {
        return Ok(None);
    }
    descriptor.getattr("subdtype")?.extract()
}

/// The element type of a PyTorch dtype, whose text is its name, e.g. `torch.float32`; `None` for any other object.
fn of_torch(value: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let ty = value.get_type();
    if ty.name()?.to_cow()? != "dtype" || ty.module()?.to_cow()? != "torch" {
        return Ok(None);
    }
    let text = value.str()?;
    let name = text.to_cow()?;
    let found = DType::from_name(name.strip_prefix("torch.").unwrap_or(&name));
    found
        .map(Some)
        .ok_or_else(|| ErrorKind::DType.error(format!("dtype: {name} has no NumPy type of one element per item")))
}

/// The element type of a NumPy dtype object.
pub fn of_descriptor(descriptor: &Bound<'_, PyArrayDescr>) -> PyResult<DType> {
    match find(descriptor)? {
        Some(dtype) => Ok(dtype),
        None => Err(unsupported(descriptor)),
    }
}

/// As [`of_descriptor`]; `None` for a type that only NumPy supports.
pub fn find(descriptor: &Bound<'_, PyArrayDescr>) -> PyResult<Option<DType>> {
    // SAFETY: a bound dtype object is a live struct of this type.
    let known = unsafe { of_native(descriptor.as_dtype_ptr()) };
    let number = descriptor.num();
    if known.is_some() || number < FIRST_USER_TYPE {
        return Ok(known);
    }
    let added = DType::from_name(&descriptor.getattr("name")?.to_string());
    if let Some(dtype) = added
        && let Some(slot) = usize::try_from(number - FIRST_USER_TYPE).ok().and_then(|slot| USER_TYPES.get(slot))
    {
        slot.store(u8::try_from(dtype.index() + 1).unwrap_or(0), Ordering::Relaxed);
    }
    Ok(added)
}

/// The element type of a dtype struct, if it is native and already known; otherwise callers use [`of_descriptor`].
///
/// # Safety
/// - `descriptor` points to a live dtype object.
pub unsafe fn of_native(descriptor: *const PyArray_Descr) -> Option<DType> {
    // SAFETY: passed on from the caller.
    let fields = unsafe { &(*descriptor).fields };
    if fields.byteorder == foreign_order() { None } else { of_type_number(fields.type_num) }
}

/// The element type of one of NumPy's own type numbers, or of a known added one.
pub fn of_type_number(number: i32) -> Option<DType> {
    const BUILT_IN: [Option<DType>; 24] = {
        let mut table = [None; 24];
        table[0] = Some(DType::BOOL);
        table[1] = Some(DType::I8);
        table[2] = Some(DType::U8);
        table[3] = Some(DType::I16);
        table[4] = Some(DType::U16);
        table[5] = Some(DType::I32);
        table[6] = Some(DType::U32);
        // C's long.
        table[7] = Some(if size_of::<std::ffi::c_long>() == 8 { DType::I64 } else { DType::I32 });
        table[8] = Some(if size_of::<std::ffi::c_long>() == 8 { DType::U64 } else { DType::U32 });
        table[9] = Some(DType::I64);
        table[10] = Some(DType::U64);
        table[11] = Some(DType::F32);
        table[12] = Some(DType::F64);
        table[14] = Some(DType::C64);
        table[15] = Some(DType::C128);
        table[23] = Some(DType::F16);
        table
    };
    let index = usize::try_from(number).ok()?;
    if let Some(entry) = BUILT_IN.get(index) {
        return *entry;
    }
    let known = USER_TYPES.get(usize::try_from(number - FIRST_USER_TYPE).ok()?)?.load(Ordering::Relaxed);
    DType::all().nth(usize::from(known.checked_sub(1)?))
}

/// The byte order character in dtypes that are not native.
#[allow(clippy::cast_possible_wrap, reason = "ASCII fits every char type")]
fn foreign_order() -> std::ffi::c_char {
    (if cfg!(target_endian = "little") { b'>' } else { b'<' }) as std::ffi::c_char
}

/// The error for a type that only NumPy supports.
#[cold]
fn unsupported(descriptor: &Bound<'_, PyArrayDescr>) -> PyErr {
    const NUMBERS: &str = "numbers or bool";
    let (expected, why) = match descriptor.kind() {
        _ if descriptor.num() >= FIRST_USER_TYPE => {
            ("numbers or bool of NumPy or ml_dtypes", ", which other libraries do not support")
        }
        b'O' => (NUMBERS, " of Python objects, which cannot be shared as memory"),
        b'V' => (NUMBERS, ", which is structured; take one field of it at a time"),
        b'M' | b'm' => (NUMBERS, ", which is a date or time span; view it as int64"),
        b'S' | b'U' | b'T' => (NUMBERS, ", which holds text"),
        _ if of_type_number(descriptor.num()).is_some() => {
            ("native byte order", "; convert with .astype(dtype.newbyteorder('='))")
        }
        _ => ("a type of up to float64 or complex128", ", which other libraries do not support"),
    };
    DTypeError::new("dtype", &expected, &format_args!("{}{why}", shown(descriptor.as_any()))).into()
}

/// A `DTypeError` with another library's error as its cause; an interrupt stays what it is.
pub fn wrapped(py: Python<'_>, cause: PyErr, message: &dyn Display) -> PyErr {
    if is_interrupt(py, &cause) {
        return cause;
    }
    let error = ErrorKind::DType.error(format!("{message} ({})", cause.value(py)));
    error.set_cause(py, Some(cause));
    error
}

/// NumPy's dtype object of an element type; `ml_dtypes` supplies those that NumPy does not have.
pub fn to_numpy(py: Python<'_>, dtype: DType) -> PyResult<&Bound<'_, PyArrayDescr>> {
    let descriptor = DESCRIPTORS[dtype.index()].get_or_try_init(py, || {
        numpy_api::require(py)?;
        let added = dtype.is_sub_byte() || dtype.code().0 > 6 || dtype == DType::BF16;
        let source = if added {
            let package = py.import("ml_dtypes").map_err(|error| {
                let fix = format!("dtype: {dtype} needs the package ml_dtypes; install it with pip install ml_dtypes");
                wrapped(py, error, &fix)
            })?;
            package.getattr(dtype.name()).map_err(|error| {
                wrapped(py, error, &format!("dtype: the installed ml_dtypes has no {dtype}; install a newer one"))
            })?
        } else {
            PyString::new(py, dtype.name()).into_any()
        };
        PyArrayDescr::new(py, &source).map(Bound::unbind)
    })?;
    Ok(descriptor.bind(py))
}

/// Adds the argument's name to another library's error, which keeps its type.
pub fn named(py: Python<'_>, cause: PyErr, argument: &str) -> PyErr {
    let error = new_error_of(&cause.get_type(py), format!("{argument}: {}", cause.value(py)));
    error.set_cause(py, Some(cause));
    error
}
