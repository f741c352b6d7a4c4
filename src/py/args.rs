//! Arguments from Python: numbers, lists of them, labels, devices; each error names the argument.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::device::PyDevice;
use super::errors::Kind;
use crate::device::Device;
use crate::dims::Dims;
use crate::layout::{Extents, Halo};

/// A whole number; anything with `__index__`.
pub(super) fn int(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract().map_err(|error: PyErr| {
        let py = value.py();
        if error.is_instance_of::<PyOverflowError>(py) {
            return Kind::Layout.error(format!("{argument}: {} does not fit in 64 bits", shown(value)));
        }
        if error.is_instance_of::<PyTypeError>(py) {
            return PyTypeError::new_err(format!("{argument}: {} is not an integer", shown(value)));
        }
        error
    })
}

/// A sequence of whole numbers.
pub(super) fn ints(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<Extents> {
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return tuple.iter_borrowed().map(|item| int(argument, &item)).collect();
    }
    let items = value
        .try_iter()
        .map_err(|_| PyTypeError::new_err(format!("{argument}: {} is not a sequence of integers", shown(value))))?;
    items.map(|item| int(argument, &item?)).collect()
}

/// A shape: a sequence of whole numbers, or one number for one dimension.
pub(super) fn shape(value: &Bound<'_, PyAny>) -> PyResult<Extents> {
    // Arrays have `__index__` too, so a sequence is one whatever else it is.
    if value.cast_exact::<PyTuple>().is_ok() || value.try_iter().is_ok() {
        return ints("shape", value);
    }
    Ok(Extents::from_slice(&[int("shape", value)?]))
}

/// Ghost widths: per dimension one number for both sides, or a pair `(lower, upper)`.
pub(super) fn halo(value: &Bound<'_, PyAny>) -> PyResult<Halo> {
    let wrong = |what: &Bound<'_, PyAny>| {
        PyTypeError::new_err(format!(
            "halo: {} is neither an integer nor a pair (lower, upper); allowed is one of these for each dimension",
            shown(what)
        ))
    };
    let items = value.try_iter().map_err(|_| wrong(value))?;
    items
        .map(|item| {
            let item = item?;
            if item.try_iter().is_err() {
                let both = int("halo", &item).map_err(|error| {
                    if error.is_instance_of::<PyTypeError>(item.py()) { wrong(&item) } else { error }
                })?;
                return Ok((both, both));
            }
            let pair = ints("halo", &item)
                .map_err(|error| if error.is_instance_of::<PyTypeError>(item.py()) { wrong(&item) } else { error })?;
            match pair.as_slice() {
                [lower, upper] => Ok((*lower, *upper)),
                _ => Err(wrong(&item)),
            }
        })
        .collect()
}

/// Labels: a string of one-letter labels, or a sequence of strings.
pub(super) fn dims(value: &Bound<'_, PyAny>) -> PyResult<Dims> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_string();
        return Ok(Dims::parse(text.chars().map(String::from))?);
    }
    let wrong = |what: &Bound<'_, PyAny>| {
        PyTypeError::new_err(format!("dims: {} is not a string or a sequence of strings", shown(what)))
    };
    let items = value.try_iter().map_err(|_| wrong(value))?;
    let labels = items.map(|item| {
        let item = item?;
        Ok(item.cast::<PyString>().map_err(|_| wrong(&item))?.to_string())
    });
    Ok(Dims::parse(labels.collect::<PyResult<Vec<_>>>()?)?)
}

/// A device: a `Device`, its name, or DLPack's pair.
pub(super) fn device(value: &Bound<'_, PyAny>) -> PyResult<Device> {
    if let Ok(device) = value.cast::<PyDevice>() {
        return Ok(device.get().0);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_string().parse()?);
    }
    let pair: (i64, i64) = value.extract().map_err(|_| {
        let what = shown(value);
        PyTypeError::new_err(format!(
            "device: {what} is not a Device, a name such as 'cpu', or DLPack's pair of integers"
        ))
    })?;
    dlpack_device(pair)
}

/// DLPack's pair of device type and id.
pub(super) fn dlpack_device((code, id): (i64, i64)) -> PyResult<Device> {
    let unknown = crate::DeviceError::UnknownCode { code, id };
    let (Ok(kind), Ok(device_id)) = (u32::try_from(code), i32::try_from(id)) else { return Err(unknown.into()) };
    Ok(Device::from_dlpack(dlpark::ffi::DLDevice { device_type: dlpark::ffi::DLDeviceType(kind), device_id })?)
}

/// An argument as an error message shows it, bounded.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| format!("<{}>", value.get_type()), |text| text.to_string());
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
