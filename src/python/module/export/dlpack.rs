//! `__dlpack__`: capsules of both ABIs.

#![allow(unsafe_code, reason = "capsules hold raw pointers")]

use std::ffi::CStr;

use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use dlpark::{Managed, ManagedTensorBase};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::cuda::Stream;
use crate::descriptor::read_only;
use crate::error::{Error, ExchangeError, ExchangeErrorKind};
use crate::python::convert::args;
use crate::python::convert::device::{DlpackPair, exact_device};
use crate::python::convert::errors::ErrorKind;
use crate::python::convert::stream::{self, StreamArgument};
use crate::python::ffi::attach::release_deferred;
use crate::python::ffi::fastcall::{self, Argument, Definition, Parameters};
use crate::python::module::classes::tensor::PyTensor;
use crate::python::{consumers, copies, sync};
use crate::tensor::Tensor;

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// The arguments of `__dlpack__`, each obeyed or rejected.
struct Request<'a, 'py> {
    stream: Option<&'a Bound<'py, PyAny>>,
    max_version: Option<(i64, i64)>,
    dl_device: Option<(i64, i64)>,
    copy: Option<bool>,
}

/// Adds `__dlpack__` to the type. Every exchange calls this method, always with keywords: as a plain C method that compares
/// interned names it takes a quarter less time than with PyO3's generated argument handling (docs/contributing/design.md).
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    METHOD.set_on(&py.get_type::<PyTensor>())
}

static METHOD: Definition = Definition::new(
    c"__dlpack__",
    c"__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)
--

Return a DLPack capsule on the same memory, or with copy=True on a copy.

`max_version` of major 1 or newer gives the versioned ABI, stamped 1.3; None gives the legacy ABI, which is rejected for
read-only memory.

`stream` is the stream that the consumer will use. On a CUDA device it waits, by events, for the work in the current
stream of this thread and in all streams that are recorded for the memory. The consumer's own work has to be done when
it releases the memory; that of PyTorch and CuPy is waited for.
None and 1 are the legacy default stream, 2 the per-thread default, other numbers handles; -1 leaves the order to the
consumer; 0 is rejected. For pinned and managed memory, None means that the host uses it next, so this waits until the
device has finished its work. On the host it must be None.

`dl_device` may differ from the memory's device: pinned and managed memory becomes memory of the host or of a CUDA
device without a copy, other memory is copied there, unless copy=False.",
    method,
);

static PARAMETERS: Parameters<4> = Parameters::new("__dlpack__", ["max_version", "dl_device", "copy", "stream"], 0, 0);

fastcall::c_function!(method, PARAMETERS, exported);

/// `__dlpack__`, with the arguments in the order of its parameters.
#[inline(always)]
fn exported<'py>(slf: &Bound<'py, PyAny>, arguments: &[Argument<'_, 'py>; 4]) -> PyResult<Bound<'py, PyAny>> {
    let [max_version, dl_device, copy, stream] = arguments.each_ref().map(fastcall::given);
    let request = Request {
        stream,
        max_version: max_version.map(|version| pair("max_version", version)).transpose()?,
        dl_device: dl_device.map(|device| pair("dl_device", device)).transpose()?,
        copy: copy.map(|copy| args::flag("copy", copy)).transpose()?,
    };
    capsule(slf.py(), &slf.cast::<PyTensor>()?.get().0, &request)
}

fn pair(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<(i64, i64)> {
    let wrong = || args::wrong_type(argument, "None or a pair of integers", value);
    args::if_converted(value.py(), value.extract())?.ok_or_else(wrong)
}

/// Makes a capsule.
fn capsule<'py>(py: Python<'py>, tensor: &Tensor, request: &Request<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let found = tensor.descriptor().device();
    let elsewhere = request.dl_device.filter(|pair| DlpackPair(pair.0, pair.1) != DlpackPair::of(found));
    let made = if sync::may_have_device_work(tensor) || elsewhere.is_some() {
        Some(ordered(py, tensor, request, elsewhere)?)
    } else {
        args::check_stream(request.stream, found)?;
        if request.copy == Some(true) { Some(copies::copy_like(py, tensor, "__dlpack__(copy=True)")?) } else { None }
    };
    let there = made.as_ref().unwrap_or(tensor);
    let copied = request.copy == Some(true) || there.descriptor().ptr() != tensor.descriptor().ptr();
    match request.max_version {
        Some((major, _)) if major >= 1 => wrap::<DLManagedTensorVersioned>(py, there.to_versioned(copied)?, VERSIONED),
        _ => wrap::<DLManagedTensor>(py, there.to_legacy().map_err(with_way_out)?, LEGACY),
    }
}

/// The error for a tensor that a legacy capsule cannot express, with advice for users and authors of libraries that ask for
/// one.
#[cold]
fn with_way_out(error: Error) -> Error {
    match error {
        Error::Exchange(error) if error.kind() == ExchangeErrorKind::ReadOnly => {
            let fix = "a legacy capsule has no read-only flag: pass obj.copy(), or to JAX dlfield.as_jax(obj); a library that \
                       supports the flag passes max_version=(1, 0) or newer";
            read_only("max_version", fix).into()
        }
        Error::Exchange(error) if error.kind() == ExchangeErrorKind::Unsupported => {
            let got = format_args!("None or an older one, and a legacy capsule cannot express {}", error.got());
            ExchangeError::new("max_version", &"(1, 0) or newer", &got)
                .with_fix(&"to JAX pass dlfield.as_jax(obj)")
                .into()
        }
        other => other,
    }
}

/// Moves the tensor to the requested device, and makes the consumer's stream wait for our work; for memory that is not
/// ordinary host memory, and for requests of another device.
#[cold]
fn ordered<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    request: &Request<'_, 'py>,
    elsewhere: Option<(i64, i64)>,
) -> PyResult<Tensor> {
    let found = tensor.descriptor().device();
    let refused = |error: PyErr| match elsewhere {
        Some((code, id)) if ErrorKind::Device.is(py, &error) => {
            // Consumers expect a `BufferError`.
            ErrorKind::Exchange.error(format!("dl_device: ({code}, {id}) is not available: {}", error.value(py)))
        }
        _ => error,
    };
    let wanted = elsewhere.map_or(Ok(found), exact_device).map_err(refused)?;
    args::check_stream(request.stream, wanted)?;
    let moved = copies::to(py, tensor, wanted, request.copy).map_err(|error| refused(error.into()))?;
    make_stream_wait(py, &moved, request.stream)?;
    Ok(moved)
}

/// Makes the consumer's stream wait for our work, by events. Without a stream, a consumer of device memory works on the
/// legacy default one; pinned and managed memory may be used by the host next, so this waits for the device.
fn make_stream_wait(py: Python<'_>, tensor: &Tensor, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let device = tensor.descriptor().device();
    if !device.is_of_cuda() {
        return Ok(sync::synchronize_host(py, tensor)?);
    }
    let consumer = match stream::parse(stream, device)? {
        StreamArgument::NoSync => {
            tensor.owner().stream_uses().inspect(|uses| uses.hand_out());
            return Ok(());
        }
        StreamArgument::None if device.is_host_readable() => return Ok(sync::wait_for_device(py, tensor)?),
        StreamArgument::None => Stream::LEGACY,
        StreamArgument::Stream(consumer) => consumer,
    };
    match tensor.owner().stream_uses() {
        Some(uses) => {
            let owner = stream.map_or(Ok(None), stream::owner)?;
            py.detach(|| uses.make_stream_wait(device, consumer, owner))?;
            consumers::record(py, uses, device, Some(consumer.handle()));
            Ok(())
        }
        None => Ok(()),
    }
}

fn wrap<'py, M: ManagedTensorBase + 'static>(
    py: Python<'py>,
    managed: Managed<M>,
    name: &'static CStr,
) -> PyResult<Bound<'py, PyAny>> {
    let raw = managed.into_raw();
    // SAFETY: the capsule owns the struct until a consumer renames it; the name is static.
    unsafe {
        let capsule = ffi::PyCapsule_New(raw.cast(), name.as_ptr(), Some(release::<M>));
        if capsule.is_null() {
            M::drop_raw(raw);
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// The destructor of our capsules: releases the struct unless a consumer has renamed the capsule, and so owns it. An
/// exception that is set meanwhile stays set.
unsafe extern "C" fn release<M: ManagedTensorBase>(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with a capsule made by `wrap`. A name other than ours means that the struct
    // has another owner.
    unsafe {
        let name = ffi::PyCapsule_GetName(capsule);
        if !name.is_null() && [LEGACY, VERSIONED].contains(&CStr::from_ptr(name)) {
            let address = ffi::PyCapsule_GetPointer(capsule, name).expose_provenance();
            let py = Python::assume_attached();
            // The host may have to wait for the device before the memory is released.
            py.detach(|| M::drop_raw(std::ptr::with_exposed_provenance_mut(address)));
            release_deferred(py);
        }
    }
}
