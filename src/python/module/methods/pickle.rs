//! Pickling: the bytes of a field, out of band if the protocol allows it, and how its elements lie in them.

#![allow(unsafe_code, reason = "bytes are reached through raw pointers")]

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::device::Device;
use crate::dtype::DType;
use crate::python::convert::metadata_state::MetadataState;
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::values;
use crate::python::{copies, interrupt, sync};
use crate::tensor::{Placement, Tensor};

/// Everything but the bytes.
#[derive(FromPyObject, IntoPyObject)]
struct State(
    /// The number of bytes, and those before the element at index 0.
    (i64, i64),
    /// Shape and strides, in elements.
    (Vec<i64>, Vec<i64>),
    String,
    /// What was not stated is `None`, so that the defaults apply again.
    MetadataState,
    /// The device, and whether the field is read-only.
    (String, bool),
    /// Whether loading may use the memory of the bytes, and whether all of it is this field's. Pickles without buffers are
    /// copied: they have `bytes` of a writable field.
    (bool, bool),
);

/// The state of pickles of dlfield before 0.1: shape, dtype, metadata, device, readonly. The bytes are those of an allocation.
type OldState = (Vec<i64>, String, MetadataState, String, bool);

/// `__reduce_ex__`: how to rebuild the tensor.
pub(crate) fn reduce<'py>(py: Python<'py>, tensor: &Tensor, protocol: i64) -> PyResult<Bound<'py, PyTuple>> {
    // The bytes are read on the host.
    let (device, readonly) = (tensor.descriptor().device(), tensor.descriptor().is_readonly());
    let host = if device == Device::CPU { None } else { Some(copies::to(py, tensor, Device::CPU, None)?) };
    let tensor = host.as_ref().unwrap_or(tensor);
    // SAFETY: a tensor on the host, whose device work was waited for. Padding is nobody's.
    let own = |tensor: &Tensor| interrupt::detach(py, || unsafe { tensor.own_bytes() });
    sync::synchronize_host(py, tensor)?;
    let found = own(tensor)?;
    // Between the elements may be those of other fields: then a copy goes.
    let copy = if found.is_none() { Some(copies::copy_like(py, tensor, "pickle")?) } else { None };
    let tensor = copy.as_ref().unwrap_or(tensor);
    let found = found.map_or_else(|| own(tensor), |found| Ok(Some(found)))?;
    let (bytes, offset) = found.ok_or_else(|| wrong("a copy with gaps"))?;
    let descriptor = tensor.descriptor();
    let state = State(
        (bytes.descriptor().size(), offset),
        (descriptor.shape().to_vec(), descriptor.strides().to_vec()),
        descriptor.dtype().name().to_owned(),
        MetadataState::with_layout(tensor),
        (device.to_string(), readonly),
        (protocol >= 5, true),
    );
    let bytes = PyTensor::create(py, bytes)?;
    let data = if protocol >= 5 {
        py.import(intern!(py, "pickle"))?.getattr(intern!(py, "PickleBuffer"))?.call1((bytes,))?
    } else {
        py.get_type::<PyBytes>().call1((bytes,))?
    };
    let rebuild = py.import(intern!(py, "dlfield._native"))?.getattr(intern!(py, "_rebuild"))?;
    PyTuple::new(py, [rebuild, PyTuple::new(py, [data, state.into_pyobject(py)?.into_any()])?.into_any()])
}

fn wrong(what: impl std::fmt::Display) -> PyErr {
    new_error::<PyValueError>(format!("pickle of a dlfield.Tensor: {what}"))
}

/// Rebuilds a pickled tensor, on the memory of the data if its address has the alignment of the field, else in a copy; on bytes
/// of a device, only on their memory. Takes states of both forms, from anywhere: each number is checked against the data.
#[pyfunction]
#[pyo3(name = "_rebuild")]
fn rebuild(py: Python<'_>, data: &Bound<'_, PyAny>, state: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let state = match state.len()? {
        5 => upgraded(state.extract().map_err(|error| of_part(py, error))?)?,
        _ => state.extract::<State>().map_err(|error| of_part(py, error))?,
    };
    let State((len, offset), (shape, strides), dtype, metadata, (device, readonly), (shared, is_whole)) = state;
    let dtype = DType::from_name(&dtype).ok_or_else(|| wrong(format!("unknown dtype {dtype}")))?;
    let device: Device = device.parse()?;
    let bytes = match data.cast_exact::<PyTensor>() {
        Ok(bytes) if bytes.get().0.descriptor().device() != Device::CPU => bytes.get().0.clone(),
        _ => values::held_bytes(data)?,
    };
    let found = bytes.descriptor().nbytes();
    if found != len {
        return Err(wrong(format!("expected {len} bytes of data, got {found}")));
    }
    let placement = Placement { offset, dtype, shape: &shape, strides: &strides, is_whole };
    let made = on_bytes(py, &bytes, placement, metadata, shared)?;
    let made = if device == made.descriptor().device() { made } else { copies::to(py, &made, device, None)? };
    Ok(PyTensor::new(if readonly { made.into_readonly() } else { made }))
}

/// The error of a part of the state. PyO3 makes it the cause of a `TypeError` that names the field, of [`State`] and of
/// [`MetadataState`] in it. A `TypeError` of a part gets the name of the pickle; all others are those of its own objects.
#[cold]
fn of_part(py: Python<'_>, mut error: PyErr) -> PyErr {
    for _ in 0..2 {
        let names_field =
            is_type_error(py, &error) && error.value(py).to_string().starts_with("failed to extract field ");
        match error.cause(py) {
            Some(cause) if names_field => error = cause,
            _ => break,
        }
    }
    if is_type_error(py, &error) { wrong(error.value(py)) } else { error }
}

fn is_type_error(py: Python<'_>, error: &PyErr) -> bool {
    error.get_type(py).is(py.get_type::<PyTypeError>())
}

/// Returns the field on the bytes themselves if it may be, and their address allows it, else on a copy on the host.
fn on_bytes(
    py: Python<'_>,
    bytes: &Tensor,
    placement: Placement<'_>,
    metadata: MetadataState,
    shared: bool,
) -> PyResult<Tensor> {
    let promised = metadata.checked(placement.shape, placement.strides)?;
    if shared {
        // SAFETY: the bytes were made for this field.
        let mut field = unsafe { Tensor::on_bytes(bytes, placement) }?;
        if promised.adopt(&mut field)? {
            return Ok(field);
        }
    }
    if bytes.descriptor().device() != Device::CPU {
        return Err(wrong("memory that is not aligned as it is said to be"));
    }
    // SAFETY: if others write to the bytes meanwhile, the copy has old or new ones.
    Ok(interrupt::detach(py, || unsafe { promised.copy(bytes, placement) })?)
}

/// The state of an allocation with this shape and metadata.
fn upgraded(state: OldState) -> PyResult<State> {
    let (shape, dtype, metadata, device, readonly) = state;
    let element = DType::from_name(&dtype).ok_or_else(|| wrong(format!("unknown dtype {dtype}")))?;
    let place = metadata.clone().spec(&shape, element)?.place()?;
    // Of the last row, only the elements were pickled.
    let span = crate::layout::span::byte_span(&shape, &place.strides, element.itemsize()).map_or(0, |(_, high)| high);
    let len = i64::try_from(span).map_err(|_| wrong("too many bytes"))?;
    Ok(State((len, 0), (shape, place.strides), dtype, metadata, (device, readonly), (false, true)))
}

/// Returns the bytes of a block for a copy of this field on its device, and the state of the copy there.
#[pyfunction]
#[pyo3(name = "_copy_state")]
fn copy_state(tensor: &Bound<'_, PyTensor>) -> PyResult<(usize, State)> {
    let tensor = &tensor.get().0;
    let place = tensor.spec().place()?;
    let sized = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
    let state = State(
        (sized(place.block_bytes), sized(place.first_byte)),
        (place.shape, place.strides),
        place.dtype.name().to_owned(),
        MetadataState::with_layout(tensor),
        (place.device.to_string(), false),
        (true, true),
    );
    Ok((place.block_bytes, state))
}

/// Returns the address of the block of which this field is a part, and the field's state there; `None` if it is not known.
#[pyfunction]
#[pyo3(name = "_block_state")]
fn block_state(tensor: &Bound<'_, PyTensor>) -> Option<(usize, State)> {
    let tensor = &tensor.get().0;
    let (start, bytes) = tensor.block_range()?;
    let descriptor = tensor.descriptor();
    let before = descriptor.ptr().addr().wrapping_sub(start.addr()).cast_signed();
    let state = State(
        (i64::try_from(bytes).unwrap_or(i64::MAX), i64::try_from(before).unwrap_or(0)),
        (descriptor.shape().to_vec(), descriptor.strides().to_vec()),
        descriptor.dtype().name().to_owned(),
        MetadataState::with_layout(tensor),
        (descriptor.device().to_string(), descriptor.is_readonly()),
        (true, tensor.is_whole()),
    );
    Some((start.addr(), state))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(rebuild, module)?)?;
    module.add_function(wrap_pyfunction!(copy_state, module)?)?;
    module.add_function(wrap_pyfunction!(block_state, module)?)
}
