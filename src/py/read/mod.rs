//! Objects into descriptors: the protocols in the order they are tried.
//!
//! Each reader probes first, and where its protocol is absent the next one is asked. One that is present is final: its
//! errors, and the producer's, reach the caller.

mod array;
mod array_interface;
mod buffer;
mod capsule;
mod cuda_array_interface;
mod dictionary;
mod dlpack;
mod exchange;
mod gt;
mod numpy;
mod ours;
mod unwrap;

use std::cell::OnceCell;

pub(super) use dlpack::take;
pub(super) use gt::{Interface, Source};
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyList, PyTuple, PyType};
pub(super) use unwrap::{field_origin, inner_of, is_field};

use super::args;
use super::descriptor::PyDescriptor;
use super::errors::Kind;
use super::keep::Keep;
use super::labels::Labels;
use super::tensor::PyTensor;
use crate::descriptor::Descriptor;
use crate::device::{Device, DeviceError};
use crate::dims::Dims;
use crate::layout::Extents;
use crate::protocol::ExchangeError;
use crate::tensor::{Owner, Tensor};

/// What the caller asks of the producer.
#[derive(Default)]
struct Request<'a, 'py> {
    device: Option<Device>,
    copy: Option<bool>,
    stream: Option<&'a Bound<'py, PyAny>>,
    /// Whether the object was found in another one.
    inside: bool,
    seen: Seen<'py>,
}

/// What was come across while reading and says labels too, so that no object is asked twice.
#[derive(Default)]
pub(super) struct Seen<'py> {
    /// The data interface the memory was read from.
    pub(super) interface: OnceCell<Interface<'py>>,
    /// The array inside the object, which the memory was read from.
    pub(super) inner: OnceCell<Inner<'py>>,
}

/// An array that another object wraps.
pub(super) struct Inner<'py> {
    pub(super) array: Bound<'py, PyAny>,
    /// The protocol it was read by.
    protocol: &'static str,
    pub(super) seen: Box<Seen<'py>>,
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
    read: for<'py> fn(&Bound<'py, PyAny>, &Request<'_, 'py>, Purpose) -> PyResult<Option<Reading>>,
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
static READERS: [Reader; 14] = [
    Reader { protocol: "dlfield", read: ours::read, labelled: true },
    Reader { protocol: "numpy", read: numpy::read, labelled: true },
    Reader { protocol: "buffer", read: buffer::read_plain, labelled: true },
    Reader { protocol: "numpy", read: numpy::read_subclass, labelled: false },
    Reader { protocol: "dlpack-c", read: exchange::read, labelled: false },
    // What is wrapped has one of the other protocols, whose name counts.
    Reader { protocol: "", read: unwrap::read, labelled: false },
    Reader { protocol: "dlpack", read: dlpack::read, labelled: false },
    Reader { protocol: "dlpack", read: capsule::read, labelled: true },
    Reader { protocol: "gt", read: gt::read, labelled: false },
    Reader { protocol: "cuda-array-interface", read: cuda_array_interface::read_cuda, labelled: false },
    Reader { protocol: "hip-array-interface", read: cuda_array_interface::read_hip, labelled: false },
    Reader { protocol: "array-interface", read: array_interface::read, labelled: false },
    Reader { protocol: "buffer", read: buffer::read, labelled: false },
    Reader { protocol: "array", read: array::read, labelled: false },
];

type Found = (Reading, &'static Reader);

fn probe<'py>(object: &Bound<'py, PyAny>, request: &Request<'_, 'py>, purpose: Purpose) -> PyResult<Option<Found>> {
    if is_no_array(object) {
        return Ok(None);
    }
    for reader in &READERS {
        if let Some(reading) = (reader.read)(object, request, purpose)? {
            return Ok(Some((reading, reader)));
        }
    }
    Ok(None)
}

/// Whether the object is of a type that has no protocol. A class has its instances' methods, but none of their memory;
/// numbers and lists are assigned to fields all the time.
fn is_no_array(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyType>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyComplex>()
        || object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyTuple>()
}

fn read<'py>(object: &Bound<'py, PyAny>, request: &Request<'_, 'py>, purpose: Purpose) -> PyResult<Found> {
    if let Some(found) = probe(object, request, purpose)? {
        return Ok(found);
    }
    Err(Kind::NotAnArray.error(format!(
        "obj: {} has no protocol of an array; allowed are objects with __dlpack__, __dlpack_c_exchange_api__, \
         __gt_data_interface__, __cuda_array_interface__, __hip_array_interface__, __array_interface__, the buffer \
         protocol or __array__, DLPack capsules, and what wraps one of these: xarray.DataArray, gt4py.next Field",
        object.get_type()
    )))
}

/// The object as a tensor that owns its memory, as it is; `None` for an object with no protocol.
pub(super) fn own(object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    let request = Request::default();
    let Some((reading, reader)) = probe(object, &request, Purpose::Own)? else { return Ok(None) };
    let tensor = owned(object, reading);
    Ok(Some(labels(object, reader, &request, None, None)?.attach(tensor)?))
}

/// The labels for what was read, those given first.
fn labels<'py>(
    object: &Bound<'py, PyAny>,
    reader: &Reader,
    request: &Request<'_, 'py>,
    dims: Option<Dims>,
    origin: Option<Extents>,
) -> PyResult<Labels> {
    if reader.labelled { Ok(Labels::given(dims, origin)) } else { Labels::find(object, &request.seen, dims, origin) }
}

/// A field that came with what keeps its memory.
fn kept(descriptor: Descriptor, keeper: impl Send + Sync + 'static) -> Reading {
    #[allow(unsafe_code, reason = "the producer's word for its memory is taken here")]
    // SAFETY: the object has said through its protocol that the memory is there while these live.
    unsafe {
        Reading::Owned(Tensor::from_parts(descriptor, Owner::foreign(keeper)))
    }
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
/// `obj` is whatever a protocol describes: DLPack (a capsule too), NumPy, the data interface of GT4Py, the array interface,
/// the buffer protocol, `__array__`; or an xarray or gt4py.next object around that. `device` is where the memory has to be; `copy=True` copies always, `False` never. `dims` and `origin` label what carries no labels itself, or other ones.
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
fn from_dlpack<'py>(
    py: Python<'py>,
    obj: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
    dims: Option<&Bound<'py, PyAny>>,
    origin: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<PyTensor> {
    let device = device.map(args::device).transpose()?;
    let request = Request { device, copy, stream, ..Request::default() };
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
    tensor = labels(obj, reader, &request, dims, origin)?.attach(tensor)?;
    Ok(PyTensor(if copy == Some(true) { py.detach(|| tensor.copy())? } else { tensor }))
}

/// Describes any array in place: pointer, shape, strides, element type, device, labels. Never copies; memory on a GPU is
/// described without touching it, and without waiting for work there. `protocol` of the result says what described it.
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
fn describe<'py>(
    obj: &Bound<'py, PyAny>,
    dims: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    writable: bool,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<PyDescriptor> {
    let device = device.map(args::device).transpose()?;
    let request = Request { device, stream, ..Request::default() };
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
    descriptor = labels(obj, reader, &request, dims, None)?.describe(descriptor)?;
    if writable && descriptor.is_readonly() {
        let fix = "describe it without writable=True, or pass a copy";
        return Err(ExchangeError::ReadOnly { field: "writable", fix }.into());
    }
    let protocol = request.seen.inner.get().map_or(reader.protocol, |inner| inner.protocol);
    Ok(PyDescriptor::new(descriptor, obj, owner, protocol))
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
