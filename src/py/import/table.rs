//! The table of protocols, in the order of trial.
//!
//! Each importer first checks whether its protocol is there; if not, the next one is tried. A protocol that is there is final:
//! its errors, and the producer's, reach the caller.

use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyList, PyTuple, PyType};

use super::metadata::Labels;
use super::request::{Access, Inner, Ownership, Reading, Request, not_an_array};
use super::type_info::TypeInfo;
use super::{
    array, array_interface, buffer, capsule, cuda_array_interface, dlfield, dlpack, dlpack_c_exchange,
    gt_data_interface, hooks, host_device, jax, numpy, owners, stream_sync, unwrap,
};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dims::Dims;
use crate::layout::Extents;
use crate::py::fastcall;
use crate::py::tensor::PyTensor;
use crate::tensor::Tensor;

/// Describes an object in place; `None` if it does not have the protocol.
type Import =
    for<'py> fn(&Bound<'py, PyAny>, &Request<'_, 'py>, Ownership, &mut Descriptor) -> PyResult<Option<Reading>>;

/// One protocol.
pub(super) struct Protocol {
    pub(super) name: &'static str,
    import: Import,
    /// Whether the import includes all labels that the object states.
    pub(super) labelled: bool,
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
    Protocol { name: "dlfield", import: import_pair, labelled: false },
    // The wrapped array has one of the other protocols, whose name is reported.
    Protocol { name: "", import: import_wrapped, labelled: false },
    Protocol { name: "dlpack", import: dlpack::import, labelled: false },
    Protocol { name: "dlpack", import: capsule::import, labelled: true },
    Protocol { name: "gt", import: gt_data_interface::import, labelled: false },
    Protocol { name: "cuda-array-interface", import: cuda_array_interface::import_cuda, labelled: false },
    Protocol { name: "hip-array-interface", import: cuda_array_interface::import_hip, labelled: false },
    Protocol { name: "array-interface", import: array_interface::import, labelled: false },
    Protocol { name: "buffer", import: buffer::import, labelled: false },
    Protocol { name: "array", import: array::import, labelled: false },
];

pub(super) type Found = (Reading, &'static Protocol);

fn probe<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Found>> {
    for row in &BY_TYPE {
        if let Some(reading) = (row.import)(object, request, ownership, descriptor)? {
            let reading = hooks::run_acquire(object, row.name, row.labelled, request, descriptor, reading)?;
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
            let reading = hooks::run_acquire(object, row.name, row.labelled, request, descriptor, reading)?;
            let reading = if host { reading } else { in_order(object, request, ownership, descriptor, reading)? };
            found = Some((reading, row));
            break;
        }
    }
    // A producer may have refused a first question.
    fastcall::drop_deferred_references();
    Ok(found)
}

/// A host/device pair: one of its buffers.
fn import_pair<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    if !host_device::is_pair(object)? {
        return Ok(None);
    }
    // Its data interface has the hooks, if it has one for these elements.
    if request.access == Access::Stencil
        && let Some(reading) = gt_data_interface::import(object, request, ownership, descriptor)?
    {
        return Ok(Some(reading));
    }
    let buffer = host_device::buffer(object, request.device.or(request.near), request.access)?;
    let Request { device, copy, stream, .. } = *request;
    let within = Request { device, copy, stream, inside: true, ..Request::default() };
    import_inner(buffer, within, request, ownership, descriptor).map(Some)
}

/// An object that wraps an array and labels it: that array.
fn import_wrapped<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Reading>> {
    if request.inside {
        // A wrapper inside a wrapper might be the same one again.
        return Ok(None);
    }
    let Some((array, ranges)) = unwrap::peel(object, request, ownership)? else { return Ok(None) };
    let Request { device, near, access, copy, stream, .. } = *request;
    let within = Request { device, near, access, copy, stream, inside: true, ..Request::default() };
    let reading = import_inner(array, within, request, ownership, descriptor)?;
    if let Some(ranges) = ranges {
        unwrap::check_extents(&ranges, descriptor.shape())?;
    }
    Ok(Some(reading))
}

/// Imports the array inside an object by the request `within`, and notes it in the object's own request. The object may be
/// given another array at any time, so the owner keeps this one.
fn import_inner<'a, 'py>(
    array: Bound<'py, PyAny>,
    within: Request<'a, 'py>,
    request: &Request<'_, 'py>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Reading> {
    let (reading, row) = import_object(&array, &within, ownership, descriptor)?;
    let readonly_unknown = matches!(reading, Reading::ReadonlyUnknown(_));
    let owner = match reading {
        Reading::Owned(owner) | Reading::ReadonlyUnknown(owner) if ownership == Ownership::Borrow => {
            owners::with(owner, &array)
        }
        reading => reading.into_owner(&array, descriptor)?,
    };
    let _ = request.cache.inner.set(Inner { array, protocol: row.name, cache: Box::new(within.cache) });
    Ok(if readonly_unknown { Reading::ReadonlyUnknown(owner) } else { Reading::Owned(owner) })
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

pub(super) fn import_object<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    ownership: Ownership,
    descriptor: &mut Descriptor,
) -> PyResult<Found> {
    probe(object, request, ownership, descriptor)?.ok_or_else(|| not_an_array(object))
}

/// Whether the object may state labels that the import does not include.
pub(super) fn may_state_labels(object: &Bound<'_, PyAny>, row: &Protocol, request: &Request<'_, '_>) -> PyResult<bool> {
    let unlabelled = row.labelled || request.has_no_metadata.get();
    Ok(request.cache.inner.get().is_some() || !unlabelled && TypeInfo::of(object)?.may_be_labelled(object))
}

/// The labels of an imported object: those given by the caller, then those that the object states.
pub(super) fn labels<'py>(
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
pub(super) fn own_into<'py>(
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
