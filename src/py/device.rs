//! `dlfield.Device`.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::args;
use crate::device::Device;

/// Where memory lives: a kind of device and its number.
///
/// Equal to its name ("cpu", "cuda:0", "cuda_host", ...) and to DLPack's pair of integers; hashes like the name.
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
        args::device(device).map(PyDevice)
    }

    /// The kind: "cpu", "cuda", "cuda_host", "cuda_managed", "rocm", ...
    #[getter]
    fn r#type(&self) -> &'static str {
        self.0.kind()
    }

    /// The number among devices of its kind; 0 where there is only one.
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

/// `(device_type, device_id)` as `__dlpack_device__` returns it.
#[derive(PartialEq)]
pub(super) struct DlpackPair(pub(super) i64, pub(super) i64);

impl DlpackPair {
    pub(super) fn of(device: Device) -> DlpackPair {
        let device = device.to_dlpack();
        DlpackPair(device.device_type.0.into(), device.device_id.into())
    }
}
