//! Contiguous memory of objects, of any elements, and owners of memory that is given by its address.

use pyo3::prelude::*;

use crate::cuda;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{DeviceError, DeviceErrorKind, LayoutError, Result};
use crate::layout::is_compact;
use crate::memory::cuda::{StreamUses, current_stream, device_of_pointer};
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::new_error::ArgumentError;
use crate::python::ffi::numpy_api::is_array;
use crate::python::import::{Held, Request, RequestAccess, is_exporter, share};
use crate::python::import::{elsewhere, not_owned};
use crate::python::own_classes;
use crate::python::py_owner;
use crate::tensor::{Owner, Tensor};

/// Contiguous memory of an object: bytes, for as long as the owner lives.
pub struct Memory {
    pub start: *mut u8,
    pub bytes: usize,
    pub device: Device,
    pub readonly: bool,
    pub owner: Owner,
}

/// Returns the memory of an object with the buffer protocol, regardless of the elements, or of an array of another protocol. The
/// errors name the argument.
pub fn memory_of(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<Memory> {
    // A held buffer of a NumPy array does not stop `resize(refcheck=False)`; owning the array does.
    let is_our_own = own_classes::tensor(object).is_some();
    if !is_our_own && !is_array(object) && is_exporter(object) {
        return of_exporter(argument, object);
    }
    let mut tensor = Tensor::BLANK;
    let mut request = Request::new(RequestAccess::Write).sharing();
    request.copy = Some(false);
    if share(object, &request, &mut tensor)?.is_none() {
        let expected = "an array, or an object with the buffer protocol";
        return Err(ErrorKind::NotAnArray.error(ArgumentError::new(argument, &expected, &object.get_type())));
    }
    let field = tensor.descriptor();
    if !is_compact(field.shape(), field.strides()) {
        return Err(gaps(argument));
    }
    let (start, device, readonly) = (field.ptr(), field.device(), field.is_readonly());
    let bytes = usize::try_from(field.nbytes()).unwrap_or(0);
    Ok(Memory { start, bytes, device, readonly, owner: tensor.into_parts().1 })
}

/// The memory of an object with the buffer protocol.
fn of_exporter(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<Memory> {
    let held = Held::get(object)?;
    if held.is_pointer() {
        let got = format_args!("{}, whose buffer is the pointer itself", object.get_type());
        let fix = "pass (ctypes.c_char * size).from_address(address), or use from_pointer";
        let error = ArgumentError::new(argument, &"the memory that the pointer points to", &got).with_fix(&fix);
        return Err(ErrorKind::NotAnArray.error(error));
    }
    if !held.is_contiguous(b'A') {
        return Err(gaps(argument));
    }
    let (start, bytes, readonly) = held.bytes();
    let bytes = usize::try_from(bytes).unwrap_or(0);
    let owner = held.into_owner(object.py())?;
    Ok(Memory { start, bytes, device: Device::CPU, readonly, owner })
}

#[cold]
fn gaps(argument: &str) -> PyErr {
    LayoutError::new(argument, &"contiguous memory", &"elements with gaps, or in reverse").into()
}

/// Returns an owner of memory that is given by its address, which keeps an object if there is one.
///
/// # Errors
/// [`DeviceError`](crate::DeviceError) for a device whose memory cannot be owned, or that has no driver here.
pub fn owner_of_pointer(object: Option<&Bound<'_, PyAny>>, device: Device) -> Result<Owner> {
    if !device.is_ownable() {
        return Err(not_owned(device).into());
    }
    let uses = if device.is_of_cuda() {
        // The function that frees the memory need not do so in the order of a stream.
        Some(StreamUses::of_import(device, current_stream(device).used(), false)?)
    } else {
        None
    };
    // Not `Owner::NONE`: that cannot be marked as exported.
    let owner = object.map_or_else(|| Owner::foreign(()), py_owner::owner);
    Ok(match uses {
        Some(uses) => owner.freed_after(uses),
        None => owner,
    })
}

/// Rejects memory that the requested device cannot access.
pub fn check_device(wanted: Option<Device>, found: Device) -> PyResult<()> {
    match wanted {
        Some(wanted) if !wanted.can_access(found) => Err(elsewhere(found, wanted).into()),
        _ => Ok(()),
    }
}

/// Rejects memory that, according to the driver, is on another device than the expected one.
#[cold]
pub fn check_place(wanted: Device, descriptor: &Descriptor) -> PyResult<()> {
    if descriptor.size() == 0 || !cuda::is_available() {
        return Ok(());
    }
    let address = descriptor.ptr().addr();
    match device_of_pointer(address)? {
        None => {
            let got = format_args!("{address:#x}, where no CUDA memory is according to the driver");
            let expected = format_args!("memory that CUDA allocated, as {wanted} is requested");
            Err(DeviceError::new("device", &expected, &got).with_kind(DeviceErrorKind::Mismatch).into())
        }
        Some(found) if wanted.can_access(found) => Ok(()),
        Some(found) => Err(elsewhere(found, wanted).into()),
    }
}
