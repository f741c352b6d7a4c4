//! The interface of storages: a tensor is one with a single buffer, so there is nothing to synchronize.

use pyo3::intern;
use pyo3::prelude::*;

use crate::device::Device;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::{self, cupy};

#[pymethods]
impl PyTensor {
    /// The memory as a NumPy array, None if the host cannot read it.
    ///
    /// It is not a `memoryview`, as that of NumPy's arrays: netCDF4 takes an object with one for an array of NumPy's.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((2, 3)).data.shape
    /// (2, 3)
    #[getter]
    fn data<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let reaches = slf.get().descriptor().device().is_host_readable();
        reaches.then(|| export::numpy::view_of(slf)).transpose()
    }

    /// The memory as a `cupy.cuda.MemoryPointer`, None if no GPU can read it.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((2, 3)).device_data is None
    /// True
    #[getter]
    fn device_data<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let device = slf.get().descriptor().device();
        let reaches = device.is_cuda() || device == Device::CUDA_MANAGED;
        reaches.then(|| cupy::array(slf)?.getattr(intern!(slf.py(), "data"))).transpose()
    }

    /// Copies modifications of the host to the device: does nothing, as there is one buffer. For code that takes any storage,
    /// such as `dlfield.storage.SoftwareManagedGPUStorage`.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).host_to_device()
    #[pyo3(signature = (*, force=false))]
    fn host_to_device(&self, force: bool) {
        let _ = force;
    }

    /// Copies modifications of the device to the host: does nothing, as there is one buffer.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).device_to_host()
    #[pyo3(signature = (*, force=false))]
    fn device_to_host(&self, force: bool) {
        let _ = force;
    }

    /// Marks the host buffer as modified: does nothing, as there is one buffer.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).set_host_modified()
    fn set_host_modified(&self) {}

    /// Marks the device buffer as modified: does nothing, as there is one buffer.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).set_device_modified()
    fn set_device_modified(&self) {}

    /// Marks the buffers as equal: does nothing, as there is one buffer.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).set_synchronized()
    fn set_synchronized(&self) {}

    /// Makes the buffers equal: does nothing, as there is one buffer.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).synchronize()
    fn synchronize(&self) {}
}
