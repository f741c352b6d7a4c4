//! Device memory of several processes, for `dlfield.shared_memory`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::DeviceError;
use crate::memory::cuda::ipc::device_of_uuid;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::sync;
use crate::tensor::SharedBlock;

/// Finds the bytes of a block of device memory, as long as they have a tensor.
#[pyclass(name = "_SharedBlock", module = "dlfield._native", frozen)]
struct PySharedBlock(SharedBlock);

#[pymethods]
impl PySharedBlock {
    /// Returns the bytes; None if they have no tensor any more.
    fn find(&self) -> Option<PyTensor> {
        self.0.bytes().map(PyTensor::new)
    }
}

/// A new block: what finds it, its bytes, the UUID of the device, the handle of the memory, and the number of a file.
type NewBlock<'py> = (PySharedBlock, PyTensor, Bound<'py, PyBytes>, Bound<'py, PyBytes>, i32);

/// Allocates the block for a copy of a field on a device. The last number is that of a duplicate of the file, which is open as
/// long as the memory is allocated.
#[pyfunction]
#[pyo3(name = "_allocate_shared")]
fn allocate_shared<'py>(like: &Bound<'py, PyTensor>, file: i32) -> PyResult<NewBlock<'py>> {
    let (py, like) = (like.py(), &like.get().0);
    let (block, bytes, exported) = py.detach(|| SharedBlock::allocate(like, file))?;
    let (uuid, handle) = (PyBytes::new(py, &exported.uuid), PyBytes::new(py, &exported.handle));
    Ok((PySharedBlock(block), PyTensor::new(bytes), uuid, handle, exported.file))
}

/// Opens the block of another process, of which a shared lock on the file is held. Returns what finds it, and its bytes.
#[pyfunction]
#[pyo3(name = "_open_shared")]
fn open_shared(
    py: Python<'_>,
    uuid: [u8; 16],
    handle: [u8; 64],
    nbytes: usize,
    file: i32,
) -> PyResult<(PySharedBlock, PyTensor)> {
    let Some(device) = device_of_uuid(uuid)? else {
        let uuid: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        let got = format_args!("the GPU with UUID {uuid}");
        let error = DeviceError::new("name", &"memory on a GPU that this process sees", &got);
        return Err(error.with_fix(&"check CUDA_VISIBLE_DEVICES").into());
    };
    let (block, bytes) = py.detach(|| SharedBlock::open(device, handle, nbytes, file))?;
    Ok((PySharedBlock(block), PyTensor::new(bytes)))
}

/// Waits for the work on a tensor's memory that this process has recorded.
#[pyfunction]
#[pyo3(name = "_wait")]
fn wait(py: Python<'_>, tensor: &Bound<'_, PyTensor>) -> PyResult<()> {
    Ok(sync::synchronize_host(py, &tensor.get().0)?)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySharedBlock>()?;
    module.add_function(wrap_pyfunction!(allocate_shared, module)?)?;
    module.add_function(wrap_pyfunction!(open_shared, module)?)?;
    module.add_function(wrap_pyfunction!(wait, module)?)
}
