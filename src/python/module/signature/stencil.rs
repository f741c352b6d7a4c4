//! The bound fields of a stencil call as `dlfield.gt4py` passes them on.

#![allow(unsafe_code, reason = "arrays are compared through NumPy's C API")]

use numpy::npyffi::NPY_ARRAY_WRITEABLE;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use smallvec::SmallVec;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::layout::Metadata;
use crate::python::convert::args;
use crate::python::ffi::numpy_api::is_exact;
use crate::python::import::{self, Found, Imported, Request, RequestAccess};
use crate::python::module::classes::descriptor::PyDescriptor;
use crate::python::module::classes::device::parse_device;
use crate::python::module::classes::freelist;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::numpy::array_on;
use crate::python::module::signature::PyBound;
use crate::python::own_classes;

/// Shapes, strides, origins and halos of all fields, without allocating for up to 10 fields of 3 dimensions.
type Key = SmallVec<[i64; 192]>;

/// Returns the array of each field by name, and bytes that are equal for fields of equal shapes, strides, origins and halos.
///
/// Arrays and tensors in host memory become writable NumPy arrays, also for a field that is only read: GT4Py's C++ requires
/// that. For other objects `export` or, if they are read-only, `export_readonly` is called with the description.
#[pyfunction]
#[pyo3(name = "_stencil_arguments")]
fn stencil_arguments<'py>(
    bound: &Bound<'py, PyBound>,
    export: &Bound<'py, PyAny>,
    export_readonly: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyBytes>)> {
    let py = bound.py();
    let (arrays, mut key) = (PyDict::new(py), Key::new());
    bound.get().for_each(py, |name, field| {
        let described = field.get();
        let (descriptor, object) = (described.descriptor(), described.object(py));
        add_to_key(&mut key, descriptor);
        let on_host = descriptor.device() == Device::CPU;
        let array = if on_host && is_described_by(&object, descriptor) {
            object
        } else if on_host && object.cast_exact::<PyTensor>().is_ok() {
            array_on(&object, descriptor, true)?
        } else {
            (if descriptor.is_readonly() { export_readonly } else { export }).call1((field,))?
        };
        arrays.set_item(name, array)
    })?;
    let number_size = size_of::<i64>();
    let key = PyBytes::new_with(py, key.len() * number_size, |bytes| {
        for (place, number) in bytes.chunks_exact_mut(number_size).zip(&key) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(())
    })?;
    Ok((arrays, key))
}

/// Whether this is a writable NumPy array with the same memory in the same order.
fn is_described_by(object: &Bound<'_, PyAny>, descriptor: &Descriptor) -> bool {
    if !is_exact(object) {
        return false;
    }
    let Ok(array) = object.cast::<PyUntypedArray>() else { return false };
    // SAFETY: a live array, whose fields are only read.
    let fields = unsafe { &(*array.as_array_ptr()).fields };
    let shape = array.shape().iter().zip(descriptor.shape());
    let strides = array.strides().iter().zip(descriptor.byte_strides());
    fields.data.cast() == descriptor.ptr()
        && fields.flags & NPY_ARRAY_WRITEABLE != 0
        && array.ndim() == descriptor.ndim()
        && shape.into_iter().all(|(found, wanted)| i64::try_from(*found) == Ok(*wanted))
        && strides.into_iter().all(|(found, wanted)| i64::try_from(*found) == Ok(wanted))
}

fn add_to_key(key: &mut Key, descriptor: &Descriptor) {
    let (origin, halo) = (descriptor.origin(), descriptor.halo());
    let parts = i64::from(origin.is_some()) + 2 * i64::from(halo.is_some());
    key.push(4 * i64::try_from(descriptor.ndim()).unwrap_or(i64::MAX) + parts);
    for numbers in [descriptor.shape(), descriptor.strides(), origin.unwrap_or_default()] {
        key.extend_from_slice(numbers);
    }
    for (lower, upper) in halo.unwrap_or_default() {
        key.extend_from_slice(&[*lower, *upper]);
    }
}

/// Describes an argument of a stencil call with other dims than its own. Unlike `describe` it runs no hooks, as the call does.
#[pyfunction]
#[pyo3(name = "_relabelled")]
fn relabelled<'py>(
    obj: &Bound<'py, PyAny>,
    dims: &Bound<'py, PyAny>,
    device: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDescriptor>> {
    let metadata = Metadata::default().with_dims(args::dims(dims)?);
    let mut request = Request::new(RequestAccess::Stencil);
    request.metadata = Some(&metadata);
    // The host's buffer is the default.
    request.device = Some(parse_device(device)?).filter(|device| *device != Device::CPU);
    freelist::create(obj.py(), |description: &mut PyDescriptor| {
        let mut imported = Imported::new(description.descriptor_mut());
        import::describe(obj, &request, &mut imported)?;
        let Found { owner, owner_needs_object, protocol, .. } = imported.found();
        description.set_owned(own_classes::object_to_keep(obj), owner, owner_needs_object, protocol);
        Ok(())
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(stencil_arguments, module)?)?;
    module.add_function(wrap_pyfunction!(relabelled, module)?)
}
