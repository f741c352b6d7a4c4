//! Imports an object: by its type, or else, after wrappers are peeled in a loop, by its other protocols. Then runs hooks, makes
//! streams wait, and sets the metadata.
//!
//! Each importer returns `false` if the object does not have its protocol, and the next one is tried. The first protocol that the
//! object has is final: its errors, and the producer's, reach the caller.

use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyList, PyTuple, PyType};
use smallvec::SmallVec;

use crate::device::Device;
use crate::layout::{Metadata, Promise};
use crate::python::ffi::attach::release_deferred;
use crate::python::ffi::numpy_api;
use crate::python::import::frameworks::Kind;
use crate::python::import::pinned::pinned;
use crate::python::import::request::{Imported, Inner, Ownership, Release, Request, RequestAccess, not_an_array};
use crate::python::import::type_info::TypeInfo;
use crate::python::import::{
    array_interface, buffer, dlfield, dlpack, dlpack_c_exchange, gt_data_interface, metadata, numpy, stream_sync,
    unwrap,
};
use crate::python::own_classes;
use crate::python::py_owner::PyOwner;
use crate::tensor::Tensor;

/// Imports an object by one protocol: fills in the descriptor and the rest of the result. `false` if the object does not have it.
type Import = for<'a> fn(&Bound<'a, PyAny>, &Request<'_>, &mut Imported<'a>) -> PyResult<bool>;

/// The protocols that are tried if neither the type decides nor there is a wrapper to peel.
static OTHERS: [(&str, Import); 10] = [
    ("numpy", numpy::import_subclass),
    ("dlpack", dlpack::import),
    ("dlpack", dlpack::import_capsule),
    ("gt", gt_data_interface::import),
    ("cuda-array-interface", array_interface::import_cuda),
    ("hip-array-interface", array_interface::import_hip),
    ("array-interface", array_interface::import),
    ("array-struct", array_interface::import_struct),
    ("buffer", buffer::import),
    ("array", numpy::import_array_of),
];

/// Imports an object: fills in the descriptor and the rest of the result. `false` if the object has no protocol.
#[inline]
fn import<'a>(object: &Bound<'a, PyAny>, request: &Request<'_>, out: &mut Imported<'a>) -> PyResult<bool> {
    release_deferred(object.py());
    if import_by_class(object, request, out)? {
        return complete(object, request, out).map(|()| true);
    }
    // Errors are discarded below, whose references PyO3 drops at once only if it knows that this thread is attached.
    Python::attach(|_| {
        if import_by_info(object, request, out)? || import_inside(object, request, out)? {
            return complete(object, request, out).map(|()| true);
        }
        Ok(false)
    })
}

/// Sets the metadata of an imported object, and checks that its memory has not moved since it was located.
#[inline(always)]
fn complete<'a>(object: &Bound<'a, PyAny>, request: &Request<'_>, out: &mut Imported<'a>) -> PyResult<()> {
    if let Some(given) = request.metadata
        && !(given.is_empty() && out.has_all_metadata && out.inner.is_none())
    {
        set_metadata(object, request, given, out)?;
    }
    let asked_more = !out.has_all_metadata || out.descriptor.device() != Device::CPU;
    if asked_more && out.owner.is_none() && !out.is_tensor {
        // Hooks, labels and streams were asked for since the memory was located. A tensor keeps its memory for life.
        out.check_unmoved(object)?;
    }
    Ok(())
}

/// Imports an object of a class that is known by its address. It has no hooks, and the descriptor has all of its metadata.
#[inline(always)]
fn import_by_class<'a>(object: &Bound<'a, PyAny>, request: &Request<'_>, out: &mut Imported<'a>) -> PyResult<bool> {
    if numpy_api::is_exact(object) {
        numpy::import_struct(object, request, out)?;
        out.protocol = "numpy";
    } else if let Some(tensor) = own_classes::tensor(object) {
        dlfield::import_tensor(object.py(), tensor, request, out)?;
        out.protocol = "dlfield";
    } else if let Some(description) = own_classes::description(object) {
        dlfield::import_described(&description, request, out)?;
        out.protocol = "dlfield";
    } else {
        return Ok(false);
    }
    out.has_all_metadata = true;
    order_streams(object, request, out)?;
    Ok(true)
}

/// Imports an object by the protocols that its type alone decides.
fn import_by_info<'a>(object: &Bound<'a, PyAny>, request: &Request<'_>, out: &mut Imported<'a>) -> PyResult<bool> {
    let info = TypeInfo::of(object)?;
    out.protocol = if let Some(table) = info.table
        && dlpack_c_exchange::import(object, &info, table, request, out)?
    {
        "dlpack-c"
    } else if info.kind == Kind::Jax && buffer::import_jax(object, request, out)? {
        "jax"
    } else if info.kind == Kind::Pair
        && request.access == RequestAccess::Stencil
        && gt_data_interface::import(object, request, out)?
    {
        // A stencil imports the pair by its data interface, and runs the hooks of that around the call.
        "dlfield"
    } else {
        return Ok(false);
    };
    finish(object, &info, request, out)
}

/// Imports an object by the first of [`OTHERS`] that it has.
fn import_by_attribute<'a>(object: &Bound<'a, PyAny>, request: &Request<'_>, out: &mut Imported<'a>) -> PyResult<bool> {
    if is_never_array(object) {
        return Ok(false);
    }
    for (name, import) in &OTHERS {
        if import(object, request, out)? {
            out.protocol = name;
            return finish(object, &TypeInfo::of(object)?, request, out);
        }
    }
    Ok(false)
}

/// Imports the object, or the array inside it, after wrappers are peeled. From the inside out, a borrowed owner is then made to
/// keep the array of each wrapper as well, and streams are made to wait for the wrapper.
fn import_inside<'a>(object: &Bound<'a, PyAny>, request: &Request<'_>, out: &mut Imported<'a>) -> PyResult<bool> {
    let mut wrappers = SmallVec::<[_; 2]>::new();
    let (mut current, mut current_request) = (object.clone(), *request);
    loop {
        if let Some((peeled, inner_request)) = unwrap::peel(&current, &current_request, wrappers.is_empty())? {
            let array = peeled.array.clone();
            wrappers.push((current, current_request, peeled));
            (current, current_request) = (array, inner_request);
            if import_by_class(&current, &current_request, out)? || import_by_info(&current, &current_request, out)? {
                break;
            }
        } else if import_by_attribute(&current, &current_request, out)? {
            break;
        } else {
            return if wrappers.is_empty() { Ok(false) } else { Err(not_an_array(&current)) };
        }
    }
    while let Some((object, request, peeled)) = wrappers.pop() {
        // A wrapper's array may be replaced at any time, so the owner keeps this array. That of a tensor keeps the memory by
        // itself, and knows the streams that work on it.
        let owner = match out.owner.take() {
            Some(owner) if request.ownership == Ownership::Borrow && !out.is_tensor => {
                owner.with(PyOwner::new(&peeled.array))
            }
            Some(owner) => owner,
            None => pinned(&peeled.array, out.descriptor)?,
        };
        out.owner = Some(owner);
        peeled.check(out.descriptor.shape())?;
        let (interface, inner) = (out.interface.take(), out.inner.take());
        out.inner = Some(Box::new(Inner { array: peeled.array, interface, inner }));
        order_streams(&object, &request, out)?;
    }
    Ok(true)
}

/// Whether the object is of a type that is never an array. A class has the methods of its instances, but no memory; numbers,
/// lists and tuples are often assigned to fields, so they are rejected early.
fn is_never_array(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyType>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyComplex>()
        || object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyTuple>()
}

/// Finishes the import of an object with memory: runs `acquire`, then makes streams wait. `acquire` comes first, as it may move
/// elements on a device. Both may run Python code. Returns `true`.
#[inline(always)]
fn finish<'a>(
    object: &Bound<'a, PyAny>,
    info: &TypeInfo,
    request: &Request<'_>,
    out: &mut Imported<'a>,
) -> PyResult<bool> {
    out.has_all_metadata = !info.may_be_labelled(object);
    if !out.has_all_metadata && !out.is_tensor {
        gt_data_interface::run_acquire(object, request, out)?;
    }
    order_streams(object, request, out)?;
    Ok(true)
}

/// Makes the consumer's stream wait for the producer's, for memory of CUDA.
#[inline(always)]
fn order_streams(object: &Bound<'_, PyAny>, request: &Request<'_>, out: &mut Imported<'_>) -> PyResult<()> {
    let device = out.descriptor.device();
    if device != Device::CPU && device.is_of_cuda() {
        stream_sync::order(object, request, out)?;
    }
    Ok(())
}

/// Describes an object: fills in the descriptor and the rest of the result. An object without any protocol is an error.
#[inline]
pub fn describe<'a>(object: &Bound<'a, PyAny>, request: &Request<'_>, out: &mut Imported<'a>) -> PyResult<()> {
    if import(object, request, out)? { Ok(()) } else { Err(not_an_array(object)) }
}

/// Sets metadata on the descriptor: what the request gives first, then what the outermost object has.
#[cold]
fn set_metadata<'a>(
    object: &Bound<'a, PyAny>,
    request: &Request<'_>,
    given: &Metadata,
    out: &mut Imported<'a>,
) -> PyResult<()> {
    let mut metadata = given.clone();
    if !out.has_all_metadata || out.inner.is_some() {
        let inner = out.inner.as_deref_mut();
        metadata = metadata::find(object, request.device, &mut out.interface, inner, metadata)?;
    }
    if request.ownership == Ownership::Borrow {
        // A tensor derives its origin from the halo when asked; a descriptor does not.
        metadata = metadata.with_default_origin();
    }
    Ok(out.descriptor.relabel(metadata)?)
}

/// Imports an object as a tensor that owns its memory: fills in `tensor`, and returns the `release` hook. `None` if the object
/// has no protocol. The request is a [`Request::sharing`] one.
pub fn share(object: &Bound<'_, PyAny>, request: &Request<'_>, tensor: &mut Tensor) -> PyResult<Option<Release>> {
    debug_assert!(request.ownership == Ownership::Share, "a request for memory that does not outlive the call");
    if let Some(own) = own_classes::tensor(object) {
        // A clone keeps layout, padding and alignment, which a descriptor does not have.
        *tensor = own.clone();
        if tensor.descriptor().device() != Device::CPU {
            // Only for the streams.
            let mut descriptor = tensor.descriptor().clone();
            let mut out = Imported::new(&mut descriptor);
            out.owner = Some(tensor.owner().clone());
            order_streams(object, request, &mut out)?;
        }
        if let Some(given) = request.metadata.filter(|given| !given.is_empty()) {
            tensor.relabel(given.clone())?;
        }
        return Ok(Some(Release::default()));
    }
    #[allow(unsafe_code, reason = "the producer promises that its memory is valid")]
    // SAFETY: by its protocol the producer promises that the memory is valid as long as the owner lives, which is set below.
    let (descriptor, owner) = unsafe { tensor.parts_mut() };
    let mut out = Imported::new(descriptor);
    if !import(object, request, &mut out)? {
        return Ok(None);
    }
    *owner = out.take_owner(object)?;
    let (promise, release) = promised(out);
    if let Some(promise) = promise {
        tensor.adopt_promise(promise);
    }
    Ok(Some(release))
}

/// Returns what the allocation of a tensor promises that was imported, or that is inside of the object, and the `release` hook.
#[inline(always)]
fn promised(out: Imported<'_>) -> (Option<Promise>, Release) {
    let Imported { inner, release, promise, .. } = out;
    let of_inner = || Some(own_classes::tensor(&inner.as_ref()?.array)?.promise().clone());
    (promise.map(|promise| *promise).or_else(of_inner), release)
}
