//! The input of an import: device, access, ownership, copy and stream; and the errors of requests that cannot be met.

use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict, PyFloat, PyInt, PyList, PyTuple, PyType};

use crate::device::{self, Device};
use crate::error::{DeviceError, DeviceErrorKind, Error, ExchangeError, ExchangeErrorKind};
use crate::layout::Metadata;
use crate::python::convert::args;
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::getattr;
use crate::python::ffi::new_error::ArgumentError;
use crate::python::import::type_info::is_jax;
use crate::tensor::device::needs_copy;

/// What the caller does with the elements. Host/device pairs bring a buffer up to date for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RequestAccess {
    /// Reads no elements, or not yet: they may be out of date.
    Inspect,
    /// As `Inspect`; a stencil call runs the hooks of the data interface later.
    Stencil,
    Read,
    Write,
}

/// What the caller asks for. Plain input: importers only read it.
#[derive(Clone, Copy)]
pub struct Request<'a, 'py> {
    pub device: Option<Device>,
    /// The device that uses the memory: of several buffers, the one nearest to it is imported.
    pub near: Option<Device>,
    pub access: RequestAccess,
    pub ownership: Ownership,
    pub copy: Option<bool>,
    pub stream: Option<&'a Bound<'py, PyAny>>,
    /// Metadata to set on the descriptor instead of the object's; `None` to look for none.
    pub metadata: Option<&'a Metadata>,
}

static NOTHING_GIVEN: Metadata = Metadata { dims: None, origin: None, halo: None, halo_is_cut: false };

impl<'a, 'py> Request<'a, 'py> {
    /// A request for access to borrowed memory on any device. The most frequent requests are constants made by this: reading
    /// a struct right after its fields were written one by one takes as long as the rest of an import.
    #[inline(always)]
    pub const fn new(access: RequestAccess) -> Request<'a, 'py> {
        Request {
            device: None,
            near: None,
            access,
            ownership: Ownership::Borrow,
            copy: None,
            stream: None,
            metadata: None,
        }
    }

    /// As this request, for memory that outlives the call.
    #[must_use]
    pub const fn sharing(mut self) -> Request<'a, 'py> {
        self.ownership = Ownership::Share;
        self
    }

    /// As this request, with the object's metadata.
    #[must_use]
    pub const fn with_metadata(mut self) -> Request<'a, 'py> {
        self.metadata = Some(&NOTHING_GIVEN);
        self
    }

    /// Whether the object's own memory is requested, so that a copy is an error.
    pub fn rejects_copy(&self) -> bool {
        self.ownership == Ownership::Borrow || self.copy == Some(false)
    }

    /// Whether memory of `found` must be imported from another buffer, or copied, for the requested device.
    pub fn is_elsewhere(&self, found: Device) -> bool {
        self.device.is_some_and(|wanted| !wanted.can_access(found))
    }

    /// The device whose streams use memory of CUDA: the requested one if that is a GPU that can access it, else the memory's.
    pub fn stream_device(&self, found: Device) -> Device {
        self.device.filter(|wanted| wanted.is_cuda() && wanted.can_access(found)).unwrap_or(found)
    }

    /// Whether elements are written, or are read from memory that outlives the call.
    pub fn writes_or_keeps(&self) -> bool {
        self.access == RequestAccess::Write
            || (self.access == RequestAccess::Read && self.ownership == Ownership::Share)
    }
}

/// Whether the memory has to outlive the call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// No: for a description.
    Borrow,
    /// Yes: the import returns an owner.
    Share,
}

impl RequestAccess {
    /// Whether elements are read or written right after the import.
    pub fn accesses_elements(self) -> bool {
        matches!(self, RequestAccess::Read | RequestAccess::Write)
    }
}

/// Returns the error for a copy if the object's own memory is requested.
#[cold]
pub(crate) fn refused_copy(ownership: Ownership, reason: &str) -> ExchangeError {
    match ownership {
        Ownership::Borrow => ExchangeError::from_sentence("obj", &reason)
            .with_fix(&"pass an object that shares its own memory, or take the copy with from_dlpack")
            .with_kind(ExchangeErrorKind::NeedsCopy),
        Ownership::Share => needs_copy(&reason),
    }
}

/// Rejects a stream other than None and -1 for device memory that was exported without stream information.
pub fn check_exported(request: &Request<'_, '_>, found: Device) -> PyResult<()> {
    let Some(stream) = request.stream.filter(|stream| !stream.is_none()) else { return Ok(()) };
    if found == Device::CPU || args::if_converted(stream.py(), stream.extract::<i64>())? == Some(-1) {
        return Ok(());
    }
    let allowed = "None, or -1 if the caller synchronizes, as the protocol of obj does not take a stream";
    Err(ExchangeError::new("stream", &allowed, &args::shown(stream)).into())
}

/// Whether the object is of a type that is never an array. A class has the methods of its instances, but no memory; numbers,
/// lists and tuples are often assigned to fields, so they are rejected early.
pub(super) fn is_never_array(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyType>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyComplex>()
        || object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyTuple>()
}

/// Returns the error for an object without any protocol.
#[cold]
pub fn not_an_array(object: &Bound<'_, PyAny>) -> PyErr {
    let fix = if has_elements_only(object) {
        "dl.from_array(...) copies it into a field"
    } else if is_sparse(object) {
        ".toarray() makes an array of it"
    } else if object.is_instance_of::<PyType>() {
        "pass an instance of the class"
    } else if object.is_instance_of::<PyDict>() {
        "pass one of its values"
    } else {
        "arrays have __dlpack__, __dlpack_c_exchange_api__, __gt_data_interface__, __cuda_array_interface__, \
         __hip_array_interface__, __array_interface__, __array_struct__, __array__ or the buffer protocol, or are a \
         DLPack capsule, an xarray.DataArray or a gt4py.next Field"
    };
    ErrorKind::NotAnArray.error(ArgumentError::new("obj", &"an array", &object.get_type()).with_fix(&fix))
}

/// Whether the object has elements, but no memory to share.
fn has_elements_only(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyComplex>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
}

fn is_sparse(object: &Bound<'_, PyAny>) -> bool {
    getattr::module_of(&object.get_type()).is_some_and(|module| module.starts_with("scipy.sparse"))
}

/// Returns the error of an import for an argument that is written: [`not_an_array`] would advise a copy, in which the result is lost.
#[cold]
pub fn not_an_output(object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let would_be_copied = has_elements_only(object) || is_sparse(object);
    if !would_be_copied || !ErrorKind::NotAnArray.is(object.py(), &error) {
        return error;
    }
    let fix = "it is written, so pass an array, which keeps the result";
    ErrorKind::NotAnArray.error(ArgumentError::new("obj", &"an array", &object.get_type()).with_fix(&fix))
}

/// Returns the error of a check for an argument that is written: of JAX's arrays, no copy can be written either.
#[cold]
pub fn read_only_output(object: &Bound<'_, PyAny>, error: Error) -> Error {
    match error {
        Error::Exchange(error) if error.kind() == ExchangeErrorKind::ReadOnly && is_jax(object) => {
            error.with_fix(&"JAX arrays cannot be written: pass a field, and dl.as_jax(field) to JAX afterwards").into()
        }
        error => error,
    }
}

/// Returns the error for memory that the requested device cannot access.
#[cold]
pub(crate) fn elsewhere(found: Device, wanted: Device) -> DeviceError {
    device::mismatch(found, wanted).with_fix(&format_args!("copy it there: from_dlpack(obj, device='{wanted}')"))
}

/// Returns the error for a device whose memory dlfield cannot own.
#[cold]
pub(crate) fn not_owned(device: Device) -> DeviceError {
    let expected = "memory of the host or of CUDA, which dlfield can own";
    DeviceError::new("device", &expected, &format_args!("memory on {device}"))
        .with_fix(&"describe() it, or copy it to the host first")
        .with_kind(DeviceErrorKind::Unsupported)
}
