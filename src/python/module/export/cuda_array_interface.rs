//! `__cuda_array_interface__`.
//!
//! Source: Numba's page on the CUDA array interface, version 3.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cuda::{self, current_stream};
use crate::python::module::export::array_interface::{absent, dictionary};
use crate::python::sync;
use crate::tensor::Tensor;

const NAME: &str = "__cuda_array_interface__";

/// Returns the dictionary of the CUDA array interface, with the stream that the consumer has to wait for: the current one of
/// this thread, which is made to wait for all other recorded streams. Raises `AttributeError`, which makes the attribute
/// absent, for memory that no GPU can read and for element types that the interface could only call "void".
pub(crate) fn interface<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyDict>> {
    let descriptor = tensor.descriptor();
    let device = descriptor.device();
    if !device.is_of_cuda() {
        return Err(absent(NAME, &format!("no CUDA device can read {device}")));
    }
    let dict = dictionary(py, NAME, descriptor)?;
    if descriptor.size() == 0 {
        // The interface wants address 0 for arrays without elements.
        dict.set_item("data", (0, descriptor.is_readonly()))?;
    }
    cuda::init(device)?;
    sync::order_current_stream(py, tensor)?;
    dict.set_item("stream", current_stream(device).handle())?;
    Ok(dict)
}
