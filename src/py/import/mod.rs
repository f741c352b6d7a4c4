//! The way in: an object of any protocol becomes a descriptor, with an owner where the caller keeps the memory.
//!
//! The protocols are tried in the order of two tables. Each importer first checks whether its protocol is there; if not, the
//! next one is tried. A protocol that is there is final: its errors, and the producer's, reach the caller.

mod argument;
mod array;
mod array_interface;
mod borrow;
mod buffer;
mod capsule;
mod cuda_array_interface;
mod dictionary;
mod dlfield;
mod dlpack;
mod dlpack_c_exchange;
mod functions;
mod gt_data_interface;
mod hooks;
mod host_device;
mod jax;
mod names;
mod numpy;
mod storages;
mod stream_sync;
mod torch;
mod torch_errors;
mod type_info;
mod unwrap;
mod value;

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

pub(super) use argument::argument;
pub(super) use borrow::{BorrowSource, Borrowed, check_unmoved, memory, pinned, plain_memory, reborrow, summary};
pub(super) use dictionary::Key;
pub(super) use dlpack::{inspect_capsule, take};
pub(super) use dlpack_c_exchange::table;
pub(super) use gt_data_interface::{Hooks, Interface};
pub(super) use host_device::is_pair;
pub(super) use names::Name;
pub(super) use numpy::require as require_numpy;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyList, PyTuple, PyType};
pub(super) use type_info::{attribute, loaded};
pub(super) use unwrap::{field_origin, inner_of, is_field};
pub(super) use value::{Value, value};

use self::type_info::{Framework, TypeInfo};
use super::args;
use super::errors::Kind;
use super::fastcall;
use super::labels::Labels;
use super::py_owner::ReleaseHook;
use super::tensor::PyTensor;
use crate::descriptor::Descriptor;
use crate::device::{Device, DeviceError};
use crate::dims::Dims;
use crate::layout::Extents;
use crate::protocol::ExchangeError;
use crate::tensor::{Owner, Tensor};

/// What the caller does with the memory. Objects that keep several copies of it bring one up to date for that.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Access {
    /// Reads no elements, at least not yet: they may be out of date.
    #[default]
    Look,
    /// The same; a stencil calls the hooks of the data interface later.
    Stencil,
    Read,
    Write,
}

/// What the caller asks for.
#[derive(Default)]
struct Request<'a, 'py> {
    device: Option<Device>,
    /// The device that uses the memory: of several buffers the one nearest to it is taken.
    near: Option<Device>,
    access: Access,
    copy: Option<bool>,
    stream: Option<&'a Bound<'py, PyAny>>,
    /// The stream of the producer, on which work on the memory may still run, if the producer names it.
    producer: Cell<Option<i64>>,
    /// Whether an importer found that the object has neither labels nor hooks. To look again takes as long as the import of a
    /// small array.
    has_no_metadata: Cell<bool>,
    /// Whether the object was inside another one.
    inside: bool,
    cache: ImportCache<'py>,
}

/// Metadata cached during import, so that no object is asked twice.
#[derive(Default)]
pub(super) struct ImportCache<'py> {
    /// The device that the caller asks for.
    pub(super) device: Option<Device>,
    /// The object's data interface.
    pub(super) interface: OnceCell<Interface<'py>>,
    /// The array inside the object, if the object is a wrapper.
    pub(super) inner: OnceCell<Inner<'py>>,
    /// The object's `release` hook, to be called when the memory is released.
    release: OnceCell<Arc<ReleaseHook>>,
}

/// An array that another object wraps.
pub(super) struct Inner<'py> {
    pub(super) array: Bound<'py, PyAny>,
    /// The protocol that it was imported by.
    protocol: &'static str,
    pub(super) cache: Box<ImportCache<'py>>,
}

/// Who owns the memory that an importer described.
enum Reading {
    /// This owner.
    Owned(Owner),
    /// The same, from a struct without a flag for read-only memory: taken for read-only, unless the caller knows better.
    ReadonlyUnknown(Owner),
    /// The object, which may move it. Only where the caller asked for a description.
    Borrowed,
}

impl Reading {
    /// The owner, if the producer passed one.
    fn into_shared(self) -> Option<Owner> {
        match self {
            Reading::Owned(owner) | Reading::ReadonlyUnknown(owner) => Some(owner),
            Reading::Borrowed => None,
        }
    }

    /// An owner of the memory; for memory of the object itself, one that keeps it in place.
    fn into_owner(self, object: &Bound<'_, PyAny>, descriptor: &Descriptor) -> PyResult<Owner> {
        match self {
            Reading::Owned(owner) | Reading::ReadonlyUnknown(owner) => Ok(owner),
            Reading::Borrowed => borrow::pinned(object, descriptor),
        }
    }
}

/// Describes an object in place; `None` if it does not have the protocol.
type Import =
    for<'py> fn(&Bound<'py, PyAny>, &Request<'_, 'py>, Ownership, &mut Descriptor) -> PyResult<Option<Reading>>;

/// One protocol.
struct Protocol {
    name: &'static str,
    import: Import,
    /// Whether the import includes all labels that the object states.
    labelled: bool,
}

/// Whether the memory has to outlive the call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ownership {
    /// No: for a description.
    Borrow,
    /// Yes: the import returns an owner.
    Share,
}

/// The protocols in the order of trial: first those that depend on the object's type alone.
static BY_TYPE: [Protocol; 5] = [
    Protocol { name: "dlfield", import: dlfield::import, labelled: true },
    Protocol { name: "numpy", import: numpy::import, labelled: true },
    Protocol { name: "dlpack-c", import: dlpack_c_exchange::import, labelled: false },
    Protocol { name: "jax", import: jax::import, labelled: false },
    Protocol { name: "buffer", import: buffer::import_builtin, labelled: true },
];

/// Then those that are attributes of the object.
static BY_ATTRIBUTE: [Protocol; 11] = [
    Protocol { name: "numpy", import: numpy::import_subclass, labelled: false },
    Protocol { name: "dlfield", import: host_device::import, labelled: false },
    // The wrapped array has one of the other protocols, whose name is reported.
    Protocol { name: "", import: unwrap::import, labelled: false },
    Protocol { name: "dlpack", import: dlpack::import, labelled: false },
    Protocol { name: "dlpack", import: capsule::import, labelled: true },
    Protocol { name: "gt", import: gt_data_interface::import, labelled: false },
    Protocol { name: "cuda-array-interface", import: cuda_array_interface::import_cuda, labelled: false },
    Protocol { name: "hip-array-interface", import: cuda_array_interface::import_hip, labelled: false },
    Protocol { name: "array-interface", import: array_interface::import, labelled: false },
    Protocol { name: "buffer", import: buffer::import, labelled: false },
    Protocol { name: "array", import: array::import, labelled: false },
];

type Found = (Reading, &'static Protocol);

fn probe<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Found>> {
    for row in &BY_TYPE {
        if let Some(reading) = (row.import)(object, request, ownership, descriptor)? {
            let reading = hooks::run_acquire(object, row, request, descriptor, reading)?;
            if descriptor.device() != Device::CPU {
                return Ok(Some((in_order(object, request, ownership, descriptor, reading)?, row)));
            }
            return Ok(Some((reading, row)));
        }
    }
    if is_no_array(object) {
        return Ok(None);
    }
    let mut found = None;
    for row in &BY_ATTRIBUTE {
        if let Some(reading) = (row.import)(object, request, ownership, descriptor)? {
            let host = descriptor.device() == Device::CPU;
            let reading = hooks::run_acquire(object, row, request, descriptor, reading)?;
            let reading = if host { reading } else { in_order(object, request, ownership, descriptor, reading)? };
            found = Some((reading, row));
            break;
        }
    }
    // A producer may have refused a first question.
    fastcall::drop_deferred_references();
    Ok(found)
}

/// Orders work on memory of CUDA, if the device is one of CUDA's.
#[cold]
fn in_order(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    ownership: Ownership,
    descriptor: &Descriptor,
    reading: Reading,
) -> PyResult<Reading> {
    let device = descriptor.device();
    if device.is_of_cuda() {
        return stream_sync::found(object, request, ownership, device, reading);
    }
    Ok(reading)
}

/// Whether the object's type has no protocol. A class has the methods of its instances, but not their memory; numbers and
/// lists are often assigned to fields.
fn is_no_array(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyType>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyComplex>()
        || object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyTuple>()
}

fn import_object<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Found> {
    probe(object, request, ownership, descriptor)?.ok_or_else(|| not_an_array(object))
}

#[cold]
fn not_an_array(object: &Bound<'_, PyAny>) -> PyErr {
    // These have elements, but no memory to share.
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

/// Whether the object may state labels that the import does not include.
fn may_state_labels(object: &Bound<'_, PyAny>, row: &Protocol, request: &Request<'_, '_>) -> PyResult<bool> {
    let unlabelled = row.labelled || request.has_no_metadata.get();
    Ok(request.cache.inner.get().is_some() || !unlabelled && TypeInfo::of(object)?.may_be_labelled(object))
}

/// The labels of an imported object: those given by the caller, then those that the object states.
fn labels<'py>(
    object: &Bound<'py, PyAny>,
    row: &Protocol,
    request: &Request<'_, 'py>,
    dims: Option<Dims>,
    origin: Option<Extents>,
) -> PyResult<Labels> {
    if may_state_labels(object, row, request)? {
        let found = Labels::find(object, &request.cache, dims, origin);
        fastcall::drop_deferred_references();
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
) -> PyResult<Option<&'static Protocol>> {
    if let Ok(ours) = object.cast_exact::<PyTensor>() {
        // With layout, padding and alignment, which a descriptor has not.
        *tensor = ours.get().0.clone();
        if tensor.descriptor().device() != Device::CPU {
            in_order(object, request, Ownership::Share, tensor.descriptor(), Reading::Owned(tensor.owner().clone()))?;
        }
        return Ok(Some(&BY_TYPE[0]));
    }
    #[allow(unsafe_code, reason = "the producer's word for its memory is taken here")]
    // SAFETY: by its protocol the object states that the memory is valid as long as the owner that is asked for lives.
    let (descriptor, owner) = unsafe { tensor.parts_mut() };
    let Some((reading, row)) = probe(object, request, Ownership::Share, descriptor)? else { return Ok(None) };
    *owner = reading.into_owner(object, descriptor)?;
    if let Some(inner) = request.cache.inner.get()
        && let Ok(ours) = inner.array.cast_exact::<PyTensor>()
    {
        tensor.promised(ours.get().0.promise());
    }
    Ok(Some(row))
}

/// The object as a tensor that owns its memory, as it is; `None` for an object with no protocol.
pub(super) fn own(object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    let mut tensor = Tensor::BLANK;
    let request = Request::default();
    let Some(row) = own_into(object, &request, &mut tensor)? else { return Ok(None) };
    labels(object, row, &request, None, None)?.attach(&mut tensor)?;
    Ok(Some(tensor))
}

/// The object as a tensor that owns its memory, to be written to; `copy=False` is passed on to its producer.
pub(super) fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    let mut tensor = Tensor::BLANK;
    let row = own_into(object, &Request { copy, access: Access::Write, ..Request::default() }, &mut tensor)?;
    row.map(|_| tensor).ok_or_else(|| not_an_array(object))
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
    Ok(TypeInfo::of(object)?.library == Framework::Torch)
}

/// Rejects a PyTorch tensor that requires grad, also inside a wrapper.
pub(super) fn refuse_grad(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let inner = inner_of(object)?;
    let object = inner.as_ref().unwrap_or(object);
    if is_torch(object)? { torch::refuse_grad(object) } else { Ok(()) }
}

/// The description of an object, and an owner if the producer passed one. Of several buffers the one nearest to `near`.
pub(super) fn description(object: &Bound<'_, PyAny>, near: Option<Device>) -> PyResult<(Descriptor, Option<Owner>)> {
    let mut descriptor = Descriptor::BLANK;
    let (reading, _) =
        import_object(object, &Request { near, ..Request::default() }, Ownership::Borrow, &mut descriptor)?;
    Ok((descriptor, reading.into_shared()))
}

/// The error for a copy where the memory itself is wanted.
fn refused_copy(ownership: Ownership, reason: impl Into<String>) -> ExchangeError {
    let reason = reason.into();
    match ownership {
        Ownership::Borrow => ExchangeError::OnlyCopy { reason },
        Ownership::Share => ExchangeError::NeedsCopy { reason },
    }
}

/// Rejects `stream` for memory of a device that was exported before without one.
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
