//! Returns slices of `cudarc`, which programs that launch kernels use, to Python.

use dlfield::cudarc::driver::{CudaContext, DriverError};
use dlfield::python::{Cuda, In};
use dlfield::{Device, DeviceError, Tensor, cuda};
use ndarray::{Ix1, IxDyn};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Copies the numbers to the first CUDA device.
#[pyfunction]
pub fn on_device(numbers: In<'_, f64, Ix1>) -> PyResult<Tensor> {
    // Without a driver every function of cudarc panics.
    if let Some(why) = cuda::unavailable_reason() {
        return Err(DeviceError::new("device", &Device::cuda(0), &format_args!("none that can be used: {why}")).into());
    }
    let stream = CudaContext::new(0).map_err(of_driver)?.default_stream();
    let numbers = numbers.array().to_vec();
    let slice = stream.clone_htod(&numbers).map_err(of_driver)?;
    // The driver may read the vector until this synchronization.
    stream.synchronize().map_err(of_driver)?;
    Ok(Tensor::try_from(slice)?)
}

/// Returns the arguments for a kernel launch: the address of an array on any CUDA device, and its strides in elements.
#[pyfunction]
pub fn for_kernels(x: In<'_, f64, IxDyn, dlfield::python::AnyOrder, Cuda>) -> (usize, Vec<i64>) {
    (x.descriptor().ptr().addr(), x.descriptor().strides().to_vec())
}

fn of_driver(error: DriverError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
