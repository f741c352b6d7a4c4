//! `__array_interface__`.
//!
//! Source: NumPy's page on the array interface, version 3.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::descriptor::Descriptor;
use crate::protocol::typestr;
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::attribute_values;
use crate::python::sync;
use crate::tensor::Tensor;

/// Returns the dictionary of the array interface. Raises `AttributeError`, which makes the attribute absent, for memory
/// that the host cannot read and for element types that the interface could only call "void".
pub(crate) fn interface<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyDict>> {
    let descriptor = tensor.descriptor();
    if !descriptor.device().is_host_readable() {
        return Err(absent("__array_interface__", &format!("the host cannot read {}", descriptor.device())));
    }
    sync::synchronize_host(py, tensor)?;
    dictionary(py, "__array_interface__", descriptor)
}

/// The error that makes an attribute absent.
pub(crate) fn absent(name: &str, why: &str) -> PyErr {
    new_error::<PyAttributeError>(format!("{name}: {why}"))
}

/// The entries that the interfaces of host and CUDA have in common.
pub(crate) fn dictionary<'py>(
    py: Python<'py>,
    name: &'static str,
    descriptor: &Descriptor,
) -> PyResult<Bound<'py, PyDict>> {
    // NumPy would take a void type as plain bytes; without this interface it calls `__array__`, which has the right dtype.
    let typestr = typestr::encode(descriptor.dtype())
        .ok_or_else(|| absent(name, &format!("it has no type string for {}", descriptor.dtype())))?;
    let dict = PyDict::new(py);
    dict.set_item("version", 3)?;
    dict.set_item("shape", PyTuple::new(py, descriptor.shape())?)?;
    dict.set_item("typestr", typestr)?;
    dict.set_item("data", (descriptor.ptr().addr(), descriptor.is_readonly()))?;
    dict.set_item("strides", attribute_values::strides(py, descriptor)?)?;
    Ok(dict)
}
