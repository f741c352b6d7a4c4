//! Questions to the driver about an address.

#![allow(unsafe_code, reason = "functions of the driver")]

use cudarc::driver::sys;

use super::context::enter;
use super::driver::check;
use crate::device::Device;
use crate::error::Result;

/// Returns the device of the memory at an address, according to the driver; `None` for memory that it does not know.
///
/// # Errors
/// [`DeviceError`](crate::DeviceError).
pub(crate) fn device_of_pointer(address: usize) -> Result<Option<Device>> {
    let any = Device::cuda(0);
    let _entered = enter(any)?;
    let (mut kind, mut managed, mut ordinal) = (0u32, 0u32, 0i32);
    let mut attributes = [
        sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
        sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    ];
    let mut places = [(&raw mut kind).cast(), (&raw mut managed).cast(), (&raw mut ordinal).cast()];
    // SAFETY: one live variable per attribute, of its type. For unknown memory its type stays 0.
    let result =
        unsafe { sys::cuPointerGetAttributes(3, attributes.as_mut_ptr(), places.as_mut_ptr(), address as u64) };
    check(any, "cuPointerGetAttributes", result)?;
    Ok(match (kind, managed) {
        (0, _) => None,
        (_, 1..) => Some(Device::CUDA_MANAGED),
        (kind, _) if kind == sys::CUmemorytype::CU_MEMORYTYPE_HOST as u32 => Some(Device::CUDA_HOST),
        _ => Some(Device::cuda(u16::try_from(ordinal).unwrap_or(0))),
    })
}
