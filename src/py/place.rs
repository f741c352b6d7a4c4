//! Memory wanted somewhere else: called that of another device where that can reach it, or copied there.

use pyo3::prelude::*;

use super::copies;
use crate::cuda::{self, current_stream};
use crate::device::{Device, DeviceError};
use crate::error::Result;
use crate::protocol::ExchangeError;
use crate::tensor::Tensor;

/// The tensor on another device. Pinned and managed memory is the host's and every CUDA device's as it is, so that it is
/// copied only with `copy=True`; with `copy=False` nothing is.
pub(super) fn to(py: Python<'_>, tensor: &Tensor, wanted: Device, copy: Option<bool>) -> PyResult<Tensor> {
    let found = tensor.descriptor().device();
    if copy != Some(true) {
        if found == wanted {
            return Ok(tensor.clone());
        }
        if reaches(wanted, found) {
            if wanted == Device::CPU {
                await_work(py, tensor)?;
            } else {
                check_there(wanted)?;
            }
            return Ok(tensor.on_device(wanted));
        }
        if copy == Some(false) {
            let reason = format!("the memory is on {found} and wanted on {wanted}");
            return Err(ExchangeError::NeedsCopy { reason }.into());
        }
    }
    Ok(copies::of(py, &tensor.spec().device(wanted), tensor)?)
}

/// Whether a device reaches memory that is called another one's.
fn reaches(device: Device, found: Device) -> bool {
    (device == Device::CPU || device.is_cuda()) && (found == Device::CUDA_HOST || found == Device::CUDA_MANAGED)
}

/// Refuses a CUDA device that is not there.
fn check_there(device: Device) -> Result<()> {
    cuda::Stream::new(device, cuda::Stream::LEGACY.handle()).map(|_| ())
}

/// Waits for the work of a device on memory that the host is about to read or write.
///
/// Who calls this has seen that it is not the host's own: for that there is nothing to do, in no time.
pub(super) fn await_work(py: Python<'_>, tensor: &Tensor) -> PyResult<()> {
    let device = tensor.descriptor().device();
    let Some(order) = tensor.owner().order() else { return Ok(()) };
    let stream = current_stream(device);
    let done = py.detach(|| order.join(device, stream).map(|()| order.settle()))?;
    if done { Ok(()) } else { Err(DeviceError::Capturing { device, stream: stream.handle() }.into()) }
}
