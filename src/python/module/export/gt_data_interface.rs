//! `__gt_data_interface__`: array interfaces by device, with dims and halo.
//!
//! Source: GDP 3.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::device::Device;
use crate::python::module::classes::attribute_values;
use crate::python::module::export::{array_interface, cuda_array_interface};
use crate::tensor::Tensor;

/// Returns the data interface: a buffer for each device that reaches the memory, with dims and halo.
pub(crate) fn data_interface<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyDict>> {
    let device = tensor.descriptor().device();
    let devices = PyDict::new(py);
    let labelled = |buffer: Bound<'py, PyDict>| -> PyResult<Bound<'py, PyDict>> {
        buffer.set_item("dims", attribute_values::labels(py, &tensor.dims())?)?;
        buffer.set_item("halo", PyTuple::new(py, tensor.halo().iter().copied())?)?;
        Ok(buffer)
    };
    if device.is_cuda() || device == Device::CUDA_MANAGED {
        let buffer = labelled(cuda_array_interface::interface(py, tensor)?)?;
        if device.id() == 0 {
            devices.set_item("gpu", buffer)?
        } else {
            devices.set_item(("gpu", device.id()), buffer)?
        }
    }
    if !device.is_cuda() {
        devices.set_item(py.None(), labelled(array_interface::interface(py, tensor)?)?)?;
    }
    Ok(devices)
}
