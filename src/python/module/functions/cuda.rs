//! The functions behind `dlfield.cuda`.

#![allow(unsafe_code, reason = "a stream is used in the body of a `with` statement")]

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::cuda::{self, Stream};
use crate::device::{Device, unknown_code};
use crate::python::convert::{args, stream};
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::device::parse_device;

/// Converts the number of a CUDA device, or any other form of a device.
fn device(value: &Bound<'_, PyAny>) -> PyResult<Device> {
    if value.get_type().hasattr(intern!(value.py(), "__index__"))? {
        let id = args::int("device", value)?;
        let known = u16::try_from(id).map(Device::cuda);
        return Ok(known.map_err(|_| unknown_code(2, id))?);
    }
    let device = parse_device(value)?;
    if device.is_of_cuda() {
        return Ok(device);
    }
    let expected = "a CUDA device: its number, its name such as 'cuda:0', or a framework's device object";
    Err(new_error::<PyTypeError>(format!("device: expected {expected}, got {}", args::shown(value))))
}

#[pyfunction]
#[pyo3(name = "_cuda_unavailable_reason")]
fn unavailable_reason() -> Option<String> {
    cuda::unavailable_reason()
}

#[pyfunction]
#[pyo3(name = "_cuda_device_count")]
fn device_count() -> i32 {
    cuda::device_count()
}

#[pyfunction]
#[pyo3(name = "_cuda_device_name")]
fn device_name(device: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(cuda::device_name(self::device(device)?)?)
}

/// Free and total memory, in bytes.
#[pyfunction]
#[pyo3(name = "_cuda_memory_info")]
fn memory_info(device: &Bound<'_, PyAny>) -> PyResult<(usize, usize)> {
    Ok(cuda::memory_info(self::device(device)?)?)
}

/// Number of the device, and the handle of its current stream in this thread.
#[pyfunction]
#[pyo3(name = "_cuda_current_stream")]
fn current_stream(device: &Bound<'_, PyAny>) -> PyResult<(i32, u64)> {
    let device = self::device(device)?;
    Ok((device.cuda_ordinal(), cuda::current_stream(device).handle()))
}

#[pyfunction]
#[pyo3(name = "_cuda_init")]
fn init(device: &Bound<'_, PyAny>) -> PyResult<()> {
    Ok(cuda::init(self::device(device)?)?)
}

#[pyfunction]
#[pyo3(name = "_cuda_synchronize")]
fn synchronize(py: Python<'_>, device: &Bound<'_, PyAny>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let named = device;
    let device = self::device(named)?;
    let stream = match stream {
        Some(stream) => stream::of(stream, device)?,
        None => stream::borrowed(named, device, cuda::current_stream(device).handle())?,
    };
    Ok(py.detach(|| cuda::synchronize(device, stream))?)
}

/// Sets the current stream of this thread; returns the number to remove it with, the device and the handle.
#[pyfunction]
#[pyo3(name = "_cuda_push_stream")]
fn push_stream(stream: &Bound<'_, PyAny>, device: Option<&Bound<'_, PyAny>>) -> PyResult<(u64, i32, u64)> {
    let owner = stream::owner(stream)?;
    let (device, stream) = match device {
        Some(device) => {
            let device = self::device(device)?;
            (device, stream::of(stream, device)?)
        }
        None => found(stream)?,
    };
    // SAFETY: the caller of `dlfield.cuda.stream` vouches for it in the body, at whose end it is removed.
    let number = unsafe { crate::memory::cuda::current::push_stream(device, stream, owner) };
    Ok((number, device.cuda_ordinal(), stream.handle()))
}

/// A stream and its device; the default streams count as those of the first device.
fn found<'call>(value: &'call Bound<'_, PyAny>) -> PyResult<(Device, Stream<'call>)> {
    let first = Device::cuda(0);
    let handle = stream::number(value)?.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
    match stream::device_of(value, first, handle) {
        Ok(device) if device != first => Ok((device, stream::borrowed(value, device, handle)?)),
        _ => Ok((first, stream::of(value, first)?)),
    }
}

#[pyfunction]
#[pyo3(name = "_cuda_pop_stream")]
fn pop_stream(py: Python<'_>, number: u64) {
    // The driver may wait for room in its queue, and the work there for the GIL.
    py.detach(|| crate::memory::cuda::current::pop_stream(number));
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(unavailable_reason, module)?)?;
    module.add_function(wrap_pyfunction!(device_count, module)?)?;
    module.add_function(wrap_pyfunction!(device_name, module)?)?;
    module.add_function(wrap_pyfunction!(memory_info, module)?)?;
    module.add_function(wrap_pyfunction!(current_stream, module)?)?;
    module.add_function(wrap_pyfunction!(init, module)?)?;
    module.add_function(wrap_pyfunction!(synchronize, module)?)?;
    module.add_function(wrap_pyfunction!(push_stream, module)?)?;
    module.add_function(wrap_pyfunction!(pop_stream, module)?)
}
