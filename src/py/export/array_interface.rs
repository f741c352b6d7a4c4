//! `__array_interface__` and the GT4Py data interface made of it.
//!
//! Source: NumPy's page on the array interface, version 3; GDP 3 for `__gt_data_interface__`.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::protocol::typestr;
use crate::py::attributes;
use crate::tensor::Tensor;

/// The dictionary of the array interface. `AttributeError`, which means that there is none, for memory that the host
/// cannot read and for element types that it could only call "void".
pub(crate) fn interface<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyDict>> {
    let descriptor = tensor.descriptor();
    let absent = |why: &str| PyAttributeError::new_err(format!("__array_interface__: {why}"));
    if !descriptor.device().is_host_readable() {
        return Err(absent(&format!("the host cannot read {}", descriptor.device())));
    }
    let typestr = typestr::encode(descriptor.dtype())
        .ok_or_else(|| absent(&format!("it has no type string for {}", descriptor.dtype())))?;
    let dict = PyDict::new(py);
    dict.set_item("version", 3)?;
    dict.set_item("shape", PyTuple::new(py, descriptor.shape())?)?;
    dict.set_item("typestr", typestr)?;
    dict.set_item("data", (descriptor.ptr().addr(), descriptor.is_readonly()))?;
    dict.set_item("strides", attributes::strides(py, descriptor)?)?;
    Ok(dict)
}

/// The data interface: one host buffer, with dims and halo.
pub(crate) fn data_interface<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyDict>> {
    let buffer = interface(py, tensor)?;
    buffer.set_item("dims", attributes::labels(py, &tensor.dims())?)?;
    buffer.set_item("halo", PyTuple::new(py, tensor.halo())?)?;
    let devices = PyDict::new(py);
    devices.set_item(py.None(), buffer)?;
    Ok(devices)
}
