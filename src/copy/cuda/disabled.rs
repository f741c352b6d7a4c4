//! The twin of `enabled` in builds without the feature `cuda`: the same signatures, but CUDA is never available.

#![allow(unsafe_code, reason = "the signatures are those of the twin")]

use crate::copy::convert::Conversion;
use crate::copy::plan::Plan;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::Result;
use crate::memory::cuda::synchronize;

/// # Safety
/// - None: no memory is accessed.
pub(in crate::copy) unsafe fn copy(to: &Descriptor, from: &Descriptor, _: Conversion) -> Result<()> {
    let device = if to.device().is_cuda() { to.device() } else { from.device() };
    no_cuda(device)
}

/// # Safety
/// - None: no memory is accessed.
pub(in crate::copy) unsafe fn fill(device: Device, _: &Plan, _: *mut u8, _: &[u8]) -> Result<()> {
    no_cuda(device)
}

fn no_cuda(device: Device) -> Result<()> {
    synchronize(device, crate::memory::cuda::Stream::LEGACY)
}
