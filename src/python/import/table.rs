//! Imports an object: by its type, or else, after wrappers are peeled in a loop, by its other protocols. Then runs hooks, makes
//! streams wait, and sets the metadata.
//!
//! Each importer returns `false` if the object does not have its protocol, and the next one is tried. The first protocol that the
//! object has is final: its errors, and the producer's, reach the caller.

use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::device::Device;
use crate::layout::Metadata;
use crate::python::ffi::attach::release_deferred;
use crate::python::import::imported::{Imported, Inner, Release};
use crate::python::import::names::{Name, Names};
use crate::python::import::request::{Ownership, Request, RequestAccess, is_never_array, not_an_array};
use crate::python::import::type_info::{Framework, TypeInfo};
use crate::python::import::unwrap::Peeled;
use crate::python::import::wrapper::Wrapper;
use crate::python::import::{
    array, array_interface, array_struct, buffer, capsule, cuda_array_interface, dlfield, dlpack, dlpack_c_exchange,
    gt_data_interface, hooks, host_device, jax, metadata, numpy, owners, stream_sync, unwrap,
};
use crate::python::own_classes;
use crate::tensor::Tensor;

/// Imports an object by one protocol: fills in the descriptor and the rest of the result. `false` if the object does not have it.
type Import = for<'py> fn(&Bound<'py, PyAny>, &Request<'_, 'py>, &mut Imported<'_, 'py>) -> PyResult<bool>;

/// One protocol.
struct Protocol {
    name: &'static str,
    import: Import,
    /// Whether the descriptor then has all metadata of the object, and the object has no hooks.
    has_metadata: bool,
    /// The attributes, one of which an object with this protocol has; none if its type tells.
    attributes: Names,
}

impl Protocol {
    const fn of_type(name: &'static str, import: Import, has_metadata: bool) -> Protocol {
        Protocol { name, import, has_metadata, attributes: Names::NONE }
    }

    /// Imports an object by this protocol. `false` if the object does not have it.
    #[inline(always)]
    fn import_by<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        request: &Request<'_, 'py>,
        imported: &mut Imported<'_, 'py>,
    ) -> PyResult<bool> {
        let found = (self.import)(object, request, imported)?;
        if found {
            imported.protocol = self.name;
            imported.has_all_metadata |= self.has_metadata;
        }
        Ok(found)
    }

    const fn of_attributes(name: &'static str, import: Import, attributes: &[Name]) -> Protocol {
        Protocol { name, import, has_metadata: false, attributes: Names::of(attributes) }
    }
}

/// The classes that are known by their address, tried first.
static BY_CLASS: [Protocol; 2] =
    [Protocol::of_type("numpy", numpy::import, true), Protocol::of_type("dlfield", dlfield::import, true)];

const JAX: Protocol = Protocol::of_type("jax", jax::import, false);
const BUILTIN: Protocol = Protocol::of_type("buffer", buffer::hold, true);

/// The other protocols, tried if there is no wrapper to peel.
static OTHERS: [Protocol; 10] = [
    Protocol::of_type("numpy", numpy::import_subclass, false),
    Protocol::of_attributes("dlpack", dlpack::import, &[Name::Dlpack]),
    Protocol::of_type("dlpack", capsule::import, true),
    Protocol::of_attributes("gt", gt_data_interface::import, &[Name::GtDataInterface, Name::GtInterface]),
    Protocol::of_attributes("cuda-array-interface", cuda_array_interface::import_cuda, &[Name::CudaArrayInterface]),
    Protocol::of_attributes("hip-array-interface", cuda_array_interface::import_hip, &[Name::HipArrayInterface]),
    Protocol::of_attributes("array-interface", array_interface::import, &[Name::ArrayInterface]),
    Protocol::of_attributes("array-struct", array_struct::import, &[Name::ArrayStruct]),
    Protocol::of_type("buffer", buffer::import, false),
    Protocol::of_attributes("array", array::import, &[Name::Array]),
];

/// A stencil imports a host/device pair by its data interface, and runs the hooks of that around the call.
const PAIR_FOR_STENCIL: Protocol = Protocol::of_type("dlfield", gt_data_interface::import, false);

/// Imports an object: fills in the descriptor and the rest of the result. `false` if the object has no protocol.
///
/// Wrappers are peeled until an object with memory is left, which is imported. Then, from the inside out, a borrowed owner is made
/// to keep the array of each wrapper as well, and streams are made to wait for the wrapper. The metadata comes last: the outermost
/// object's counts first.
#[inline]
pub(super) fn import<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    imported: &mut Imported<'_, 'py>,
) -> PyResult<bool> {
    release_deferred(object.py());
    if import_by_class(object, request, imported)? {
        finish(object, request, imported)?;
        complete(object, request, imported)?;
        return Ok(true);
    }
    // Errors are discarded below, whose references PyO3 drops at once only if it knows that this thread is attached.
    Python::attach(|_| {
        if import_by_info(object, request, imported)? {
            finish(object, request, imported)?;
        } else if !import_inside(object, request, imported)? {
            return Ok(false);
        }
        complete(object, request, imported)?;
        Ok(true)
    })
}

/// Sets the metadata of an imported object, and checks that its memory has not moved since it was located.
#[inline(always)]
fn complete<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    imported: &mut Imported<'_, 'py>,
) -> PyResult<()> {
    if let Some(given) = request.metadata
        && (!given.is_empty() || imported.may_lack_metadata(object)?)
    {
        set_metadata(object, request, given, imported)?;
    }
    let asked_more = !imported.has_all_metadata || imported.descriptor.device() != Device::CPU;
    if asked_more && imported.owner.is_none() && !imported.is_tensor {
        // Hooks, labels and streams were asked for since the memory was located. A tensor keeps its memory for life.
        imported.check_unmoved(object)?;
    }
    Ok(())
}

/// Imports an object of one of [`BY_CLASS`].
#[inline(always)]
fn import_by_class<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    imported: &mut Imported<'_, 'py>,
) -> PyResult<bool> {
    for protocol in &BY_CLASS {
        if protocol.import_by(object, request, imported)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Imports an object by the protocols that its type alone decides.
fn import_by_info<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    imported: &mut Imported<'_, 'py>,
) -> PyResult<bool> {
    let info = TypeInfo::of(object)?;
    if let Some(table) = info.table
        && dlpack_c_exchange::import(object, &info, table, request, imported)?
    {
        imported.protocol = "dlpack-c";
        return Ok(true);
    }
    match (info.framework, info.wrapper) {
        (Framework::Jax, _) => JAX.import_by(object, request, imported),
        (Framework::Builtin, _) => BUILTIN.import_by(object, request, imported),
        (_, Some(Wrapper::Pair)) if request.access == RequestAccess::Stencil => {
            PAIR_FOR_STENCIL.import_by(object, request, imported)
        }
        _ => Ok(false),
    }
}

/// Imports an object by the first of [`OTHERS`] that it has, and finishes the import.
fn import_by_attribute<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    imported: &mut Imported<'_, 'py>,
) -> PyResult<bool> {
    if is_never_array(object) {
        return Ok(false);
    }
    for protocol in &OTHERS {
        // Asked for each protocol anew: the look-up of one before may have run code, which may have added attributes.
        let may_have = protocol.attributes.is_empty() || TypeInfo::of(object)?.may_have(object, protocol.attributes);
        if may_have && protocol.import_by(object, request, imported)? {
            // The attributes that may have metadata include those that may have hooks.
            imported.has_all_metadata |= !TypeInfo::of(object)?.may_be_labelled(object);
            finish(object, request, imported)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// As [`import`], for an object whose type does not decide: that object, or the array inside it.
fn import_inside<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    imported: &mut Imported<'_, 'py>,
) -> PyResult<bool> {
    let mut wrappers = SmallVec::<[PeeledWrapper<'_, 'py>; 2]>::new();
    let (mut current, mut current_request) = (object.clone(), *request);
    loop {
        if let Some((peeled, inner_request)) = peel(&current, &current_request, wrappers.is_empty())? {
            let array = peeled.array.clone();
            wrappers.push(PeeledWrapper { object: current, request: current_request, peeled });
            (current, current_request) = (array, inner_request);
            if import_by_class(&current, &current_request, imported)?
                || import_by_info(&current, &current_request, imported)?
            {
                finish(&current, &current_request, imported)?;
                break;
            }
        } else if import_by_attribute(&current, &current_request, imported)? {
            break;
        } else {
            return if wrappers.is_empty() { Ok(false) } else { Err(not_an_array(&current)) };
        }
    }
    while let Some(PeeledWrapper { object, request, peeled }) = wrappers.pop() {
        // A wrapper's array may be replaced at any time, so the owner keeps this array. That of a tensor keeps the memory by
        // itself, and knows the streams that work on it.
        let owner = match imported.owner.take() {
            Some(owner) if request.ownership == Ownership::Borrow && !imported.is_tensor => {
                owners::owner_and_object(owner, &peeled.array)
            }
            Some(owner) => owner,
            None => imported.take_owner(&peeled.array)?,
        };
        imported.owner = Some(owner);
        peeled.check(imported.descriptor.shape())?;
        let (interface, inner) = (imported.interface.take(), imported.inner.take());
        imported.inner = Some(Box::new(Inner { array: peeled.array, interface, inner }));
        order_streams(&object, &request, imported)?;
    }
    Ok(true)
}

/// A wrapper that was peeled: the object, the request to it, and the array inside.
struct PeeledWrapper<'a, 'py> {
    object: Bound<'py, PyAny>,
    request: Request<'a, 'py>,
    peeled: Peeled<'py>,
}

/// Returns the array inside a wrapper, and the request to that; `None` for other objects. Only the `outermost` object is peeled as
/// one of xarray or gt4py, which could contain itself; pairs are always peeled.
fn peel<'a, 'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'a, 'py>,
    outermost: bool,
) -> PyResult<Option<(Peeled<'py>, Request<'a, 'py>)>> {
    if host_device::is_pair(object)? {
        let buffer = host_device::buffer(object, request.device.or(request.near), request.access)?;
        // The pair has brought the buffer up to date for the access, so the buffer is only inspected.
        let inspected = Request { near: None, access: RequestAccess::Inspect, ..*request };
        return Ok(Some((Peeled::from(buffer), inspected)));
    }
    let peeled = if outermost { unwrap::peel(object, request)? } else { None };
    Ok(peeled.map(|peeled| (peeled, *request)))
}

/// Finishes the import of an object with memory: runs `acquire`, then makes streams wait. `acquire` comes first, as it may move
/// elements on a device. Both may run Python code.
#[inline(always)]
fn finish<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    imported: &mut Imported<'_, 'py>,
) -> PyResult<()> {
    if !imported.has_all_metadata && !imported.is_tensor {
        hooks::run_acquire(object, request, imported)?;
    }
    order_streams(object, request, imported)
}

/// Makes the consumer's stream wait for the producer's, for memory of CUDA.
#[inline(always)]
fn order_streams(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<()> {
    let device = imported.descriptor.device();
    if device != Device::CPU && device.is_of_cuda() {
        stream_sync::order(object, request, imported, device)?;
    }
    Ok(())
}

/// Describes an object: fills in the descriptor and the rest of the result. An object without any protocol is an error.
#[inline]
pub fn describe<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    imported: &mut Imported<'_, 'py>,
) -> PyResult<()> {
    if import(object, request, imported)? { Ok(()) } else { Err(not_an_array(object)) }
}

/// Sets metadata on the descriptor: what the request gives, else the object's.
#[cold]
fn set_metadata<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    given: &Metadata,
    imported: &mut Imported<'_, 'py>,
) -> PyResult<()> {
    let mut metadata = given.clone();
    if imported.may_lack_metadata(object)? {
        metadata = metadata::find(object, request.device, imported, metadata)?;
    }
    if request.ownership == Ownership::Borrow {
        // A tensor derives its origin from the halo when asked; a descriptor does not.
        metadata = metadata.with_default_origin();
    }
    Ok(imported.descriptor.relabel(metadata)?)
}

/// Imports an object as a tensor that owns its memory: fills in `tensor`, and returns the `release` hook. `None` if the object
/// has no protocol. The request is a [`Request::sharing`] one.
pub fn share<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    tensor: &mut Tensor,
) -> PyResult<Option<Release>> {
    debug_assert!(request.ownership == Ownership::Share, "a request for memory that does not outlive the call");
    if let Some(own) = own_classes::tensor(object) {
        // A clone keeps layout, padding and alignment, which a descriptor does not have.
        *tensor = own.clone();
        if tensor.descriptor().device() != Device::CPU {
            // Only for the streams.
            let mut descriptor = tensor.descriptor().clone();
            let mut imported = Imported::new(&mut descriptor);
            imported.owner = Some(tensor.owner().clone());
            order_streams(object, request, &mut imported)?;
        }
        if let Some(given) = request.metadata.filter(|given| !given.is_empty()) {
            tensor.relabel(given.clone())?;
        }
        return Ok(Some(Release::default()));
    }
    #[allow(unsafe_code, reason = "the producer promises that its memory is valid")]
    // SAFETY: by its protocol the producer promises that the memory is valid as long as the owner lives, which is set below.
    let (descriptor, owner) = unsafe { tensor.parts_mut() };
    let mut imported = Imported::new(descriptor);
    if !import(object, request, &mut imported)? {
        return Ok(None);
    }
    *owner = imported.take_owner(object)?;
    let Imported { inner, release, promise, .. } = imported;
    let of_inner = || Some(own_classes::tensor(&inner.as_ref()?.array)?.promise().clone());
    if let Some(promise) = promise.map(|promise| *promise).or_else(of_inner) {
        tensor.adopt_promise(promise);
    }
    Ok(Some(release))
}
