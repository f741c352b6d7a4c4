//! Converts Rust tensors to the module's `dlfield.Tensor`, in every extension that this crate is built into.
//!
//! Another extension has its own class for tensors, which is not registered in Python. So the memory goes through the
//! module's C exchange API, and the metadata that DLPack cannot express is passed after that.

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
use crate::protocol::ExchangeError;
use crate::python::convert::errors;
use crate::python::convert::metadata_state::MetadataState;
use crate::python::ffi::dlpack_c;
use crate::tensor::Tensor;

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
    /// Absent in modules of other versions, which may take other metadata.
    with_metadata: Option<Py<PyAny>>,
}

/// The version of this crate; a module of this version takes metadata beyond DLPack from it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

static MODULE: PyOnceLock<Module> = PyOnceLock::new();

fn module(py: Python<'_>) -> PyResult<&Module> {
    MODULE.get_or_try_init(py, || {
        let native = py.import(intern!(py, "dlfield._native"))?;
        let class = native.getattr(intern!(py, "Tensor"))?.cast_into::<PyType>()?;
        let table = dlpack_c::table(&class)?;
        let wrap = table.and_then(|table| table.managed_tensor_to_py_object_no_sync);
        let wrap = wrap.ok_or(ExchangeError::NullPointer { field: WRAP })?;
        let work_stream = table.and_then(|table| table.current_work_stream);
        let work_stream = work_stream.ok_or(ExchangeError::NullPointer { field: WORK_STREAM })?;
        let same = native.getattr(intern!(py, "__version__"))?.eq(VERSION)?;
        let with_metadata = if same { Some(native.getattr(intern!(py, "_with_metadata"))?.unbind()) } else { None };
        Ok(Module { wrap, work_stream, with_metadata })
    })
}

impl Module {
    /// Makes the module's stream wait for this extension's work on device memory.
    fn make_stream_wait(&self, py: Python<'_>, tensor: &Tensor) -> PyResult<()> {
        let device = tensor.descriptor().device();
        if !device.is_cuda() {
            return Ok(());
        }
        let DLDevice { device_type, device_id } = device.to_dlpack();
        let mut stream = null_mut();
        // SAFETY: the module's own function, with a valid out pointer.
        if unsafe { (self.work_stream)(device_type, device_id, &raw mut stream) } != 0 {
            return Err(failed(py, WORK_STREAM));
        }
        // NULL is the legacy default stream, as in the CUDA runtime.
        let stream = if stream.is_null() { Stream::LEGACY } else { Stream::of_raw(stream.addr() as u64) };
        // Work on the stream may need the GIL.
        Ok(py.detach(|| tensor.make_stream_wait(stream))?)
    }

    fn with_metadata<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let missing = || {
            let found = py.import("dlfield._native").and_then(|native| native.getattr("__version__"));
            let found = found.map_or_else(|_| "unknown".to_owned(), |found| found.to_string());
            let wanted = "labels and alignment of a tensor need the version that the extension was built with";
            PyImportError::new_err(format!("dlfield: the module is version {found}; {wanted}: {VERSION}"))
        };
        self.with_metadata.as_ref().map(|with_metadata| with_metadata.bind(py)).ok_or_else(missing)
    }
}

/// Makes a `dlfield.Tensor` on the same memory, with dims, origin, halo, layout and alignment. Needs the module `dlfield`.
impl<'py> IntoPyObject<'py> for Tensor {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (&self).into_pyobject(py)
    }
}

/// As for an owned [`Tensor`].
impl<'py> IntoPyObject<'py> for &Tensor {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let module = module(py)?;
        module.make_stream_wait(py, self)?;
        if !self.owner().mark_exported() {
            // A reader may wait for a device, and the device's work for the GIL.
            py.detach(|| self.owner().wait_for_readers());
        }
        let managed = self.to_versioned(false)?.into_raw();
        let mut made = null_mut();
        // SAFETY: the module's own function, which consumes the struct also on failure, and returns a new reference on
        // success.
        let tensor = unsafe {
            if (module.wrap)(managed, &raw mut made) != 0 {
                return Err(failed(py, WRAP));
            }
            Bound::from_owned_ptr_or_opt(py, made.cast()).ok_or_else(|| failed(py, WRAP))?
        };
        match MetadataState::of(self) {
            None => Ok(tensor),
            Some(state) => module.with_metadata(py)?.call1((tensor, state)),
        }
    }
}
