//! Converts the dictionary of an array interface to a plain struct, which `protocol::array_interface` checks without Python.

#![allow(unsafe_code, reason = "a dictionary's items are borrowed")]

use std::ptr::null_mut;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyDict, PyInt, PyList, PyMapping, PyString, PyTuple};
use pyo3::{ffi, intern};

use crate::descriptor::{Descriptor, too_many_dims};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::ExchangeError;
use crate::layout::{Extents, MAX_NDIM};
use crate::protocol::array_interface::{ArrayInterface, Data, Descr, Interface};
use crate::python::convert::{args, dtype};
use crate::python::ffi::getattr::interned;
use crate::python::import::held_buffer::{Held, is_exporter};
use crate::tensor::Owner;

/// Returns the value of an attribute as a dictionary; other mappings are converted.
pub fn of<'py>(name: &'static str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return Ok(dict.clone());
    }
    if value.cast::<PyMapping>().is_err() {
        let allowed = "a dictionary of the array interface";
        return Err(ExchangeError::new(name, &allowed, &args::shown(value)).into());
    }
    Ok(value.py().get_type::<PyDict>().call1((value,))?.cast_into::<PyDict>()?)
}

/// Reads a dictionary of host memory into a descriptor. Returns the owner of the buffer, if `data` is not an address.
///
/// `data` may be an address, an object with the buffer protocol, or nothing: then the buffer is the object's own.
pub fn on_host(
    object: &Bound<'_, PyAny>,
    entries: &Entries<'_>,
    interface: &Interface,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Owner>> {
    let allowed =
        "a tuple (address, read-only), an object with the buffer protocol, or None for the object's own buffer";
    let exporter = match entries.get(Key::Data) {
        Some(data) if data.is_instance_of::<PyTuple>() => {
            let found = fetch(object, entries, interface, address(interface, data, allowed)?)?;
            found.read_into(descriptor, interface, Device::CPU)?;
            return Ok(None);
        }
        Some(data) if is_exporter(data) => data,
        Some(data) => return Err(interface.entry("data", allowed, &args::shown(data)).into()),
        None if is_exporter(object) => object,
        None => return Err(interface.missing("data", allowed).into()),
    };
    let held = Held::get(exporter)?;
    if !held.is_contiguous(b'C') {
        let got = "a buffer with gaps between its elements";
        return Err(interface.entry("data", "a contiguous buffer, with its strides in \"strides\"", &got).into());
    }
    let (start, len, readonly) = held.bytes();
    let len = usize::try_from(len).unwrap_or(0);
    let data = Data::In { address: u64::try_from(start.addr()).unwrap_or(u64::MAX), len, readonly };
    fetch(object, entries, interface, data)?.read_into(descriptor, interface, Device::CPU)?;
    held.into_owner(object.py()).map(Some)
}

/// Converts a dictionary of device memory: `data` is an address.
pub fn on_device<'a>(
    object: &Bound<'_, PyAny>,
    entries: &'a Entries<'_>,
    interface: &Interface,
) -> PyResult<ArrayInterface<'a>> {
    let allowed = "a tuple (address, read-only)";
    let data = entries.get(Key::Data).ok_or_else(|| interface.missing("data", allowed))?;
    fetch(object, entries, interface, address(interface, data, allowed)?)
}

/// Converts all keys except `data`.
fn fetch<'a>(
    object: &Bound<'_, PyAny>,
    entries: &'a Entries<'_>,
    interface: &Interface,
    data: Data,
) -> PyResult<ArrayInterface<'a>> {
    let mut found = ArrayInterface::at(data);
    let allowed = "a type string such as '<f8'";
    let typestr = entries.get(Key::Typestr).ok_or_else(|| interface.missing("typestr", allowed))?;
    let typestr = match typestr.cast::<PyString>() {
        Ok(text) => text.to_string_lossy(),
        Err(_) => return Err(interface.entry("typestr", allowed, &args::shown(typestr)).into()),
    };
    let shape = entries.get(Key::Shape).ok_or_else(|| interface.missing("shape", "a tuple of integers"))?;
    found.version = integer(entries, interface, Key::Version, "an integer")?;
    integers(interface, Key::Shape, shape, &mut found.shape)?;
    found.dtype = own_dtype(object, &typestr)?;
    if let Some(strides) = entries.get(Key::Strides) {
        integers(interface, Key::Strides, strides, found.byte_strides.insert(Extents::new()))?;
    }
    found.offset = integer(entries, interface, Key::Offset, "an integer")?.unwrap_or(0);
    found.masked = entries.get(Key::Mask).is_some();
    if let Some(value) = entries.get(Key::Descr) {
        found.descr = descr(value, &typestr)?;
    }
    found.stream = integer(entries, interface, Key::Stream, "None or an integer")?;
    found.typestr = typestr;
    Ok(found)
}

interned! {
    /// A key of the dictionaries, in the order in which NumPy makes its own, so that few comparisons find them.
    pub enum Key {
        Data = "data",
        Strides = "strides",
        Descr = "descr",
        Typestr = "typestr",
        Shape = "shape",
        Version = "version",
        Stream = "stream",
        Offset = "offset",
        Mask = "mask",
        Dims = "dims",
        Halo = "halo",
        Acquire = "acquire",
        Touch = "touch",
        Release = "release",
    }
}

/// The values of all keys of a dictionary.
pub struct Entries<'py>([Option<Bound<'py, PyAny>>; Key::ALL.len()]);

impl<'py> Entries<'py> {
    pub fn of(dict: &Bound<'py, PyDict>) -> PyResult<Entries<'py>> {
        let mut found = [const { None }; Key::ALL.len()];
        if !Entries::fill(&mut found, dict) {
            // Another key, or one that is not interned.
            for (value, key) in found.iter_mut().zip(Key::ALL) {
                *value = entry(dict, key)?;
            }
        }
        Ok(Entries(found))
    }

    /// Finds the values in one pass, without calling back into Python code. `false` for a dictionary with a key that only a look-up can
    /// compare with these.
    fn fill(found: &mut [Option<Bound<'py, PyAny>>], dict: &Bound<'py, PyDict>) -> bool {
        static KEYS: PyOnceLock<[Py<PyString>; Key::ALL.len()]> = PyOnceLock::new();
        let py = dict.py();
        let keys = KEYS.get_or_init(py, || Key::ALL.map(|key| key.interned(py).clone().unbind()));
        // Without the GIL another thread may change the dictionary meanwhile; with it, this is nothing.
        with_critical_section(dict, || {
            let (mut position, mut key, mut value) = (0, null_mut(), null_mut());
            // SAFETY: a live dictionary, which no other thread changes in the critical section, and nothing here does.
            while unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut position, &raw mut key, &raw mut value) } != 0 {
                let Some(place) = keys.iter().position(|known| known.as_ptr() == key) else { return false };
                // SAFETY: the dictionary keeps the value.
                found[place] = Some(unsafe { Bound::from_borrowed_ptr(py, value) });
            }
            true
        })
    }

    /// Returns the value of a key; `None` if it is absent or None.
    fn get(&self, key: Key) -> Option<&Bound<'py, PyAny>> {
        self.0[key as usize].as_ref().filter(|value| !value.is_none())
    }
}

/// Returns the value of a key; `None` if it is absent or None.
pub fn entry<'py>(dict: &Bound<'py, PyDict>, key: Key) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(dict.get_item(key.interned(dict.py()))?.filter(|value| !value.is_none()))
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

fn integer(entries: &Entries<'_>, interface: &Interface, key: Key, allowed: &'static str) -> PyResult<Option<i64>> {
    let Some(value) = entries.get(key) else { return Ok(None) };
    number(value, || interface.entry(key.text(), allowed, &args::shown(value))).map(Some)
}

/// Converts a tuple or list of integers into `found`.
fn integers(interface: &Interface, key: Key, value: &Bound<'_, PyAny>, found: &mut Extents) -> PyResult<()> {
    let wrong = || interface.entry(key.text(), "a tuple of integers of at most 64 bits", &args::shown(value));
    let items = match (value.cast::<PyTuple>(), value.cast::<PyList>()) {
        (Ok(tuple), _) => tuple.clone(),
        (_, Ok(list)) => list.to_tuple(),
        _ => return Err(wrong().into()),
    };
    if items.len() > MAX_NDIM {
        return Err(too_many_dims(items.len()).into());
    }
    for item in items.iter_borrowed() {
        found.push(number(&item, wrong)?);
    }
    Ok(())
}

fn address(interface: &Interface, data: &Bound<'_, PyAny>, allowed: &'static str) -> PyResult<Data> {
    let wrong = || interface.entry("data", allowed, &args::shown(data));
    let Ok((address, readonly)) = data.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
        return Err(wrong().into());
    };
    // Python converts to `i64` in a third of the time of `u64`, and few addresses need the last bit.
    let address = match address.cast_exact::<PyInt>().map(|address| address.extract::<i64>()) {
        Ok(Ok(address)) => u64::try_from(address).map_err(|_| wrong())?,
        _ => number(&address, wrong)?,
    };
    Ok(Data::At { address, readonly: readonly.is_truthy()? })
}

/// Converts `descr`; absent if it only repeats the type string.
pub fn descr(value: &Bound<'_, PyAny>, typestr: &str) -> PyResult<Descr> {
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
    // Two entries are enough to know; how many there are, a class of others may state wrongly.
    let entries = args::iterator(value)?.map(|entries| entries.take(2).collect::<PyResult<Vec<_>>>()).transpose()?;
    let field = match entries.as_deref() {
        Some([field]) => args::if_converted(value.py(), field.extract::<(String, String)>())?,
        _ => None,
    };
    Ok(match field {
        Some((name, text)) if name.is_empty() => Descr::Plain(text),
        _ => Descr::Fields(args::shown(value)),
    })
}

/// Returns the element type of the object's `dtype` if the type string has only a size: `ml_dtypes` have no letters.
pub fn own_dtype(object: &Bound<'_, PyAny>, typestr: &str) -> PyResult<Option<DType>> {
    if crate::protocol::typestr::void_size(typestr).is_none() {
        return Ok(None);
    }
    let Some(value) = object.getattr_opt(intern!(object.py(), "dtype"))? else { return Ok(None) };
    let (dtype, subarray) = dtype::parse(&value)?;
    Ok(if subarray.is_empty() { Some(dtype) } else { None })
}
