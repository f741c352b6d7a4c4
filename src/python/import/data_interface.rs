//! Reads `__gt_data_interface__`, and its older spelling `__gt_interface__`: array interfaces by device, with hooks.
//!
//! Source: GDP 3. Keys are None or `"cpu"` for the host, `"gpu"` or `("gpu", n)` for CUDA device n. Values are
//! dictionaries, with `dims` and `halo` besides the keys of an array interface, or callables that return one.

use std::cell::OnceCell;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};

use crate::device::{self, Device};
use crate::error::{DeviceError, ExchangeError};
use crate::python::convert::args;
use crate::python::import::dictionary::{self, Key};
use crate::python::import::type_info::{Name, attribute};

const ALLOWED: &str = "a mapping from a device (None or 'cpu', 'gpu' or ('gpu', n)) to a dictionary or a callable";

/// The contents of an object's two attributes, each looked up once.
pub struct Interface<'py>(Vec<Source<'py>>);

/// One of the two attributes.
pub struct Source<'py> {
    pub name: &'static str,
    /// The buffers, the selected one first.
    buffers: Vec<Buffer<'py>>,
    /// The keys that name no device, as error messages show them.
    unknown: Vec<String>,
}

/// The buffer on one device.
pub struct Buffer<'py> {
    pub device: Device,
    value: Bound<'py, PyAny>,
    dict: OnceCell<Bound<'py, PyDict>>,
}

impl<'py> Interface<'py> {
    /// Looks up both attributes of the object. `wanted` selects the buffer of a device; by default that is the host buffer,
    /// else that of the GPU with the lowest number.
    pub fn of(object: &Bound<'py, PyAny>, wanted: Option<Device>) -> PyResult<Interface<'py>> {
        let mut sources: Vec<Source<'py>> = Vec::new();
        for name in [Name::GtDataInterface, Name::GtInterface] {
            let Some(value) = attribute(object, name)?.filter(|value| !value.is_none()) else { continue };
            let value = if value.is_callable() { value.call0()? } else { value };
            sources.push(Source::new(name.text(), &value, wanted)?);
        }
        Ok(Interface(sources))
    }

    /// The attributes that the object has.
    pub fn sources(&self) -> &[Source<'py>] {
        &self.0
    }
}

/// The hooks that an object wants to have called around the use of its memory; each is optional.
pub struct Hooks {
    /// Called before elements are read or written.
    pub acquire: Option<Py<PyAny>>,
    /// Called after elements were written.
    pub touch: Option<Py<PyAny>>,
    /// Called last, when the memory is no longer used.
    pub release: Option<Py<PyAny>>,
}

impl Hooks {
    /// The hooks of an interface, for memory on `device`; `None` if it has none.
    pub fn of_interface(interface: &Interface<'_>, device: Device) -> PyResult<Option<Hooks>> {
        let hook = |key| interface.sources().iter().find_map(|source| source.hook(key, device).transpose()).transpose();
        let (acquire, touch, release) = (hook(Key::Acquire)?, hook(Key::Touch)?, hook(Key::Release)?);
        let any = acquire.is_some() || touch.is_some() || release.is_some();
        Ok(any.then_some(Hooks { acquire, touch, release }))
    }
}

impl<'py> Source<'py> {
    /// A hook of the selected buffer if that is on `device`.
    fn hook(&self, key: Key, device: Device) -> PyResult<Option<Py<PyAny>>> {
        let Some(buffer) = self.buffers.first().filter(|buffer| buffer.serves(device)) else { return Ok(None) };
        let Some(hook) = dictionary::entry(buffer.dict(self.name)?, key)? else { return Ok(None) };
        if hook.is_callable() {
            return Ok(Some(hook.unbind()));
        }
        let allowed = "a callable without arguments, or None";
        Err(ExchangeError::new(key.text(), &allowed, &args::shown(&hook)).into())
    }

    fn new(name: &'static str, value: &Bound<'py, PyAny>, wanted: Option<Device>) -> PyResult<Source<'py>> {
        let wrong = || ExchangeError::new(name, &ALLOWED, &args::shown(value));
        let devices = value.cast::<PyMapping>().map_err(|_| wrong())?;
        let (mut buffers, mut unknown) = (Vec::new(), Vec::new());
        for item in devices.items()?.iter() {
            let (key, value) = item.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
            match device_of(&key)? {
                Some(device) => buffers.push(Buffer { device, value, dict: OnceCell::new() }),
                None => unknown.push(args::shown(&key)),
            }
        }
        buffers.sort_by_key(|buffer| {
            let meant = wanted.is_some_and(|wanted| buffer.serves(wanted));
            (!meant, buffer.device != Device::CPU, buffer.device.id())
        });
        Ok(Source { name, buffers, unknown })
    }

    /// Returns the selected buffer. [`DeviceError`](crate::DeviceError) if it is not on the `wanted` device.
    pub fn chosen(&self, wanted: Option<Device>) -> PyResult<&Buffer<'py>> {
        let Some(buffer) = self.buffers.first() else {
            let got = if self.unknown.is_empty() { "no keys".to_owned() } else { self.unknown.join(", ") };
            return Err(ExchangeError::new(self.name, &ALLOWED, &got).into());
        };
        match wanted {
            Some(wanted) if !buffer.serves(wanted) => Err(elsewhere(buffer.device, wanted).into()),
            _ => Ok(buffer),
        }
    }

    /// Returns the value of a key: that of the selected buffer, else of one that needs no call, as a call may move data.
    pub fn get(&self, key: Key) -> PyResult<Option<Bound<'py, PyAny>>> {
        for (position, buffer) in self.buffers.iter().enumerate() {
            if position > 0 && buffer.value.is_callable() {
                continue;
            }
            if let Some(value) = dictionary::entry(buffer.dict(self.name)?, key)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

impl<'py> Buffer<'py> {
    /// Whether this buffer is on the requested device. A GPU's buffer may be managed memory.
    fn serves(&self, wanted: Device) -> bool {
        self.device == wanted || (wanted.kind() == "cuda_managed" && self.device.kind() == "cuda")
    }

    /// Returns the dictionary; a callable is called once for it.
    pub fn dict(&self, name: &'static str) -> PyResult<&Bound<'py, PyDict>> {
        if let Some(dict) = self.dict.get() {
            return Ok(dict);
        }
        let value = if self.value.is_callable() { self.value.call0()? } else { self.value.clone() };
        let dict = dictionary::of(name, &value)?;
        Ok(self.dict.get_or_init(|| dict))
    }
}

/// Returns the device that a key names; `None` if it names none.
fn device_of(key: &Bound<'_, PyAny>) -> PyResult<Option<Device>> {
    if key.is_none() {
        return Ok(Some(Device::CPU));
    }
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(match &*text.to_string_lossy() {
            "cpu" => Some(Device::CPU),
            "gpu" => Some(Device::cuda(0)),
            _ => None,
        });
    }
    let found = args::if_converted(key.py(), key.extract::<(String, u16)>())?;
    Ok(found.filter(|(kind, _)| kind == "gpu").map(|(_, id)| Device::cuda(id)))
}

/// Returns the error for memory that the requested device cannot access.
#[cold]
pub fn elsewhere(found: Device, wanted: Device) -> DeviceError {
    device::mismatch(found, wanted).with_fix(&format_args!("copy it there: from_dlpack(obj, device='{wanted}')"))
}
