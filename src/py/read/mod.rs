//! Objects into descriptors: the protocols in the order they are tried.
//!
//! Each reader probes first, and where its protocol is absent the next one is asked. One that is present is final: its
//! errors, and the producer's, reach the caller.

mod acquired;
mod argument;
mod array;
mod array_interface;
mod buffer;
mod capsule;
mod cuda_array_interface;
mod dictionary;
mod dlpack;
mod exchange;
mod facts;
mod functions;
mod gt;
mod jax;
mod lent;
mod names;
mod numpy;
mod order;
mod ours;
mod pair;
mod storages;
mod torch;
mod torch_errors;
mod unwrap;
mod value;

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

pub(super) use argument::argument;
pub(super) use dictionary::Key;
pub(super) use dlpack::{peek, take};
pub(super) use exchange::table;
pub(super) use facts::{attribute, loaded};
pub(super) use gt::{Hooks, Interface};
pub(super) use lent::{Lender, Lent, check_unmoved, lent_again, memory, pinned, plain_memory, told};
pub(super) use names::Name;
pub(super) use numpy::require as require_numpy;
pub(super) use pair::is_pair;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyList, PyTuple, PyType};
pub(super) use unwrap::{field_origin, inner_of, is_field};
pub(super) use value::{Value, value};

use self::facts::{Facts, Library};
use super::args;
use super::errors::Kind;
use super::fastcall;
use super::keep::Call;
use super::labels::Labels;
use super::tensor::PyTensor;
use crate::descriptor::Descriptor;
use crate::device::{Device, DeviceError};
use crate::dims::Dims;
use crate::layout::Extents;
use crate::protocol::ExchangeError;
use crate::tensor::{Owner, Tensor};

/// What the caller is going to do with the memory: what concerns objects that keep several copies of it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Access {
    /// Nothing, or nothing yet: the elements may be out of date.
    #[default]
    Look,
    /// The same, and later what the object's data interface says.
    Stencil,
    Read,
    Write,
}

/// What the caller asks of the producer.
#[derive(Default)]
struct Request<'a, 'py> {
    device: Option<Device>,
    /// The device from which the memory is going to be reached, where the producer has it on several.
    near: Option<Device>,
    access: Access,
    copy: Option<bool>,
    stream: Option<&'a Bound<'py, PyAny>>,
    /// The number of the stream on which the producer may still be at work on the memory, if it says.
    producer: Cell<Option<i64>>,
    /// Whether a reader that has looked says that the object has neither labels nor anything to call. To look again takes as
    /// long as to read a small number of numbers.
    plain: Cell<bool>,
    /// Whether the object was found in another one.
    inside: bool,
    seen: Seen<'py>,
}

/// What was come across while reading and says labels too, so that no object is asked twice.
#[derive(Default)]
pub(super) struct Seen<'py> {
    /// Where the memory has to be, if the caller says.
    pub(super) device: Option<Device>,
    /// The data interface the memory was read from.
    pub(super) interface: OnceCell<Interface<'py>>,
    /// The array inside the object, which the memory was read from.
    pub(super) inner: OnceCell<Inner<'py>>,
    /// What the object wants to have called when the memory is let go.
    release: OnceCell<Arc<Call>>,
}

/// An array that another object wraps.
pub(super) struct Inner<'py> {
    pub(super) array: Bound<'py, PyAny>,
    /// The protocol it was read by.
    protocol: &'static str,
    pub(super) seen: Box<Seen<'py>>,
}

/// Who keeps the memory that a reader has described.
enum Reading {
    /// An owner of its own.
    Owned(Owner),
    /// The same, from a struct that cannot say whether the memory may be written: it may not, unless the caller knows
    /// better.
    Unsure(Owner),
    /// The object, which may move it. Only of descriptions: who owns has an owner.
    Borrowed,
}

impl Reading {
    /// What the producer handed over, if it did.
    fn into_shared(self) -> Option<Owner> {
        match self {
            Reading::Owned(owner) | Reading::Unsure(owner) => Some(owner),
            Reading::Borrowed => None,
        }
    }

    /// An owner of the memory that was described: of what the object keeps, one that keeps it where it is.
    fn into_owner(self, object: &Bound<'_, PyAny>, descriptor: &Descriptor) -> PyResult<Owner> {
        match self {
            Reading::Owned(owner) | Reading::Unsure(owner) => Ok(owner),
            Reading::Borrowed => lent::pinned(object, descriptor),
        }
    }
}

/// Describes an object in place; `None` where it does not have the protocol.
type Read = for<'py> fn(&Bound<'py, PyAny>, &Request<'_, 'py>, Purpose, &mut Descriptor) -> PyResult<Option<Reading>>;

/// One protocol.
struct Reader {
    protocol: &'static str,
    read: Read,
    /// Whether the reading carries all labels there are, so that nobody has to look for more.
    labelled: bool,
}

/// Whether the memory has to outlive the object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Describe,
    Own,
}

/// The order of protocols: first those that go by the object's type alone.
static BY_TYPE: [Reader; 5] = [
    Reader { protocol: "dlfield", read: ours::read, labelled: true },
    Reader { protocol: "numpy", read: numpy::read, labelled: true },
    Reader { protocol: "dlpack-c", read: exchange::read, labelled: false },
    Reader { protocol: "jax", read: jax::read, labelled: false },
    Reader { protocol: "buffer", read: buffer::read_builtin, labelled: true },
];

/// Then those that objects have as attributes.
static BY_ATTRIBUTE: [Reader; 11] = [
    Reader { protocol: "numpy", read: numpy::read_subclass, labelled: false },
    Reader { protocol: "dlfield", read: pair::read, labelled: false },
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

fn probe<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    purpose: Purpose,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Found>> {
    for reader in &BY_TYPE {
        if let Some(reading) = (reader.read)(object, request, purpose, descriptor)? {
            let reading = acquired::acquired(object, reader, request, descriptor, reading)?;
            if descriptor.device() != Device::CPU {
                return Ok(Some((in_order(object, request, purpose, descriptor, reading)?, reader)));
            }
            return Ok(Some((reading, reader)));
        }
    }
    if is_no_array(object) {
        return Ok(None);
    }
    let mut found = None;
    for reader in &BY_ATTRIBUTE {
        if let Some(reading) = (reader.read)(object, request, purpose, descriptor)? {
            let host = descriptor.device() == Device::CPU;
            let reading = acquired::acquired(object, reader, request, descriptor, reading)?;
            let reading = if host { reading } else { in_order(object, request, purpose, descriptor, reading)? };
            found = Some((reading, reader));
            break;
        }
    }
    // A producer may have refused a first question.
    fastcall::settle();
    Ok(found)
}

/// Orders the work on memory that is not the host's, if it is CUDA's.
#[cold]
fn in_order(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    purpose: Purpose,
    descriptor: &Descriptor,
    reading: Reading,
) -> PyResult<Reading> {
    let device = descriptor.device();
    if device.is_of_cuda() {
        return order::found(object, request, purpose, device, reading);
    }
    Ok(reading)
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

fn read<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    purpose: Purpose,
    descriptor: &mut Descriptor,
) -> PyResult<Found> {
    probe(object, request, purpose, descriptor)?.ok_or_else(|| not_an_array(object))
}

#[cold]
fn not_an_array(object: &Bound<'_, PyAny>) -> PyErr {
    // These have elements, and no memory to share.
    let is_copied = object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyComplex>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>();
    let fix = if is_copied { "; dl.from_array(...) copies it into a field" } else { "" };
    Kind::NotAnArray.error(format!(
        "obj: {} has no protocol of an array{fix}; allowed are objects with __dlpack__, __dlpack_c_exchange_api__, \
         __gt_data_interface__, __cuda_array_interface__, __hip_array_interface__, __array_interface__, the buffer \
         protocol or __array__, DLPack capsules, and what wraps one of these: xarray.DataArray, gt4py.next Field",
        object.get_type()
    ))
}

/// Whether the object may state labels that the reader has not brought along.
fn may_state_labels(object: &Bound<'_, PyAny>, reader: &Reader, request: &Request<'_, '_>) -> PyResult<bool> {
    let unlabelled = reader.labelled || request.plain.get();
    Ok(request.seen.inner.get().is_some() || !unlabelled && Facts::of(object)?.may_be_labelled(object))
}

/// The labels for what a reader found: those given, and what the object states of the others.
fn labels<'py>(
    object: &Bound<'py, PyAny>,
    reader: &Reader,
    request: &Request<'_, 'py>,
    dims: Option<Dims>,
    origin: Option<Extents>,
) -> PyResult<Labels> {
    if may_state_labels(object, reader, request)? {
        let found = Labels::find(object, &request.seen, dims, origin);
        fastcall::settle();
        found
    } else {
        Ok(Labels::given(dims, origin))
    }
}

/// Fills `tensor` with what the object is, as a tensor that owns its memory; `None` for an object with no protocol.
fn own_into<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    tensor: &mut Tensor,
) -> PyResult<Option<&'static Reader>> {
    if let Ok(ours) = object.cast_exact::<PyTensor>() {
        // With what only a tensor knows: layout, padding and alignment.
        *tensor = ours.get().0.clone();
        if tensor.descriptor().device() != Device::CPU {
            in_order(object, request, Purpose::Own, tensor.descriptor(), Reading::Owned(tensor.owner().clone()))?;
        }
        return Ok(Some(&BY_TYPE[0]));
    }
    #[allow(unsafe_code, reason = "the producer's word for its memory is taken here")]
    // SAFETY: the object has said through its protocol that the memory is there while the owner that is asked for lives.
    let (descriptor, owner) = unsafe { tensor.parts_mut() };
    let Some((reading, reader)) = probe(object, request, Purpose::Own, descriptor)? else { return Ok(None) };
    *owner = reading.into_owner(object, descriptor)?;
    if let Some(inner) = request.seen.inner.get()
        && let Ok(ours) = inner.array.cast_exact::<PyTensor>()
    {
        tensor.promised(ours.get().0.promise());
    }
    Ok(Some(reader))
}

/// The object as a tensor that owns its memory, as it is; `None` for an object with no protocol.
pub(super) fn own(object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    let mut tensor = Tensor::BLANK;
    let request = Request::default();
    let Some(reader) = own_into(object, &request, &mut tensor)? else { return Ok(None) };
    labels(object, reader, &request, None, None)?.attach(&mut tensor)?;
    Ok(Some(tensor))
}

/// The object as a tensor that owns its memory, to be written to; `copy=False` is passed on to its producer.
pub(super) fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    let mut tensor = Tensor::BLANK;
    let reader = own_into(object, &Request { copy, access: Access::Write, ..Request::default() }, &mut tensor)?;
    reader.map(|_| tensor).ok_or_else(|| not_an_array(object))
}

/// The object as a tensor that owns its memory, to be read.
pub(super) fn readable(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    value(object, Device::CPU)?.map(Value::into_tensor).ok_or_else(|| not_an_array(object))
}

/// The functions of the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions::register(module)?;
    value::register(module)
}

/// Whether the object is a PyTorch tensor, of whatever subclass.
pub(super) fn is_torch(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(Facts::of(object)?.library == Library::Torch)
}

/// Refuses a PyTorch tensor that requires grad, also inside what wraps it, as whoever takes its memory does.
pub(super) fn refuse_grad(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let inner = inner_of(object)?;
    let object = inner.as_ref().unwrap_or(object);
    if is_torch(object)? { torch::refuse_grad(object) } else { Ok(()) }
}

/// What the object is, in place: its description, and what the producer handed over for that, if it did. Of several buffers
/// the one nearer to `near`.
pub(super) fn description(object: &Bound<'_, PyAny>, near: Option<Device>) -> PyResult<(Descriptor, Option<Owner>)> {
    let mut descriptor = Descriptor::BLANK;
    let (reading, _) = read(object, &Request { near, ..Request::default() }, Purpose::Describe, &mut descriptor)?;
    Ok((descriptor, reading.into_shared()))
}

/// The error for a copy where the memory itself is wanted.
fn refused_copy(purpose: Purpose, reason: impl Into<String>) -> ExchangeError {
    let reason = reason.into();
    match purpose {
        Purpose::Describe => ExchangeError::OnlyCopy { reason },
        Purpose::Own => ExchangeError::NeedsCopy { reason },
    }
}

/// Refuses a stream for memory of a device that nobody has been told the stream of, and nobody can be any more.
fn check_exported(request: &Request<'_, '_>, found: Device) -> PyResult<()> {
    let Some(stream) = request.stream.filter(|stream| !stream.is_none()) else { return Ok(()) };
    if found == Device::CPU || stream.extract().is_ok_and(|number: i64| number == -1) {
        return Ok(());
    }
    let allowed = "None, or -1 where the caller sees to the order: obj is exported without a word about streams";
    Err(ExchangeError::Argument { argument: "stream", got: args::shown(stream), allowed }.into())
}

pub(super) fn check_device(wanted: Option<Device>, found: Device) -> PyResult<()> {
    match wanted {
        Some(wanted) if wanted != found => Err(DeviceError::Mismatch { found, wanted }.into()),
        _ => Ok(()),
    }
}
