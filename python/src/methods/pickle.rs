//! Pickling: the bytes of a field, out of band if the protocol allows it, and its metadata.

#![allow(unsafe_code, reason = "bytes are moved through raw pointers")]

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::classes::tensor::PyTensor;
use dlfield::descriptor::Descriptor;
use dlfield::device::Device;
use dlfield::dtype::DType;
use dlfield::error::Result;
use dlfield::layout::is_contiguous;
use dlfield::native::{MetadataState, sync};
use dlfield::tensor::Tensor;

/// Everything but the bytes: shape, dtype, metadata, device, readonly. Metadata that was not stated is `None`, so that the
/// defaults apply again.
type State = (Vec<i64>, String, MetadataState, String, bool);

/// `__reduce_ex__`: how to rebuild the tensor.
pub(crate) fn reduce<'py>(py: Python<'py>, tensor: &Tensor, protocol: i64) -> PyResult<Bound<'py, PyTuple>> {
    // The bytes are read on the host.
    let (device, readonly) = (tensor.descriptor().device(), tensor.descriptor().is_readonly());
    let host = if device == Device::CPU { None } else { Some(sync::to(py, tensor, Device::CPU, None)?) };
    let tensor = host.as_ref().unwrap_or(tensor);
    // Padding may hold elements of other arrays, or whatever was in the memory: it is pickled as zeros.
    let packed = if is_packed(tensor) { tensor.clone() } else { sync::copy_zero_padded(py, tensor)? };
    let bytes = PyTensor::create(py, bytes_of(&packed)?)?;
    let data = if protocol >= 5 {
        py.import(intern!(py, "pickle"))?.getattr(intern!(py, "PickleBuffer"))?.call1((bytes,))?
    } else {
        py.get_type::<PyBytes>().call1((bytes,))?
    };
    let descriptor = tensor.descriptor();
    let state: State = (
        descriptor.shape().to_vec(),
        descriptor.dtype().name().to_owned(),
        MetadataState::with_layout(tensor),
        device.to_string(),
        readonly,
    );
    let rebuild = py.import(intern!(py, "dlfield._native"))?.getattr(intern!(py, "_rebuild"))?;
    PyTuple::new(py, [rebuild, PyTuple::new(py, [data, state.into_pyobject(py)?.into_any()])?.into_any()])
}

/// Whether the elements fill the memory between the first and the last, in the order of the layout.
fn is_packed(tensor: &Tensor) -> bool {
    let descriptor = tensor.descriptor();
    is_contiguous(descriptor.shape(), descriptor.strides(), tensor.layout().axes().into_iter())
}

/// The bytes from the first element to the last, as a field of bytes.
fn bytes_of(tensor: &Tensor) -> Result<Tensor> {
    let descriptor = tensor.descriptor();
    // A packed field has positive strides: element 0 has the lowest address.
    let len = descriptor.byte_span().map_or(0, |(_, high)| i64::try_from(high).unwrap_or(0));
    let (ptr, device, readonly) = (descriptor.ptr(), descriptor.device(), descriptor.is_readonly());
    let bytes = Descriptor::new(ptr, device, DType::U8, readonly, &[len], &[1])?;
    // SAFETY: the bytes lie between the first and the last element of one allocation, which the owner keeps alive.
    Ok(unsafe { Tensor::from_parts(bytes, tensor.owner().clone()) })
}

/// Rebuilds a pickled tensor: allocates it with the same layout and metadata, and copies the bytes.
#[pyfunction]
#[pyo3(name = "_rebuild")]
fn rebuild(py: Python<'_>, data: &Bound<'_, PyAny>, state: State) -> PyResult<PyTensor> {
    let (shape, dtype, metadata, device, readonly) = state;
    let wrong = |what: String| PyValueError::new_err(format!("pickle of a dlfield.Tensor: {what}"));
    let dtype = DType::from_name(&dtype).ok_or_else(|| wrong(format!("unknown dtype {dtype}")))?;
    let tensor = Tensor::zeros(&metadata.spec(&shape, dtype)?)?;
    let bytes = PyBuffer::<u8>::get(data)?;
    let wanted = tensor.descriptor().byte_span().map_or(0, |(_, high)| high);
    if !bytes.is_c_contiguous() || i128::try_from(bytes.len_bytes()).ok() != Some(wanted) {
        return Err(wrong(format!("{} bytes of data for a field of {wanted}", bytes.len_bytes())));
    }
    // SAFETY: the buffer is contiguous and as long as the field's span, and the field was just allocated.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.buf_ptr().cast::<u8>(), tensor.descriptor().ptr(), bytes.len_bytes());
    }
    let device = device.parse()?;
    let tensor = if device == Device::CPU { tensor } else { sync::to(py, &tensor, device, None)? };
    Ok(PyTensor::new(if readonly { tensor.into_readonly() } else { tensor }))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(rebuild, module)?)
}
