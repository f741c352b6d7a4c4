//! CuPy, which computes on a device as NumPy does on the host.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};

use crate::cuda::{current_stream, with_stream};
use crate::device::Device;
use crate::python::convert::stream;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::package;

/// The CuPy array on the memory of a tensor.
pub(crate) fn array<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "copy"), false)?;
    package::functions(py)?.call_method(intern!(py, "as_cupy"), (tensor,), Some(&keywords))
}

/// Imports CuPy. The error names what needs it, and the package to install.
#[cold]
pub(crate) fn module<'py>(py: Python<'py>, needed_by: &str) -> PyResult<Bound<'py, PyModule>> {
    Ok(package::functions(py)?.call_method1(intern!(py, "imported"), ("cupy", needed_by))?.cast_into()?)
}

/// Runs `work` with the CuPy array on the memory of a tensor, on its device and in order with our work.
pub(crate) fn with<'py, T>(
    tensor: &Bound<'py, PyTensor>,
    work: impl FnOnce(Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<T> {
    let device = tensor.get().0.descriptor().device();
    // The error of the import says what is missing.
    let array = array(tensor)?;
    let module = tensor.py().import(intern!(tensor.py(), "cupy"))?;
    on(&module, device, std::slice::from_ref(tensor), || work(array))
}

/// Runs `work` with a device as CuPy's current one. Our later work on the used tensors waits for CuPy's stream.
pub(crate) fn on<'py, T>(
    cupy: &Bound<'py, PyModule>,
    device: Device,
    used: &[Bound<'py, PyTensor>],
    work: impl FnOnce() -> PyResult<T>,
) -> PyResult<T> {
    let py = cupy.py();
    let cuda = cupy.getattr(intern!(py, "cuda"))?;
    let current = cuda.call_method1(intern!(py, "Device"), (device.id(),))?;
    current.call_method0(intern!(py, "__enter__"))?;
    let done = work().and_then(|found| {
        let cupy_stream: u64 =
            cuda.call_method0(intern!(py, "get_current_stream"))?.getattr(intern!(py, "ptr"))?.extract()?;
        let current = stream::borrowed(cupy, device, current_stream(device).handle())?;
        // In CUDA, handle 0 is the legacy default stream.
        let cupy_stream = stream::borrowed(cupy, device, cupy_stream.max(1))?;
        if cupy_stream == current {
            return Ok(found);
        }
        with_stream(device, cupy_stream, || {
            let used = used.iter().map(|tensor| &tensor.get().0);
            used.into_iter().try_for_each(|tensor| Ok::<_, PyErr>(py.detach(|| tensor.make_stream_wait(current))?))
        })?;
        Ok(found)
    });
    current.call_method1(intern!(py, "__exit__"), (py.None(), py.None(), py.None()))?;
    done
}
