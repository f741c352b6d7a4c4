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
pub use super::numpy::{is_as_described, locate as locate_array, refuse_mask};
use super::numpy::{masked, masked_points};
pub use super::owners::object_to_keep;
pub use super::torch::refuse_grad as refuse_grad_of_torch;
pub use super::value::{Value, assigned_value, value};

pub use super::imported::Imported;
use super::pinned::{check_unmoved, pinned};
pub use super::table::describe;
use super::type_info::TypeInfo;
pub use super::type_info::is_torch;
pub use super::unwrap::{inner_of, is_field, with_given_origin};
use super::{Request, RequestAccess, not_an_array, share};
use crate::cuda;
use crate::descriptor::Descriptor;
use crate::device::{Device, DeviceError};
use crate::memory::cuda::device_of_pointer;
use crate::python::convert::errors::ErrorKind;
use crate::python::convert::of_module::named;
use crate::python::interrupt::is_interrupt;
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

/// Converts a value to an array with NumPy. Rejects a masked point, and a PyTorch tensor that is more than its elements, also
/// inside lists: NumPy would drop the mask, or the gradient. Errors call the value `argument`.
pub fn as_array<'py>(value: &Bound<'py, PyAny>, argument: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let array = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (value,));
    let array = match array {
        Ok(array) => array,
        // Rows of different lengths.
        Err(error) if error.get_type(py).is(py.get_type::<PyValueError>()) => return Err(named(py, error, argument)),
        Err(error) => {
            // An object in a list raises it: PyTorch's tensors do not say of which argument.
            if !is_interrupt(py, &error) {
                refuse_more(value, argument, argument)?;
                refuse_inside(value, DEPTH, argument)?;
            }
            return Err(error);
        }
    };
    refuse_mask(value, argument)?;
    refuse_more(value, argument, argument)?;
    // Lists are nested no deeper than the array that NumPy has made of them: one may contain itself.
    refuse_inside(value, array.getattr(intern!(py, "ndim"))?.extract()?, argument)?;
    Ok(array)
}

/// How deep lists are searched that no array tells the depth of.
const DEPTH: usize = 2;

/// Rejects a list or an array that selects points, if it has a masked point, whose mask NumPy would drop.
pub fn refuse_masked_key(key: &Bound<'_, PyAny>) -> PyResult<()> {
    match masked_points(key)? {
        0 => refuse_inside(key, DEPTH, KEY),
        points => Err(masked_key(points)),
    }
}

const KEY: &str = "key";

#[cold]
fn masked_key(points: usize) -> PyErr {
    ErrorKind::Exchange.error(format!(
        "{KEY}: expected positions or a mask without masked points, got {points} masked; pass mask.filled(False), or \
         positions.compressed()"
    ))
}

/// Rejects arrays in lists and tuples that have more than their elements.
fn refuse_inside(value: &Bound<'_, PyAny>, depth: usize, argument: &str) -> PyResult<()> {
    let search = |entry: Bound<'_, PyAny>| {
        match masked_points(&entry)? {
            0 => refuse_more(&entry, argument, "tensor")?,
            points if argument == KEY => return Err(masked_key(points)),
            points => return Err(masked(&entry, points, &format!("{argument}: expected arrays"), "array")),
        }
        refuse_inside(&entry, depth - 1, argument)
    };
    if depth == 0 {
        Ok(())
    } else if let Ok(list) = value.cast::<PyList>() {
        list.iter().try_for_each(search)
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        tuple.iter().try_for_each(search)
    } else {
        Ok(())
    }
}

/// Rejects a PyTorch tensor that is more than its elements, or has none. The fix in the message calls it `part`.
fn refuse_more(value: &Bound<'_, PyAny>, argument: &str, part: &str) -> PyResult<()> {
    if !is_torch(value)? {
        return Ok(());
    }
    let mut descriptor = Descriptor::BLANK;
    let looked = refuse_grad_of_torch(value)
        .and_then(|()| describe(value, &Request::new(RequestAccess::Read), &mut Imported::new(&mut descriptor)));
    looked.map_err(|error| ErrorKind::of_part(value.py(), argument, part, error))
}
