//! Imports that only the Python module needs.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

pub use super::bytes::held_bytes;
pub use super::data_interface::{Hooks, Interface};
pub use super::dlpack::{adopt, take};
pub use super::host_device::is_pair;
pub use super::memory::{Memory, memory_of, owner_of_pointer};
pub use super::metadata::find_dims;
pub use super::numpy::{describe_exact as describe_exact_array, is_as_described, refuse_mask};
use super::numpy::{masked, masked_points};
pub use super::owners::object_to_keep;
pub use super::torch::refuse_grad as refuse_grad_of_torch;
pub use super::value::{Value, assigned_value, value};

pub use super::imported::Imported;
use super::pinned::{check_unmoved, pinned};
pub use super::table::describe;
use super::type_info::TypeInfo;
pub use super::type_info::is_torch;
pub use super::unwrap::{inner_of, with_given_origin};
use super::{Request, RequestAccess, not_an_array, share};
use crate::cuda;
use crate::descriptor::Descriptor;
use crate::device::{Device, DeviceError};
use crate::memory::cuda::device_of_pointer;
use crate::python::convert::of_module::named;
use crate::python::own_classes::Description;
use crate::tensor::{Owner, Tensor};

/// Imports an object as a tensor that owns its memory, for writing and without metadata. Passes `copy` on to the producer.
pub fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    let mut tensor = Tensor::BLANK;
    let mut request = Request::new(RequestAccess::Write).sharing();
    request.copy = copy;
    share(object, &request, &mut tensor)?.map(|_| tensor).ok_or_else(|| not_an_array(object))
}

/// Imports an object as a tensor that owns its memory, for reading, without metadata.
pub fn readable(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    value(object, Device::CPU, None)?.map(Value::into_tensor).ok_or_else(|| not_an_array(object))
}

/// Rejects a PyTorch tensor that requires grad, also one inside a wrapper.
pub fn refuse_grad(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let inner = inner_of(object)?;
    let object = inner.as_ref().unwrap_or(object);
    if is_torch(object)? { refuse_grad_of_torch(object) } else { Ok(()) }
}

/// Returns the descriptor of an object, and the owner if the producer passed one. Of several buffers, takes the one nearest
/// to `near`.
pub fn description(object: &Bound<'_, PyAny>, near: Option<Device>) -> PyResult<(Descriptor, Option<Owner>)> {
    let mut descriptor = Descriptor::BLANK;
    let mut imported = Imported::new(&mut descriptor);
    let mut request = Request::new(RequestAccess::Inspect);
    request.near = near;
    describe(object, &request, &mut imported)?;
    let owner = imported.owner;
    Ok((descriptor, owner))
}

/// Returns an owner that keeps described memory in place; `None` if the description has one from the producer.
pub fn pin_described(description: &Description<'_, '_>) -> PyResult<Option<Owner>> {
    if description.owner.is_some() { Ok(None) } else { pinned(&description.object, description.descriptor).map(Some) }
}

/// Rejects described memory that belongs to the object if the object has moved or reshaped it since.
pub fn check_described(description: &Description<'_, '_>) -> PyResult<()> {
    if description.owner.is_some() { Ok(()) } else { check_unmoved(&description.object, description.descriptor) }
}

/// Rejects memory that the requested device cannot access.
pub fn check_device(wanted: Option<Device>, found: Device) -> PyResult<()> {
    match wanted {
        Some(wanted) if !wanted.can_access(found) => Err(DeviceError::Mismatch { found, wanted }.into()),
        _ => Ok(()),
    }
}

/// Whether the object may have a data interface with hooks.
pub fn may_have_hooks(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(TypeInfo::of(object)?.may_have_hooks(object))
}

/// Rejects memory that, according to the driver, is on another device than the wanted one.
#[cold]
pub fn check_place(wanted: Device, descriptor: &Descriptor) -> PyResult<()> {
    if descriptor.size() == 0 || !cuda::is_available() {
        return Ok(());
    }
    let address = descriptor.ptr().addr();
    match device_of_pointer(address)? {
        None => Err(DeviceError::NotOfCuda { address, wanted }.into()),
        Some(found) if wanted.can_access(found) => Ok(()),
        Some(found) => Err(DeviceError::Mismatch { found, wanted }.into()),
    }
}

/// Converts a value to an array with NumPy. Rejects a masked point, in masked arrays inside lists too: NumPy would drop the mask.
/// Errors call the value `argument`.
pub fn as_array<'py>(value: &Bound<'py, PyAny>, argument: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let array = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (value,));
    // Rows of different lengths. Other errors may be those of an object in a list, and stay what they are.
    let is_of_numpy = |error: &PyErr| error.get_type(py).is(py.get_type::<PyValueError>());
    let array = array.map_err(|error| if is_of_numpy(&error) { named(py, error, argument) } else { error })?;
    // Lists are nested no deeper than the array that NumPy has made of them: one may contain itself.
    let depth = array.getattr(intern!(py, "ndim"))?.extract()?;
    match masked_inside(value, depth)? {
        None => refuse_mask(value, argument)?,
        Some((inside, points)) => {
            return Err(masked(&inside, points, &format!("{argument}: expected arrays"), "array"));
        }
    }
    Ok(array)
}

/// Finds an array with a masked point in lists and tuples, and counts its masked points.
fn masked_inside<'py>(value: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<(Bound<'py, PyAny>, usize)>> {
    let search = |entry: Bound<'py, PyAny>| {
        let points = masked_points(&entry)?;
        if points > 0 { Ok(Some((entry, points))) } else { masked_inside(&entry, depth - 1) }
    };
    if depth == 0 {
        Ok(None)
    } else if let Ok(list) = value.cast::<PyList>() {
        list.iter().find_map(|entry| search(entry).transpose()).transpose()
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        tuple.iter().find_map(|entry| search(entry).transpose()).transpose()
    } else {
        Ok(None)
    }
}
