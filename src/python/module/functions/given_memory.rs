//! The keyword `buffer` of the allocation functions: a field in memory that is given.

#![allow(unsafe_code, reason = "the memory of another object is written")]

use pyo3::prelude::*;

use crate::copy::can_cast;
use crate::descriptor::read_only;
use crate::device::Device;
use crate::error::DeviceError;
use crate::layout::Spec;
use crate::memory::Contents;
use crate::python::interrupt;
use crate::python::module::export;
use crate::python::module::functions::call::Call;
use crate::python::module::values::memory_of;
use crate::tensor::Tensor;

/// Lays a field into a buffer.
#[cold]
pub(super) fn place(
    call: &Call<'_, '_>,
    buffer: &Bound<'_, PyAny>,
    spec: &Spec,
    contents: Contents,
    tensor: &mut Tensor,
) -> PyResult<()> {
    let memory = memory_of("buffer", buffer)?;
    let (found, wanted) = (memory.device, spec.device());
    if found != wanted {
        let error = DeviceError::new("buffer", &format_args!("memory on {wanted}, as the field is"), &found);
        return Err(error.with_fix(&format_args!("pass device='{found}'")).into());
    }
    if memory.readonly {
        return Err(read_only("buffer", "pass memory that may be written").into());
    }
    let (start, bytes, owner) = (memory.start.expose_provenance(), memory.bytes, memory.owner);
    let start = || std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the object exports these bytes, on this device and writable, and the owner holds its export. Races with other
    // threads on the bytes are the program's responsibility, as with NumPy.
    Ok(call.detached(spec, || unsafe { tensor.place_in(spec, start(), bytes, owner, contents) })?)
}

/// Lays a field into a buffer and sets all elements.
#[cold]
pub(super) fn fill(
    call: &Call<'_, '_>,
    buffer: &Bound<'_, PyAny>,
    spec: &Spec,
    element: &[u8],
    tensor: &mut Tensor,
) -> PyResult<()> {
    place(call, buffer, spec, Contents::Undefined, tensor)?;
    // SAFETY: the field is in a buffer that is exported as writable and kept by the owner.
    Ok(call.detached(spec, || unsafe { tensor.fill_bytes(element) })?)
}

/// Lays a field into a buffer and copies `data` there, which may be in the same buffer, cast by NumPy's "same_kind" rule.
#[cold]
pub(super) fn copy(
    call: &Call<'_, '_>,
    buffer: &Bound<'_, PyAny>,
    spec: &Spec,
    data: &Tensor,
    tensor: &mut Tensor,
) -> PyResult<()> {
    let py = call.py;
    place(call, buffer, spec, Contents::Undefined, tensor)?;
    let to = &*tensor;
    // SAFETY: the field is in a buffer that is exported as writable and kept by the owner; the copy may overlap.
    let assign = |from: &Tensor| interrupt::detach(py, || unsafe { to.assign(from) });
    if can_cast(data.descriptor().dtype(), spec.dtype()) {
        return Ok(assign(data)?);
    }
    // NumPy can cast more element types.
    let data = export::numpy::for_cast(py, data, (spec.dtype(), spec.device()), "data")?;
    let cast = Tensor::empty(&spec.clone().with_device(Device::CPU))?;
    export::numpy::assign(&export::numpy::view(py, &cast)?, export::numpy::view(py, &data)?.as_any(), "data")?;
    Ok(assign(&cast)?)
}
