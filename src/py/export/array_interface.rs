//! `__array_interface__` and the GT4Py data interface made of it.
//!
//! Source: NumPy's page on the array interface, version 3; GDP 3 for `__gt_data_interface__`.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::cuda_array_interface;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::protocol::typestr;
use crate::py::{attributes, place};
use crate::tensor::Tensor;

/// The dictionary of the array interface. `AttributeError`, which means that there is none, for memory that the host
/// cannot read and for element types that it could only call "void".
pub(crate) fn interface<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyDict>> {
    let descriptor = tensor.descriptor();
    if !descriptor.device().is_host_readable() {
        return Err(absent("__array_interface__", &format!("the host cannot read {}", descriptor.device())));
    }
    place::await_others(py, tensor)?;
    dictionary(py, "__array_interface__", descriptor)
}

/// The error that means that there is no such attribute.
pub(super) fn absent(name: &str, why: &str) -> PyErr {
    PyAttributeError::new_err(format!("{name}: {why}"))
}

/// What the interfaces of the host and of CUDA have in common.
pub(super) fn dictionary<'py>(
    py: Python<'py>,
    name: &'static str,
    descriptor: &Descriptor,
) -> PyResult<Bound<'py, PyDict>> {
    let typestr = typestr::encode(descriptor.dtype())
        .ok_or_else(|| absent(name, &format!("it has no type string for {}", descriptor.dtype())))?;
    let dict = PyDict::new(py);
    dict.set_item("version", 3)?;
    dict.set_item("shape", PyTuple::new(py, descriptor.shape())?)?;
    dict.set_item("typestr", typestr)?;
    dict.set_item("data", (descriptor.ptr().addr(), descriptor.is_readonly()))?;
    dict.set_item("strides", attributes::strides(py, descriptor)?)?;
    Ok(dict)
}

/// The data interface: the buffers on the devices that reach the memory, with dims and halo.
pub(crate) fn data_interface<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyDict>> {
    let device = tensor.descriptor().device();
    let devices = PyDict::new(py);
    let labelled = |buffer: Bound<'py, PyDict>| -> PyResult<Bound<'py, PyDict>> {
        buffer.set_item("dims", attributes::labels(py, &tensor.dims())?)?;
        buffer.set_item("halo", PyTuple::new(py, tensor.halo())?)?;
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
        devices.set_item(py.None(), labelled(interface(py, tensor)?)?)?;
    }
    Ok(devices)
}
