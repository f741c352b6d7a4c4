//! Converts the dictionary of an array interface to a plain struct, which `protocol::array_interface` checks without Python.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyString, PyTuple};

use crate::dtype::DType;
use crate::layout::{Extents, MAX_NDIM};
use crate::protocol::ExchangeError;
use crate::protocol::array_interface::{ArrayInterface, Data, Descr, Interface};
use crate::python::convert::{args, dtype};
use crate::python::import::held_buffer::{Held, is_exporter};

/// Returns the value of an attribute as a dictionary; other mappings are converted.
pub(super) fn of<'py>(name: &'static str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return Ok(dict.clone());
    }
    if value.cast::<PyMapping>().is_err() {
        let allowed = "a dictionary of the array interface";
        return Err(ExchangeError::Argument { argument: name, got: args::shown(value), allowed }.into());
    }
    Ok(value.py().get_type::<PyDict>().call1((value,))?.cast_into::<PyDict>()?)
}

/// Converts a dictionary of host memory. Returns the buffer to hold too, if `data` is not an address.
///
/// `data` may be an address, an object with the buffer protocol, or nothing: then the buffer is the object's own.
pub(super) fn on_host(
    object: &Bound<'_, PyAny>,
    dict: &Bound<'_, PyDict>,
    interface: &Interface,
) -> PyResult<(ArrayInterface, Option<Held>)> {
    let allowed =
        "a tuple (address, read-only), an object with the buffer protocol, or None for the object's own buffer";
    let exporter = match entry(dict, Key::Data)? {
        Some(data) if data.is_instance_of::<PyTuple>() => {
            return Ok((fetch(object, dict, interface, address(interface, &data, allowed)?)?, None));
        }
        Some(data) if is_exporter(&data) => data,
        Some(data) => return Err(interface.entry("data", args::shown(&data), allowed).into()),
        None if is_exporter(object) => object.clone(),
        None => return Err(interface.missing("data", allowed).into()),
    };
    let held = Held::get(&exporter)?;
    if !held.is_contiguous() {
        let got = "a buffer with gaps between its elements";
        return Err(interface.entry("data", got, "a contiguous buffer, with its strides in \"strides\"").into());
    }
    let (start, len, readonly) = held.bytes();
    let len = usize::try_from(len).unwrap_or(0);
    let data = Data::In { address: u64::try_from(start.addr()).unwrap_or(u64::MAX), len, readonly };
    Ok((fetch(object, dict, interface, data)?, Some(held)))
}

/// Converts a dictionary of device memory: `data` is an address.
pub(super) fn on_device(
    object: &Bound<'_, PyAny>,
    dict: &Bound<'_, PyDict>,
    interface: &Interface,
) -> PyResult<ArrayInterface> {
    let allowed = "a tuple (address, read-only)";
    let data = entry(dict, Key::Data)?.ok_or_else(|| interface.missing("data", allowed))?;
    fetch(object, dict, interface, address(interface, &data, allowed)?)
}

/// Converts all keys except `data`.
fn fetch(
    object: &Bound<'_, PyAny>,
    dict: &Bound<'_, PyDict>,
    interface: &Interface,
    data: Data,
) -> PyResult<ArrayInterface> {
    let allowed = "a type string such as '<f8'";
    let typestr = entry(dict, Key::Typestr)?.ok_or_else(|| interface.missing("typestr", allowed))?;
    let typestr = match typestr.cast::<PyString>() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => return Err(interface.entry("typestr", args::shown(&typestr), allowed).into()),
    };
    let shape = entry(dict, Key::Shape)?.ok_or_else(|| interface.missing("shape", "a tuple of integers"))?;
    let strides = entry(dict, Key::Strides)?;
    Ok(ArrayInterface {
        version: integer(dict, interface, Key::Version, "version", "an integer")?,
        shape: integers(interface, "shape", &shape)?,
        dtype: own_dtype(object, &typestr)?,
        data,
        byte_strides: strides.map(|strides| integers(interface, "strides", &strides)).transpose()?,
        offset: integer(dict, interface, Key::Offset, "offset", "an integer")?.unwrap_or(0),
        masked: entry(dict, Key::Mask)?.is_some(),
        descr: entry(dict, Key::Descr)?.map_or(Ok(Descr::Absent), |value| descr(&value, &typestr))?,
        stream: integer(dict, interface, Key::Stream, "stream", "None or an integer")?,
        typestr,
    })
}

/// A key of the dictionaries.
#[derive(Clone, Copy)]
pub enum Key {
    Acquire,
    Data,
    Descr,
    Dims,
    Halo,
    Mask,
    Offset,
    Release,
    Shape,
    Stream,
    Strides,
    Touch,
    Typestr,
    Version,
}

impl Key {
    /// The key as text, interned.
    fn text(self, py: Python<'_>) -> &Bound<'_, PyString> {
        match self {
            Key::Acquire => intern!(py, "acquire"),
            Key::Data => intern!(py, "data"),
            Key::Descr => intern!(py, "descr"),
            Key::Dims => intern!(py, "dims"),
            Key::Halo => intern!(py, "halo"),
            Key::Mask => intern!(py, "mask"),
            Key::Offset => intern!(py, "offset"),
            Key::Release => intern!(py, "release"),
            Key::Shape => intern!(py, "shape"),
            Key::Stream => intern!(py, "stream"),
            Key::Strides => intern!(py, "strides"),
            Key::Touch => intern!(py, "touch"),
            Key::Typestr => intern!(py, "typestr"),
            Key::Version => intern!(py, "version"),
        }
    }
}

/// Returns the value of a key; `None` if it is absent or None.
pub(super) fn entry<'py>(dict: &Bound<'py, PyDict>, key: Key) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(dict.get_item(key.text(dict.py()))?.filter(|value| !value.is_none()))
}

/// Converts an entry, or an item of one, to an integer. Rejects other types and overflow with `wrong`; other exceptions of the
/// producer reach the caller.
fn number<'py, T: FromPyObjectOwned<'py, Error = PyErr>>(
    value: &Bound<'py, PyAny>,
    wrong: impl FnOnce() -> ExchangeError,
) -> PyResult<T> {
    value.extract().map_err(|error: PyErr| {
        let py = value.py();
        let no_number = error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyOverflowError>(py);
        if no_number { wrong().into() } else { error }
    })
}

fn integer(
    dict: &Bound<'_, PyDict>,
    interface: &Interface,
    key: Key,
    name: &'static str,
    allowed: &'static str,
) -> PyResult<Option<i64>> {
    let Some(value) = entry(dict, key)? else { return Ok(None) };
    number(&value, || interface.entry(name, args::shown(&value), allowed)).map(Some)
}

fn integers(interface: &Interface, key: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Extents> {
    let wrong = || interface.entry(key, args::shown(value), "a tuple of integers of at most 64 bits");
    let items = match (value.cast::<PyTuple>(), value.cast::<PyList>()) {
        (Ok(tuple), _) => tuple.clone(),
        (_, Ok(list)) => list.to_tuple(),
        _ => return Err(wrong().into()),
    };
    if items.len() > MAX_NDIM {
        return Err(ExchangeError::TooManyDims { got: items.len() }.into());
    }
    items.iter_borrowed().map(|item| number(&item, wrong)).collect()
}

fn address(interface: &Interface, data: &Bound<'_, PyAny>, allowed: &'static str) -> PyResult<Data> {
    let wrong = || interface.entry("data", args::shown(data), allowed);
    let Ok((address, readonly)) = data.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
        return Err(wrong().into());
    };
    Ok(Data::At { address: number(&address, wrong)?, readonly: readonly.is_truthy()? })
}

/// Converts `descr`; absent if it only repeats the type string.
pub(super) fn descr(value: &Bound<'_, PyAny>, typestr: &str) -> PyResult<Descr> {
    // NumPy's own `descr` always repeats the type string.
    if let Ok(list) = value.cast::<PyList>()
        && list.len() == 1
        && let Ok(field) = list.get_item(0)?.cast_into::<PyTuple>()
        && field.len() == 2
        && field.get_borrowed_item(0)?.cast::<PyString>().is_ok_and(|name| name == "")
        && field.get_borrowed_item(1)?.cast::<PyString>().is_ok_and(|text| text == typestr)
    {
        return Ok(Descr::Absent);
    }
    let plain = value.extract::<Vec<(String, String)>>().ok();
    Ok(match plain.as_deref() {
        Some([(name, text)]) if name.is_empty() => Descr::Plain(text.clone()),
        _ => Descr::Fields(args::shown(value)),
    })
}

/// Returns the element type of the object's `dtype` if the type string has only a size: `ml_dtypes` have no letters.
pub(super) fn own_dtype(object: &Bound<'_, PyAny>, typestr: &str) -> PyResult<Option<DType>> {
    if crate::protocol::typestr::void_size(typestr).is_none() {
        return Ok(None);
    }
    let Some(value) = object.getattr_opt(pyo3::intern!(object.py(), "dtype"))? else { return Ok(None) };
    let (dtype, subarray) = dtype::parse(&value)?;
    Ok(if subarray.is_empty() { Some(dtype) } else { None })
}
