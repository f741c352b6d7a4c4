//! Converts Rust tensors to the module's `dlfield.Tensor`, in every extension that this crate is built into.
//!
//! Another extension has its own class for tensors, which is not registered in Python. So a tensor is made by the C API of the
//! module's class, or, if the module is of a version with another API, by DLPack's C exchange API, which knows no metadata.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use dlpark::ffi::{DLDevice, DLDeviceType, DLManagedTensorVersioned};
use pyo3::exceptions::PyImportError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::memory::cuda::Stream;
use crate::protocol::dlpack::null_pointer;
use crate::python::convert::errors;
use crate::python::ffi::new_error::new_error;
use crate::python::import;
use crate::python::sync;
use crate::python::tensor_api;
use crate::tensor::{Owner, Tensor};

/// Makes a Python tensor of a managed tensor, which it consumes also on failure. Returns 0, or -1 with a Python exception
/// set.
type Wrap = unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut c_void) -> c_int;

/// Writes the stream of the module's work on a device. Returns 0, or -1 with a Python exception set.
type WorkStream = unsafe extern "C" fn(DLDeviceType, i32, *mut *mut c_void) -> c_int;

const WRAP: &str = "dlfield.Tensor.__dlpack_c_exchange_api__.managed_tensor_to_py_object_no_sync";
const WORK_STREAM: &str = "dlfield.Tensor.__dlpack_c_exchange_api__.current_work_stream";

/// The error of a failed function of the module's table.
#[cold]
fn failed(py: Python<'_>, function: &'static str) -> PyErr {
    PyErr::take(py).unwrap_or_else(|| errors::no_exception_set(function, "a tensor of Rust"))
}

/// The functions of the module `dlfield` that make a tensor of its class.
struct Module {
    wrap: Wrap,
    work_stream: WorkStream,
    /// Absent in modules of versions with another table.
    api: Option<tensor_api::Api>,
}

static MODULE: PyOnceLock<Module> = PyOnceLock::new();

fn module(py: Python<'_>) -> PyResult<&Module> {
    MODULE.get_or_try_init(py, || {
        let native = py.import(intern!(py, "dlfield._native"))?;
        let class = native.getattr(intern!(py, "Tensor"))?.cast_into::<PyType>()?;
        let table = import::exchange_table(&class)?;
        let wrap = table.and_then(|table| table.managed_tensor_to_py_object_no_sync);
        let wrap = wrap.ok_or_else(|| null_pointer(WRAP))?;
        let work_stream = table.and_then(|table| table.current_work_stream);
        let work_stream = work_stream.ok_or_else(|| null_pointer(WORK_STREAM))?;
        Ok(Module { wrap, work_stream, api: tensor_api::find(&class)? })
    })
}

impl Module {
    /// Makes the module's stream wait for this extension's work on device memory.
    #[cold]
    fn make_stream_wait(&self, py: Python<'_>, tensor: &Tensor) -> PyResult<()> {
        let DLDevice { device_type, device_id } = tensor.descriptor().device().to_dlpack();
        let mut stream = null_mut();
        // SAFETY: the module's own function, with a valid out pointer.
        if unsafe { (self.work_stream)(device_type, device_id, &raw mut stream) } != 0 {
            return Err(failed(py, WORK_STREAM));
        }
        // NULL is the legacy default stream, as in the CUDA runtime.
        let device = tensor.descriptor().device();
        // SAFETY: the module's current stream, which exists until it sets another one.
        let stream = unsafe { Stream::borrow_raw(device, (stream.addr() as u64).max(1)) }?;
        // Work on the stream may need the GIL.
        Ok(py.detach(|| tensor.make_stream_wait(stream))?)
    }

    /// Makes the memory ready for use by Python: orders this extension's work on it, and waits for its readers.
    #[inline]
    fn export(&self, py: Python<'_>, tensor: &Tensor) -> PyResult<()> {
        let device = tensor.descriptor().device();
        if device.is_cuda() {
            self.make_stream_wait(py, tensor)?;
        } else if device.is_of_cuda() {
            // Python code on the host may use pinned and managed memory at once.
            sync::wait_for_device(py, tensor)?;
        }
        Ok(sync::export(py, tensor.owner())?)
    }

    /// Makes a `dlfield.Tensor` of a tensor that says nothing that DLPack cannot express.
    #[cold]
    fn by_dlpack<'py>(&self, py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
        if tensor.descriptor().metadata().is_some_and(|metadata| !metadata.is_empty()) || tensor.promise().is_stated() {
            let found = py.import("dlfield._native").and_then(|native| native.getattr("__version__"));
            let found = found.map_or_else(|_| "unknown".to_owned(), |found| found.to_string());
            let wanted =
                "labels and alignment of a tensor need a module with the C API that the extension was built for";
            let built = env!("CARGO_PKG_VERSION");
            return Err(new_error::<PyImportError>(format!(
                "dlfield: the module is version {found}; {wanted}, such as version {built}"
            )));
        }
        let managed = tensor.to_versioned(false)?.into_raw();
        let mut made = null_mut();
        // SAFETY: the module's own function, which consumes the struct also on failure, and returns a new reference on
        // success.
        unsafe {
            if (self.wrap)(managed, &raw mut made) != 0 {
                return Err(failed(py, WRAP));
            }
            Bound::from_owned_ptr_or_opt(py, made.cast()).ok_or_else(|| failed(py, WRAP))
        }
    }
}

/// Makes a `dlfield.Tensor` on the same memory, with dims, origin, halo, layout and alignment. Needs the module `dlfield`.
///
/// Python's stream waits for the work on device memory in the current stream ([`with_stream`](crate::cuda::with_stream)) and in
/// all streams that are recorded for the memory: that of its allocation, and those of copies, fills, views for kernels and
/// exports. Let one of them wait for any other stream that uses it.
impl<'py> IntoPyObject<'py> for Tensor {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    #[inline]
    fn into_pyobject(mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let module = module(py)?;
        module.export(py, &self)?;
        let Some(api) = module.api else { return module.by_dlpack(py, &self) };
        // SAFETY: the tensor is dropped after this, and its elements are not accessed any more.
        let owner = std::mem::replace(unsafe { self.parts_mut() }.1, Owner::NONE);
        api.create(py, &self, owner)
    }
}

/// As for an owned [`Tensor`].
impl<'py> IntoPyObject<'py> for &Tensor {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let module = module(py)?;
        module.export(py, self)?;
        match module.api {
            Some(api) => api.create(py, self, self.owner().clone()),
            None => module.by_dlpack(py, self),
        }
    }
}
