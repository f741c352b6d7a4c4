//! The input of an import, a [`Request`], what it fills in, an [`Imported`], and the errors of requests that cannot be met.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict, PyFloat, PyInt, PyList, PyTuple, PyType};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{DeviceError, DeviceErrorKind, Error, ExchangeError, ExchangeErrorKind};
use crate::layout::{Metadata, Promise};
use crate::python::convert::args;
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::getattr;
use crate::python::ffi::new_error::ArgumentError;
use crate::python::import::data_interface::{Hooks, Interface};
use crate::python::import::frameworks::Kind;
use crate::python::import::type_info::kind_of;
use crate::python::interrupt;
use crate::python::py_owner::{self, PyOwner, ReleaseHook};
use crate::tensor::Owner;
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
pub struct Request<'a> {
    pub device: Option<Device>,
    /// The device that uses the memory: of several buffers, the one nearest to it is imported.
    pub near: Option<Device>,
    pub access: RequestAccess,
    pub ownership: Ownership,
    pub copy: Option<bool>,
    pub stream: Option<&'a Bound<'a, PyAny>>,
    /// Metadata to set on the descriptor instead of the object's; `None` to look for none.
    pub metadata: Option<&'a Metadata>,
}

static NOTHING_GIVEN: Metadata = Metadata { dims: None, origin: None, halo: None, halo_is_cut: false };

impl<'a> Request<'a> {
    /// A request for access to borrowed memory on any device. The most frequent requests are constants made by this: reading
    /// a struct right after its fields were written one by one takes as long as the rest of an import.
    #[inline(always)]
    pub const fn new(access: RequestAccess) -> Request<'a> {
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
    pub const fn sharing(mut self) -> Request<'a> {
        self.ownership = Ownership::Share;
        self
    }

    /// As this request, with the object's metadata.
    #[must_use]
    pub const fn with_metadata(mut self) -> Request<'a> {
        self.metadata = Some(&NOTHING_GIVEN);
        self
    }

    /// Whether the object's own memory is requested, so that a copy is an error.
    pub fn rejects_copy(&self) -> bool {
        self.ownership == Ownership::Borrow || self.copy == Some(false)
    }

    /// Returns the error for a copy if the object's own memory is requested.
    #[cold]
    pub fn refused_copy(&self, reason: &str) -> ExchangeError {
        match self.ownership {
            Ownership::Borrow => ExchangeError::from_sentence("obj", &reason)
                .with_fix(&"pass an object that shares its own memory, or take the copy with from_dlpack")
                .with_kind(ExchangeErrorKind::NeedsCopy),
            Ownership::Share => needs_copy(&reason),
        }
    }

    /// Whether memory of `found` must be imported from another buffer, or copied, for the requested device.
    pub fn is_elsewhere(&self, found: Device) -> bool {
        self.device.is_some_and(|wanted| !wanted.can_access(found))
    }

    /// The device whose streams use memory of CUDA: the requested one if that is a GPU that can access it, else the memory's.
    pub fn stream_device(&self, found: Device) -> Device {
        self.device.filter(|wanted| wanted.is_cuda() && wanted.can_access(found)).unwrap_or(found)
    }

    /// Rejects a stream other than None and -1 for device memory that was exported without stream information.
    pub fn check_exported(&self, found: Device) -> PyResult<()> {
        let Some(stream) = self.stream.filter(|stream| !stream.is_none()) else { return Ok(()) };
        if found == Device::CPU || args::if_converted(stream.py(), stream.extract::<i64>())? == Some(-1) {
            return Ok(());
        }
        let allowed = "None, or -1 if the caller synchronizes, as the protocol of obj does not take a stream";
        Err(ExchangeError::new("stream", &allowed, &args::shown(stream)).into())
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

/// The result of an import. Importers fill it in in place, as moving it would take time; the descriptor is in the caller's
/// object already.
pub struct Imported<'a> {
    pub descriptor: &'a mut Descriptor,
    /// The name of the protocol; for a wrapper, that of the array inside.
    pub protocol: &'static str,
    /// The owner of the memory. `None` if the memory belongs to the object, which may move it; only for `Ownership::Borrow`.
    pub owner: Option<Owner>,
    /// Whether the memory lives only as long as the object, too: a dictionary or a struct of addresses says nothing of who keeps it.
    /// Only for `Ownership::Borrow`: a description keeps the object next to the owner, so that the garbage collector sees it.
    pub owner_needs_object: bool,
    /// Whether the memory counts as read-only because its struct has no read-only flag.
    pub readonly_unknown: bool,
    /// The producer's stream, on which work on the memory may still run, if the producer names it.
    pub producer_stream: Option<i64>,
    /// What the allocation of a `dlfield.Tensor` of the module promises, in an extension.
    pub promise: Option<Box<Promise>>,
    /// Whether the object is a `dlfield.Tensor`, which has no hooks, and whose memory stays where it is.
    pub is_tensor: bool,
    /// Whether the descriptor has all metadata of the object, and the object has no hooks.
    pub has_all_metadata: bool,
    /// The object's data interface, if it was looked up.
    pub interface: Option<Interface<'a>>,
    /// The array inside the object, if the object is a wrapper.
    pub inner: Option<Box<Inner<'a>>>,
    pub release: Release,
}

/// The part of an [`Imported`] that callers keep.
pub struct Found {
    pub owner: Option<Owner>,
    pub owner_needs_object: bool,
    pub protocol: &'static str,
    pub readonly_unknown: bool,
}

/// The `release` hook of an imported object, to be called when the memory is released; the owner calls it at the latest.
#[derive(Default)]
pub struct Release(pub Option<Arc<ReleaseHook>>);

impl Release {
    /// Calls the hook after the memory was copied, so that its error reaches the caller. For memory that a device may still be
    /// reading, the owner calls the hook.
    pub fn after_copy(&self, py: Python<'_>, device: Device) -> PyResult<()> {
        let hook = self.0.as_ref().filter(|_| device.is_host_readable());
        hook.map_or(Ok(()), |hook| hook.now(py))
    }
}

/// An array inside a wrapper, with the data interface that was looked up for it.
pub struct Inner<'py> {
    pub array: Bound<'py, PyAny>,
    pub interface: Option<Interface<'py>>,
    /// The array inside this one, if this one is a wrapper, too.
    pub inner: Option<Box<Inner<'py>>>,
}

impl<'a> Imported<'a> {
    /// A result to fill in, with a descriptor to fill in.
    #[inline]
    pub fn new(descriptor: &'a mut Descriptor) -> Self {
        Imported {
            descriptor,
            protocol: "",
            owner: None,
            owner_needs_object: false,
            readonly_unknown: false,
            producer_stream: None,
            promise: None,
            is_tensor: false,
            has_all_metadata: false,
            interface: None,
            inner: None,
            release: Release(None),
        }
    }

    /// What the caller keeps. The descriptor is its own again.
    #[inline(always)]
    pub fn found(self) -> Found {
        let Imported { owner, owner_needs_object, protocol, readonly_unknown, .. } = self;
        Found { owner, owner_needs_object, protocol, readonly_unknown }
    }

    /// Sets the owner of the memory. Returns `true`, as importers do if the object has their protocol.
    pub fn owned(&mut self, owner: Owner) -> bool {
        self.owner = Some(owner);
        true
    }

    /// Sets the owner of memory that a dictionary or a struct of addresses, the `source`, describes: the buffer that it names if it
    /// does, else the source. That says nothing of who keeps the memory, so the object is kept too: by the owner, or by a description.
    pub fn owned_by(
        &mut self,
        held: Option<Owner>,
        source: &Bound<'_, PyAny>,
        object: &Bound<'_, PyAny>,
        request: &Request<'_>,
    ) -> bool {
        self.owner_needs_object = held.is_none() && request.ownership == Ownership::Borrow;
        self.owned(match (held, request.ownership) {
            (Some(held), _) => held,
            (None, Ownership::Borrow) => py_owner::owner(source),
            (None, Ownership::Share) => Owner::foreign((PyOwner::new(object), PyOwner::new(source))),
        })
    }

    /// Returns the array that has the memory: the object, or what it wraps.
    pub fn innermost<'b>(&'b self, object: &'b Bound<'a, PyAny>) -> &'b Bound<'a, PyAny> {
        let (mut found, mut inner) = (object, &self.inner);
        while let Some(next) = inner {
            (found, inner) = (&next.array, &next.inner);
        }
        found
    }

    /// Returns the hooks of the object, or else those of the array inside it, for memory on `device`.
    pub fn hooks(&self, device: Device) -> PyResult<Option<Hooks>> {
        let (mut interface, mut inner) = (&self.interface, &self.inner);
        loop {
            let found = interface.as_ref().map_or(Ok(None), |interface| Hooks::of_interface(interface, device))?;
            match (found, inner) {
                (None, Some(next)) => (interface, inner) = (&next.interface, &next.inner),
                (found, _) => return Ok(found),
            }
        }
    }
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
    let is_jax = || {
        let kind = kind_of(object).inspect_err(|error| interrupt::put_off(object.py(), error));
        kind.is_ok_and(|kind| kind == Kind::Jax)
    };
    match error {
        Error::Exchange(error) if error.kind() == ExchangeErrorKind::ReadOnly && is_jax() => {
            error.with_fix(&"JAX arrays cannot be written: pass a field, and dl.as_jax(field) to JAX afterwards").into()
        }
        error => error,
    }
}

/// Returns the error for a device whose memory dlfield cannot own.
#[cold]
pub fn not_owned(device: Device) -> DeviceError {
    let expected = "memory of the host or of CUDA, which dlfield can own";
    DeviceError::new("device", &expected, &format_args!("memory on {device}"))
        .with_fix(&"describe() it, or copy it to the host first")
        .with_kind(DeviceErrorKind::Unsupported)
}
