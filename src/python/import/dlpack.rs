//! Imports the capsule that `__dlpack__` returns, by the rules of the array API standard, and raw capsules of both names; consumes
//! and inspects capsules.

#![allow(unsafe_code, reason = "capsules hold raw pointers")]

use std::ffi::CStr;

use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use dlpark::{DlpackFlags, Managed};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyTuple};
use pyo3::{ffi, intern};

use crate::descriptor::Descriptor;
use crate::device::{Device, unsupported};
use crate::error::{ExchangeError, Result};
use crate::protocol::array_interface::{CUDA, HIP};
use crate::protocol::dlpack::{self, null_pointer};
use crate::python::convert::args;
use crate::python::convert::device::{DlpackPair, dlpack_device};
use crate::python::ffi::getattr::{self, Keyword};
use crate::python::ffi::numpy_api::is_array;
use crate::python::import::frameworks::Kind;
use crate::python::import::request::{Imported, Ownership, Request, RequestAccess, not_owned};
use crate::python::import::type_info::{Name, TypeInfo, attribute};
use crate::python::import::{array_interface, buffer, owners, stream_sync, torch};
use crate::python::interrupt::answer;
use crate::python::py_owner;
use crate::tensor::{Owner, consume_managed};

static MAX_VERSION: Keyword = Keyword::new("max_version");
static STREAM: Keyword = Keyword::new("stream");

pub fn import(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    if !is_array(object) {
        let found = export(object, request, out)?;
        if found && out.readonly_unknown && is_writable_elsewhere(object, out.descriptor)? {
            out.readonly_unknown = false;
            out.descriptor.set_readonly(false);
        }
        return Ok(found);
    }
    // The capsule of an array only keeps the array, which NumPy may resize. Memory that is not the array's is left alone.
    let pinned = owners::pinned_array(object)?;
    let found = export(object, request, out)?;
    if owners::owns(object, out.descriptor.reach()) {
        out.owner = out.owner.take().map(|owner| Owner::foreign((owner, pinned)));
    }
    Ok(found)
}

/// Whether another protocol of the object says that the memory is writable, of which a struct of before version 1 cannot say so.
#[cold]
fn is_writable_elsewhere(object: &Bound<'_, PyAny>, found: &Descriptor) -> PyResult<bool> {
    let (mut descriptor, request) = (Descriptor::BLANK, Request::new(RequestAccess::Inspect));
    let mut out = Imported::new(&mut descriptor);
    let asked = match found.device().kind() {
        "cpu" => match array_interface::import(object, &request, &mut out) {
            Ok(false) => buffer::import(object, &request, &mut out),
            asked => asked,
        },
        "rocm" => array_interface::import_hip(object, &request, &mut out),
        _ => array_interface::import_cuda(object, &request, &mut out),
    };
    let is_known = answer(object.py(), asked)? == Some(true);
    let other = out.descriptor;
    let is_same = (other.ptr(), other.nbytes()) == (found.ptr(), found.nbytes());
    Ok(is_known && is_same && !other.is_readonly())
}

/// Calls `__dlpack__`, and consumes the capsule; `false` if there is no such method.
fn export(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    let py = object.py();
    let Some(export) = attribute(object, Name::Dlpack)? else { return Ok(false) };
    let of_torch = TypeInfo::of(object)?.kind == Kind::Torch;
    if of_torch {
        torch::refuse_more(object, request, true)?;
    }
    let version = max_version(py)?;
    let ask = attribute(object, Name::DlpackDevice)?;
    let found = ask.map(|ask| device_of(&ask.call0()?)).transpose()?;
    let elsewhere = request.device.filter(|_| found.is_some_and(|found| request.is_elsewhere(found)));
    // The device that the capsule will be for.
    let device = elsewhere.or(found).or(request.device);
    if let Some(device) = device {
        // Checked before the producer exports anything.
        if request.ownership == Ownership::Share && !device.is_ownable() {
            return Err(if found == Some(device) { not_owned(device) } else { unsupported(device) }.into());
        }
        check_stream(request.stream.filter(|stream| !stream.is_none()), device)?;
    }
    let stream = if device == Some(Device::CPU) { None } else { stream_sync::stream_for_producer(request, found)? };
    let stream = stream.map(|number| PyInt::new(py, number));
    // A description of memory that the producer has moved would not be of the object's memory.
    let in_place = request.copy == Some(false) || (elsewhere.is_some() && request.ownership == Ownership::Borrow);
    let result = if elsewhere.is_none() && stream.is_none() && !in_place {
        getattr::call(&export, &[version], Some(MAX_VERSION.get(py)?))
    } else {
        let keywords = PyDict::new(py);
        keywords.set_item(intern!(py, "max_version"), version)?;
        if let Some(wanted) = elsewhere {
            let DlpackPair(code, id) = DlpackPair::of(wanted);
            keywords.set_item(intern!(py, "dl_device"), (code, id))?;
        }
        if in_place {
            keywords.set_item(intern!(py, "copy"), false)?;
        }
        if let Some(stream) = &stream {
            keywords.set_item(intern!(py, "stream"), stream)?;
        }
        export.call((), Some(&keywords))
    };
    let capsule = match result {
        // Producers of the old protocol take at most `stream`. The struct says which device the memory is on, but not
        // whether it is a copy, so there is no retry without `copy=False`.
        Err(error) if error.is_instance_of::<PyTypeError>(py) && request.copy != Some(false) => match &stream {
            Some(stream) => getattr::call(&export, &[stream], Some(STREAM.get(py)?))?,
            None => export.call0()?,
        },
        other => other?,
    };
    let consumed = consume(&capsule, request, out);
    if !consumed.map_err(|error| if of_torch { torch::explained(object, error) } else { error })? {
        let (got, allowed) = (args::shown(&capsule), "a capsule named 'dltensor' or 'dltensor_versioned'");
        return Err(ExchangeError::new("__dlpack__", &allowed, &got).into());
    }
    match TypeInfo::of(object)?.kind {
        // A JAX array is immutable, also if the caller passes `writable=True`.
        Kind::Jax => out.readonly_unknown = false,
        Kind::Torch if !out.readonly_unknown => {
            if let Some(owner) = out.owner.take() {
                out.owner = Some(torch::with_storage(object, owner, out.descriptor)?);
            }
        }
        _ => {}
    }
    Ok(true)
}

/// Rejects a value that is not a stream of the device: the host has none, and CUDA and ROCm each reject some numbers.
fn check_stream(stream: Option<&Bound<'_, PyAny>>, device: Device) -> PyResult<()> {
    match device.kind() {
        "cuda" | "cuda_managed" => array_interface::check_order(&CUDA, stream, None),
        "rocm" => array_interface::check_order(&HIP, stream, None),
        _ => args::check_stream(stream, device),
    }
}

/// Returns the newest supported version of DLPack, for `max_version`.
fn max_version(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VERSION: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();
    let version = VERSION
        .get_or_try_init(py, || (dlpack::VERSION.major, dlpack::VERSION.minor).into_pyobject(py).map(Bound::unbind))?;
    Ok(version.bind(py).as_any())
}

/// Imports a raw capsule.
pub fn import_capsule(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    let found = consume(object, request, out)?;
    if found {
        request.check_exported(out.descriptor.device())?;
    }
    Ok(found)
}

/// Consumes a capsule: fills in the descriptor and the owner. The ABI follows from the capsule's name, not from the request.
/// `false` for an object that is not a DLPack capsule. Rejects a consumed capsule, and a copy if the request forbids copies.
fn consume(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
    if let Some(held) = Held::of(object) {
        return held.consume(object, request, out);
    }
    if is_capsule(object, c"used_dltensor") || is_capsule(object, c"used_dltensor_versioned") {
        let got = "it was consumed already".to_owned();
        let allowed = "a new capsule, as each can be consumed only once";
        return Err(ExchangeError::new("capsule", &allowed, &got).into());
    }
    Ok(false)
}

/// The managed tensor in an unconsumed capsule.
#[derive(Clone, Copy)]
enum Held {
    Versioned(*mut DLManagedTensorVersioned),
    Legacy(*mut DLManagedTensor),
}

impl Held {
    /// Returns the managed tensor in a capsule; `None` for a consumed one, and for other objects.
    fn of(object: &Bound<'_, PyAny>) -> Option<Held> {
        // SAFETY: the calls take any object and a C string; a capsule of this name holds a struct of this kind.
        unsafe {
            if is_capsule(object, VERSIONED) {
                return Some(Held::Versioned(ffi::PyCapsule_GetPointer(object.as_ptr(), VERSIONED.as_ptr()).cast()));
            }
            let legacy = is_capsule(object, LEGACY);
            legacy.then(|| Held::Legacy(ffi::PyCapsule_GetPointer(object.as_ptr(), LEGACY.as_ptr()).cast()))
        }
    }

    /// As [`consume`]: takes the managed tensor out of its capsule.
    fn consume(self, capsule: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<bool> {
        let owner = match self {
            Held::Versioned(held) => {
                rename(capsule, c"used_dltensor_versioned")?;
                // SAFETY: the capsule had this name, so it held a struct of this kind; renaming it has transferred ownership
                // to us.
                let managed = unsafe { take(held) }?;
                check_copied(managed.flags(), request)?;
                // SAFETY: renaming the capsule made the struct ours; its contents are the producer's promise.
                unsafe { consume_managed(managed, out.descriptor, py_owner::managed) }?
            }
            Held::Legacy(held) => {
                rename(capsule, c"used_dltensor")?;
                // SAFETY: the capsule had the legacy name, so it held this struct; renaming it has transferred ownership to us.
                let managed = unsafe { Managed::<DLManagedTensor>::from_raw(held) };
                let managed = managed.map_err(|_| null_pointer("capsule"))?;
                out.readonly_unknown = true;
                // SAFETY: the struct is ours; its contents are the producer's promise.
                unsafe { consume_managed(managed, out.descriptor, py_owner::managed) }?
            }
        };
        Ok(out.owned(owner))
    }
}

const VERSIONED: &CStr = c"dltensor_versioned";
const LEGACY: &CStr = c"dltensor";

/// Whether the object is a capsule of this name.
fn is_capsule(object: &Bound<'_, PyAny>, name: &CStr) -> bool {
    // SAFETY: the call takes any object and a C string.
    unsafe { ffi::PyCapsule_IsValid(object.as_ptr(), name.as_ptr()) != 0 }
}

/// Describes the managed tensor of an unconsumed capsule without consuming it. `false` for other objects. Rejects what
/// [`consume`] rejects for a description; the capsule keeps its managed tensor then, too.
pub fn inspect_capsule(object: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<bool> {
    // SAFETY: the capsule keeps the struct of its kind, and the version is its first field in every version.
    unsafe {
        match Held::of(object) {
            Some(Held::Versioned(held)) => {
                let version = (*held).version;
                if version.major != dlpack::VERSION.major {
                    return Err(dlpack::unknown_version(version).into());
                }
                check_copied((*held).flags, &Request::new(RequestAccess::Inspect))?;
                dlpack::read_into(descriptor, &(*held).dl_tensor, Some(version), (*held).flags)?;
                return Ok(true);
            }
            Some(Held::Legacy(held)) => {
                dlpack::read_into(descriptor, &(*held).dl_tensor, None, DlpackFlags::empty())?;
            }
            None => return Ok(false),
        }
    }
    descriptor.set_readonly(true);
    Ok(true)
}

/// Rejects a producer's copy if the object's own memory is requested: a description of a copy is not of the object's memory.
pub fn check_copied(flags: DlpackFlags, request: &Request<'_>) -> Result<(), ExchangeError> {
    if flags.contains(DlpackFlags::IS_COPIED) && request.rejects_copy() {
        return Err(request.refused_copy("the producer has made a copy (flag IS_COPIED)"));
    }
    Ok(())
}

/// Converts the return value of `__dlpack_device__`.
fn device_of(pair: &Bound<'_, PyAny>) -> PyResult<Device> {
    let Some(found) = args::if_converted(pair.py(), pair.extract())? else {
        let (got, allowed) = (args::shown(pair), "a pair of integers");
        return Err(ExchangeError::new("__dlpack_device__", &allowed, &got).into());
    };
    dlpack_device(found)
}

/// Marks a capsule as consumed.
fn rename(capsule: &Bound<'_, PyAny>, to: &'static CStr) -> PyResult<()> {
    // SAFETY: the call takes any object and a C string, which lives for the rest of the process.
    let failed = unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), to.as_ptr()) } != 0;
    if failed { Err(PyErr::fetch(capsule.py())) } else { Ok(()) }
}

/// Takes ownership of a versioned managed tensor. Releases and rejects one of an unsupported major version.
///
/// # Safety
/// - `raw` is NULL or a live managed tensor that the caller owns.
pub unsafe fn take(raw: *mut DLManagedTensorVersioned) -> PyResult<Managed<DLManagedTensorVersioned>> {
    if raw.is_null() {
        return Err(null_pointer("managed tensor").into());
    }
    // SAFETY: not NULL, and the version is the first field in every major version.
    let version = unsafe { (*raw).version };
    // SAFETY: passed on from the caller. The call only releases a managed tensor of an unsupported major version.
    let managed = unsafe { Managed::from_raw(raw) };
    Ok(managed.map_err(|_| dlpack::unknown_version(version))?)
}
