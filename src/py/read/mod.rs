//! Objects into descriptors: the protocols in the order they are tried.
//!
//! Each reader probes first, and where its protocol is absent the next one is asked. One that is present is final: its
//! errors, and the producer's, reach the caller.

mod capsule;
mod dlpack;
mod exchange;
mod numpy;
mod ours;

pub(super) use dlpack::take;
use pyo3::prelude::*;

use super::args;
use super::descriptor::PyDescriptor;
use super::errors::Kind;
use super::keep::Keep;
use super::labels::Labels;
use super::tensor::PyTensor;
use crate::descriptor::Descriptor;
use crate::device::{Device, DeviceError};
use crate::protocol::ExchangeError;
use crate::tensor::{Owner, Tensor};

/// What the caller asks of the producer.
#[derive(Default)]
struct Request<'a, 'py> {
    device: Option<Device>,
    copy: Option<bool>,
    stream: Option<&'a Bound<'py, PyAny>>,
}

/// What a reader found.
enum Reading {
    /// A field with an owner of its own.
    Owned(Tensor),
    /// The same from a struct that cannot say whether it may be written: read-only, unless the caller knows better.
    Unsure(Tensor),
    /// A field whose memory the object keeps.
    Borrowed(Descriptor),
}

/// One protocol.
struct Reader {
    protocol: &'static str,
    /// Reads the object; `None` where it does not have the protocol.
    read: fn(&Bound<'_, PyAny>, &Request<'_, '_>, Purpose) -> PyResult<Option<Reading>>,
    /// Whether the reading carries all labels there are, so that nobody has to look for more.
    labelled: bool,
}

/// Whether the memory has to outlive the object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Describe,
    Own,
}

/// The order of protocols.
static READERS: [Reader; 6] = [
    Reader { protocol: "dlfield", read: ours::read, labelled: true },
    Reader { protocol: "numpy", read: numpy::read, labelled: true },
    Reader { protocol: "numpy", read: numpy::read_subclass, labelled: false },
    Reader { protocol: "dlpack-c", read: exchange::read, labelled: false },
    Reader { protocol: "dlpack", read: dlpack::read, labelled: false },
    Reader { protocol: "dlpack", read: capsule::read, labelled: true },
];

type Found = (Reading, &'static Reader);

fn probe<'py>(object: &Bound<'py, PyAny>, request: &Request<'_, 'py>, purpose: Purpose) -> PyResult<Option<Found>> {
    for reader in &READERS {
        if let Some(reading) = (reader.read)(object, request, purpose)? {
            return Ok(Some((reading, reader)));
        }
    }
    Ok(None)
}

fn read<'py>(object: &Bound<'py, PyAny>, request: &Request<'_, 'py>, purpose: Purpose) -> PyResult<Found> {
    if let Some(found) = probe(object, request, purpose)? {
        return Ok(found);
    }
    Err(Kind::NotAnArray.error(format!(
        "obj: {} has no protocol of an array; allowed are NumPy arrays, objects with __dlpack__, and DLPack capsules",
        object.get_type()
    )))
}

/// The object as a tensor that owns its memory, as it is; `None` for an object with no protocol.
pub(super) fn own(object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    let Some((reading, reader)) = probe(object, &Request::default(), Purpose::Own)? else { return Ok(None) };
    let tensor = owned(object, reading);
    Ok(Some(if reader.labelled { tensor } else { Labels::find(object, None, None)?.attach(tensor)? }))
}

fn owned(object: &Bound<'_, PyAny>, reading: Reading) -> Tensor {
    match reading {
        Reading::Owned(tensor) | Reading::Unsure(tensor) => tensor,
        Reading::Borrowed(descriptor) => {
            #[allow(unsafe_code, reason = "the producer's word for its memory is taken here")]
            // SAFETY: the object has said through its protocol that the memory is there while it lives.
            unsafe {
                Tensor::from_parts(descriptor, Owner::foreign(Keep::new(object)))
            }
        }
    }
}

pub(super) fn check_device(wanted: Option<Device>, found: Device) -> PyResult<()> {
    match wanted {
        Some(wanted) if wanted != found => Err(DeviceError::Mismatch { found, wanted }.into()),
        _ => Ok(()),
    }
}

/// Takes any array over as a `Tensor` that shares its memory and keeps it.
///
/// `obj` is an array of any library with DLPack, a NumPy array, or a DLPack capsule. `device` is where the memory has to
/// be; `copy=True` copies always, `False` never. `dims` and `origin` label what carries no labels itself, or other ones.
/// Read-only memory stays read-only; so does a legacy capsule's, which cannot say otherwise.
///
/// Raises `NotAnArrayError` for an object without a protocol, `ExchangeError`, `DTypeError` or `DeviceError` naming the
/// field at fault; the producer's own exceptions pass through.
///
/// >>> import dlfield as dl, numpy as np
/// >>> array = np.ones((2, 3))
/// >>> field = dl.from_dlpack(array, dims="JI")
/// >>> field[0, 0] = 5.0
/// >>> float(array[0, 0]), field.dims
/// (5.0, ('J', 'I'))
#[pyfunction]
#[pyo3(signature = (obj, *, device=None, copy=None, dims=None, origin=None, stream=None))]
fn from_dlpack(
    py: Python<'_>,
    obj: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
    dims: Option<&Bound<'_, PyAny>>,
    origin: Option<&Bound<'_, PyAny>>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let request = Request { device: device.map(args::device).transpose()?, copy, stream };
    let (reading, reader) = read(obj, &request, Purpose::Own)?;
    let mut tensor = owned(obj, reading);
    let found = tensor.descriptor().device();
    check_device(request.device, found)?;
    args::check_stream(stream, found)?;
    if found != Device::CPU {
        return Err(DeviceError::NotOwned { device: found }.into());
    }
    let dims = dims.map(args::dims).transpose()?;
    let origin = origin.map(|origin| args::ints("origin", origin)).transpose()?;
    let labels = if reader.labelled { Labels::given(dims, origin) } else { Labels::find(obj, dims, origin)? };
    tensor = labels.attach(tensor)?;
    Ok(PyTensor(if copy == Some(true) { py.detach(|| tensor.copy())? } else { tensor }))
}

/// Describes any array in place: pointer, shape, strides, element type, device, labels. Never copies.
///
/// The `Descriptor` keeps `obj` alive. `dims` labels what carries no labels itself, or other ones. `device` is where the
/// memory has to be. `writable=True` asks for memory that may be written; for a legacy DLPack capsule, which cannot say,
/// it is the caller's word that it may be.
///
/// Raises `NotAnArrayError` for an object without a protocol, `ExchangeError` for read-only memory with `writable=True`,
/// `ExchangeError`, `DTypeError` or `DeviceError` naming the field at fault; the producer's own exceptions pass through.
///
/// >>> import dlfield as dl, numpy as np
/// >>> seen = dl.describe(np.zeros((2, 3), "float32"))
/// >>> seen.shape, seen.strides, seen.protocol
/// ((2, 3), (12, 4), 'numpy')
#[pyfunction]
#[pyo3(signature = (obj, *, dims=None, device=None, writable=false, stream=None))]
pub(super) fn describe(
    obj: &Bound<'_, PyAny>,
    dims: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    writable: bool,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyDescriptor> {
    let request = Request { device: device.map(args::device).transpose()?, copy: None, stream };
    let (reading, reader) = read(obj, &request, Purpose::Describe)?;
    let (mut descriptor, owner) = match reading {
        Reading::Borrowed(descriptor) => (descriptor, None),
        Reading::Unsure(tensor) if writable => {
            (tensor.descriptor().clone().into_writable(), Some(tensor.owner().clone()))
        }
        Reading::Owned(tensor) | Reading::Unsure(tensor) => (tensor.descriptor().clone(), Some(tensor.owner().clone())),
    };
    check_device(request.device, descriptor.device())?;
    args::check_stream(stream, descriptor.device())?;
    let dims = dims.map(args::dims).transpose()?;
    let labels = if reader.labelled { Labels::given(dims, None) } else { Labels::find(obj, dims, None)? };
    descriptor = labels.describe(descriptor)?;
    if writable && descriptor.is_readonly() {
        let fix = "describe it without writable=True, or pass a copy";
        return Err(ExchangeError::ReadOnly { field: "writable", fix }.into());
    }
    Ok(PyDescriptor::new(descriptor, obj, owner, reader.protocol))
}

/// A view of any host array as the NumPy array on the same memory; `copy=True` copies always, `False` never.
///
/// Read-only memory gives a read-only array. Raises `NoSuchBufferError` where the host cannot read the memory, and what
/// `from_dlpack` raises.
///
/// >>> import dlfield as dl
/// >>> field = dl.zeros((2, 3), backend="gt:cpu_ifirst")
/// >>> dl.as_numpy(field).ctypes.data == field.ptr
/// True
#[pyfunction]
#[pyo3(signature = (obj, *, copy=None))]
fn as_numpy<'py>(py: Python<'py>, obj: &Bound<'py, PyAny>, copy: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
    if numpy::is_exact(obj) {
        let keep = pyo3::intern!(py, "K");
        return if copy == Some(true) { obj.call_method1(pyo3::intern!(py, "copy"), (keep,)) } else { Ok(obj.clone()) };
    }
    let tensor = owned(obj, read(obj, &Request { copy, ..Request::default() }, Purpose::Own)?.0);
    let tensor = if copy == Some(true) { py.detach(|| tensor.copy())? } else { tensor };
    super::export::numpy::view(py, &tensor)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(describe, module)?)?;
    module.add_function(wrap_pyfunction!(as_numpy, module)?)
}
