//! `dlfield.Device`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::device::Device;
use crate::error::DeviceError;
use crate::python::convert::args;
use crate::python::convert::device::{DlpackPair, exact_device, of_framework};
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::getattr;
use crate::python::ffi::new_error::new_error;
use crate::python::nearest::did_you_mean;
use pyo3::exceptions::PyTypeError;

/// A place of memory: a kind of device and its number.
///
/// Equal to its name ("cpu", "cuda:0", "cuda_host", ...) and to DLPack's pair of integers; hashes like the name. Made from
/// either, or from a device of PyTorch, JAX, CuPy, cuda.core or Numba; PyTorch's "cuda" without a number is its current device.
///
/// >>> import dlfield as dl
/// >>> dl.Device("gpu")
/// Device('cuda:0')
/// >>> dl.Device("cpu") == "cpu" == dl.Device((1, 0))
/// True
#[pyclass(name = "Device", module = "dlfield", frozen, from_py_object)]
#[derive(Clone, Copy)]
pub(crate) struct PyDevice(pub(crate) Device);

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

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(device) = other.cast::<PyDevice>() {
            return Ok(device.get().0 == self.0);
        }
        if let Ok(text) = other.cast::<PyString>() {
            return Ok(text.to_cow().is_ok_and(|text| text == self.0.to_string()));
        }
        let DlpackPair(code, id) = DlpackPair::of(self.0);
        Ok(args::if_converted(other.py(), other.extract())? == Some((code, id)))
    }

    fn __reduce__<'py>(slf: &Bound<'py, PyDevice>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.to_string(),))
    }
}

/// The error for a name that is not a device's, with the nearest one. Short ones all resemble each other.
#[cold]
fn unknown_name(py: Python<'_>, text: &str, error: &DeviceError) -> PyErr {
    let lower = text.to_lowercase();
    let hint = match (&*lower, gpu_number(&lower)) {
        ("host", _) => "; did you mean 'cpu'?".to_owned(),
        _ if lower.parse::<Device>().is_ok() => format!("; did you mean '{lower}'?"),
        (_, Some(number)) => format!("; did you mean 'cuda:{number}'?"),
        _ if lower.starts_with("cuda:") => "; did you mean 'cuda:0'?".to_owned(),
        _ if text.len() < 4 => String::new(),
        _ => did_you_mean(py, text, ["cpu", "gpu", "cuda:0", "cuda_host", "cuda_managed"]),
    };
    ErrorKind::Device.error(format!("{error}{hint}"))
}

/// The number in other spellings of a CUDA device, such as "gpu:1", "cuda-1" and "cuda1".
fn gpu_number(name: &str) -> Option<u16> {
    let number = name.strip_prefix("gpu").or_else(|| name.strip_prefix("cuda"))?;
    number.strip_prefix([':', '-', '_', ' ']).unwrap_or(number).parse().ok()
}

/// Converts a device: a `Device`, its name, DLPack's pair, or a framework's device object.
pub(crate) fn parse_device(value: &Bound<'_, PyAny>) -> PyResult<Device> {
    if let Ok(device) = value.cast::<PyDevice>() {
        return Ok(device.get().0);
    }
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_string();
        return text.parse().map_err(|error| unknown_name(value.py(), &text, &error));
    }
    if let Some(pair) = args::if_converted(value.py(), value.extract())? {
        return exact_device(pair);
    }
    match of_framework(value)? {
        Some(device) => Ok(device),
        None => Err(not_a_device(value)?),
    }
}

/// The error for an object that is not a device, with the name to write for a number, and for an array.
#[cold]
fn not_a_device(value: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let number = if args::is_bool(value) { None } else { args::if_converted(value.py(), value.extract::<u16>())? };
    let fix = match number {
        Some(number) => format!("; write 'cuda:{number}'"),
        None if getattr::on_type(&value.get_type(), intern!(value.py(), "__dlpack_device__")).is_some() => {
            "; pass the array's device: array.device".to_owned()
        }
        None => String::new(),
    };
    let expected = "a Device, a name such as 'cpu' or 'cuda:0', DLPack's pair of integers, or a device of PyTorch, JAX, \
                    CuPy, cuda.core or Numba";
    Ok(new_error::<PyTypeError>(format!("device: expected {expected}, got {}{fix}", args::shown(value))))
}
