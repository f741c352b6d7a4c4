//! Streams of PyTorch and CuPy, which release imported memory while their work on it may still run.
//!
//! Both call the deleter of a managed tensor when the last array is deleted, and tell a producer no stream or only a handle. So
//! an export records the current stream of each that is not its default stream, with the object that keeps it alive. The work of
//! default streams is waited for anyway.

use pyo3::intern;
use pyo3::prelude::*;

use crate::device::Device;
use crate::memory::cuda::StreamUses;
use crate::python::convert::stream;
use crate::python::interrupt;

/// Records the current streams of consumers that are loaded; with `told` that one of them that has this handle.
#[cold]
pub fn record(py: Python<'_>, uses: &StreamUses, device: Device, told: Option<u64>) {
    let current = [torch_stream(py, device), cupy_stream(py)];
    let put_off = |error: &PyErr| interrupt::put_off(py, error);
    for (handle, object) in current.into_iter().filter_map(|found| found.inspect_err(put_off).ok()?) {
        if handle <= 2 || told.is_some_and(|told| told != handle) {
            continue;
        }
        if let Ok(Some(owner)) = stream::owner(&object).inspect_err(put_off)
            && let Ok(stream) = stream::borrowed(&object, device, handle)
        {
            // A stream that can't be ordered, as another one is captured, is not the consumer's.
            let _ = py.detach(|| uses.record_owned(device, stream, owner));
        }
    }
}

/// The module of this name, if it is imported.
fn imported<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let found = modules.call_method1(intern!(py, "get"), (name,))?;
    Ok((!found.is_none()).then_some(found))
}

type CurrentOf<'py> = PyResult<Option<(u64, Bound<'py, PyAny>)>>;

fn torch_stream(py: Python<'_>, device: Device) -> CurrentOf<'_> {
    let Some(torch) = imported(py, "torch")? else { return Ok(None) };
    let cuda = torch.getattr(intern!(py, "cuda"))?;
    if !cuda.call_method0(intern!(py, "is_initialized"))?.is_truthy()? {
        return Ok(None);
    }
    let stream = cuda.call_method1(intern!(py, "current_stream"), (device.cuda_ordinal(),))?;
    Ok(Some((stream.getattr(intern!(py, "cuda_stream"))?.extract()?, stream)))
}

fn cupy_stream(py: Python<'_>) -> CurrentOf<'_> {
    let Some(cupy) = imported(py, "cupy")? else { return Ok(None) };
    let stream = cupy.getattr(intern!(py, "cuda"))?.call_method0(intern!(py, "get_current_stream"))?;
    Ok(Some((stream.getattr(intern!(py, "ptr"))?.extract()?, stream)))
}
