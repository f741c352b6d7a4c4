//! `dlfield.Device`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::{args, getattr};
use crate::device::Device;
use pyo3::exceptions::PyTypeError;

/// A place of memory: a kind of device and its number.
///
/// Equal to its name ("cpu", "cuda:0", "cuda_host", ...) and to DLPack's pair of integers; hashes like the name. Made from
/// either, or from a device of PyTorch, JAX or CuPy; PyTorch's "cuda" without a number is its current device.
///
/// >>> import dlfield as dl
/// >>> dl.Device("gpu")
/// Device('cuda:0')
/// >>> dl.Device("cpu") == "cpu" == dl.Device((1, 0))
/// True
#[pyclass(name = "Device", module = "dlfield", frozen, from_py_object)]
#[derive(Clone, Copy)]
pub(super) struct PyDevice(pub(super) Device);

#[pymethods]
impl PyDevice {
    #[new]
    fn new(device: &Bound<'_, PyAny>) -> PyResult<PyDevice> {
        parse_device(device).map(PyDevice)
    }

    /// The kind: "cpu", "cuda", "cuda_host", "cuda_managed", "rocm", ...
    #[getter]
    fn r#type(&self) -> &'static str {
        self.0.kind()
    }

    /// The number among devices of its kind; 0 if there is only one.
    #[getter]
    fn id(&self) -> i32 {
        self.0.id()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Device('{}')", self.0)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::new(py, &self.0.to_string()).hash()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        if let Ok(device) = other.cast::<PyDevice>() {
            return device.get().0 == self.0;
        }
        if let Ok(text) = other.cast::<PyString>() {
            return text.to_cow().is_ok_and(|text| text == self.0.to_string());
        }
        let DlpackPair(code, id) = DlpackPair::of(self.0);
        other.cast::<PyTuple>().is_ok() && other.extract().is_ok_and(|pair: (i64, i64)| pair == (code, id))
    }

    fn __reduce__<'py>(slf: &Bound<'py, PyDevice>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.to_string(),))
    }
}

/// Converts a device object of PyTorch, JAX or CuPy; `None` for any other object. Imports none of them.
pub(super) fn of_framework(value: &Bound<'_, PyAny>) -> PyResult<Option<Device>> {
    let py = value.py();
    let text = |name: &Bound<'_, PyString>| -> PyResult<Option<String>> {
        Ok(getattr::getattr_opt(value, name)?.and_then(|text| text.extract().ok()))
    };
    let number = |name: &Bound<'_, PyString>| -> PyResult<Option<i64>> {
        Ok(getattr::getattr_opt(value, name)?.and_then(|number| number.extract().ok()))
    };
    // `torch.device`.
    if let Some(kind) = text(intern!(py, "type"))?
        && let Some(index) = getattr::getattr_opt(value, intern!(py, "index"))?
        && let Ok(index) = index.extract::<Option<i64>>()
    {
        let number = match index {
            Some(number) => number,
            None if kind == "cuda" => current_of_torch(py)?,
            None => 0,
        };
        return named(&kind, number).map(Some);
    }
    // A `jax.Device`: its `id` counts the devices of all processes.
    if let Some(platform) = text(intern!(py, "platform"))?
        && let Some(id) = number(intern!(py, "id"))?
    {
        let local = number(intern!(py, "local_hardware_id"))?;
        let kind = if platform == "gpu" { "cuda" } else { &platform };
        return named(kind, local.unwrap_or(id)).map(Some);
    }
    // A `cupy.cuda.Device`. Other libraries use `id` for other things.
    let module = getattr::on_type(&value.get_type(), intern!(py, "__module__"));
    let module = module.and_then(|module| module.extract::<String>().ok());
    if module.is_some_and(|module| module.split('.').next() == Some("cupy"))
        && let Some(id) = number(intern!(py, "id"))?
    {
        return named("cuda", id).map(Some);
    }
    Ok(None)
}

/// The device of a kind and number; there is one host, whatever its number.
fn named(kind: &str, number: i64) -> PyResult<Device> {
    Ok(if kind == "cpu" { Device::CPU } else { format!("{kind}:{number}").parse()? })
}

/// The number that PyTorch's "cuda" stands for: that of its current device, 0 until PyTorch has used any.
fn current_of_torch(py: Python<'_>) -> PyResult<i64> {
    let Some(torch) = getattr::loaded(py, "torch")? else { return Ok(0) };
    let cuda = torch.getattr(intern!(py, "cuda"))?;
    if !cuda.call_method0(intern!(py, "is_initialized"))?.is_truthy()? {
        return Ok(0);
    }
    cuda.call_method0(intern!(py, "current_device"))?.extract()
}

/// `(device_type, device_id)` as `__dlpack_device__` returns it.
#[derive(PartialEq)]
pub(super) struct DlpackPair(pub(super) i64, pub(super) i64);

impl DlpackPair {
    pub(super) fn of(device: Device) -> DlpackPair {
        let device = device.to_dlpack();
        DlpackPair(device.device_type.0.into(), device.device_id.into())
    }
}

/// Converts a device: a `Device`, its name, DLPack's pair, or a framework's device object.
pub(super) fn parse_device(value: &Bound<'_, PyAny>) -> PyResult<Device> {
    if let Ok(device) = value.cast::<PyDevice>() {
        return Ok(device.get().0);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_string().parse()?);
    }
    if let Ok(pair) = value.extract::<(i64, i64)>() {
        return exact_device(pair);
    }
    of_framework(value)?.ok_or_else(|| {
        let what = args::shown(value);
        let allowed = "a Device, a name such as 'cpu', DLPack's pair of integers, or a device of PyTorch, JAX or CuPy";
        PyTypeError::new_err(format!("device: {what} is not {allowed}"))
    })
}

/// Converts DLPack's pair of device type and id, as callers must write it; [`dlpack_device`] allows producers ids that mean
/// nothing.
pub(super) fn exact_device(pair: (i64, i64)) -> PyResult<Device> {
    let device = dlpack_device(pair)?;
    if DlpackPair::of(device) == DlpackPair(pair.0, pair.1) {
        Ok(device)
    } else {
        Err(crate::DeviceError::UnknownCode { code: pair.0, id: pair.1 }.into())
    }
}

/// Converts DLPack's pair of device type and id.
pub(super) fn dlpack_device((code, id): (i64, i64)) -> PyResult<Device> {
    let unknown = crate::DeviceError::UnknownCode { code, id };
    let (Ok(kind), Ok(device_id)) = (u32::try_from(code), i32::try_from(id)) else { return Err(unknown.into()) };
    Ok(Device::from_dlpack(dlpark::ffi::DLDevice { device_type: dlpark::ffi::DLDeviceType(kind), device_id })?)
}
