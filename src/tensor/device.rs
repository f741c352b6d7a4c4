//! Tensors on devices: the order of work, and transfers between devices.

#![allow(unsafe_code, reason = "what is copied is memory that others may have")]

use super::Tensor;
use crate::copy;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{ExchangeError, ExchangeErrorKind, Result};
use crate::memory::Executor;
use crate::memory::cuda::{current_stream, error_if_capturing, is_available, is_capturing, synchronize};
use std::fmt::Display;

/// Rejects temporary memory while the device's current stream is captured: it would be freed before the graph runs.
///
/// # Errors
/// [`DeviceError`].
pub(crate) fn refuse_brief_memory(device: Device) -> Result<()> {
    if device.is_of_cuda() && is_available() {
        error_if_capturing(device, current_stream(device).stream())?;
    }
    Ok(())
}

impl Tensor {
    /// Returns this field on a device: the same memory if the device reaches it, else a copy with the same layout, padding,
    /// alignment and labels. Pinned and managed memory belongs to the host (`cpu`) and to every CUDA device; the result states
    /// the device that was asked for.
    ///
    /// `copy` requires (`Some(true)`) or forbids (`Some(false)`) a copy. Copies are made in the order of the devices' current
    /// streams: see [`crate::cuda`].
    ///
    /// # Errors
    /// As for [`Tensor::copy_of`], and [`ExchangeError`] if a copy is needed but forbidden.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Device, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[3, 5], DType::F32)).unwrap();
    /// let same = field.to_device(Device::CPU, None).unwrap();
    /// assert_eq!(same.descriptor().ptr(), field.descriptor().ptr());
    /// assert!(field.to_device(Device::cuda(0), Some(false)).is_err());
    /// ```
    pub fn to_device(&self, device: Device, copy: Option<bool>) -> Result<Tensor> {
        match self.same_on(device, copy)? {
            Some(same) => Ok(same),
            None => Tensor::copy_of(&self.spec().with_device(device), self),
        }
    }

    /// As [`Tensor::to_device`], also for memory that was exported.
    ///
    /// # Errors
    /// As for [`Tensor::to_device`].
    ///
    /// # Safety
    /// - As for [`Tensor::copy_of_shared`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Device, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4], DType::F32)).unwrap();
    /// let lent = field.to_versioned(false).unwrap();
    /// // SAFETY: what was lent is here, and nothing is done with it.
    /// let copy = unsafe { field.to_device_shared(Device::CPU, Some(true)) }.unwrap();
    /// assert_ne!(copy.descriptor().ptr(), field.descriptor().ptr());
    /// drop(lent);
    /// ```
    pub unsafe fn to_device_shared(&self, device: Device, copy: Option<bool>) -> Result<Tensor> {
        match self.same_on(device, copy)? {
            Some(same) => Ok(same),
            // SAFETY: passed on from the caller.
            None => unsafe { Tensor::copy_of_shared(&self.spec().with_device(device), self) },
        }
    }

    /// Returns the same memory on a device; `None` if a copy is needed.
    fn same_on(&self, device: Device, copy: Option<bool>) -> Result<Option<Tensor>> {
        let here = self.descriptor.device();
        if copy == Some(true) {
            return Ok(None);
        }
        if device == here {
            return Ok(Some(self.clone()));
        }
        if self.order_use_on(device)? {
            let mut same = self.clone();
            same.descriptor = same.descriptor.on(device);
            return Ok(Some(same));
        }
        if copy == Some(false) {
            return Err(needs_copy(&format_args!("the memory is on {here}, which {device} cannot access")).into());
        }
        Ok(None)
    }

    /// Orders the next work of the host or a GPU on this memory after the earlier work on it. `false` if it cannot access the
    /// memory.
    pub(crate) fn order_use_on(&self, device: Device) -> Result<bool> {
        if !device.can_access(self.descriptor.device()) {
            return Ok(false);
        }
        if device == Device::CPU {
            self.before_use_by(Executor::Host)?;
        } else if device.is_cuda() {
            // No other code here checks that the device exists.
            is_capturing(device, current_stream(device).stream())?;
            self.before_use_by(Executor::Device(device))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Writes to this field from another by `write`, after the earlier work on both.
    ///
    /// # Safety
    /// - As for `write`.
    pub(super) unsafe fn written_from(
        &self,
        from: &Tensor,
        write: unsafe fn(&Descriptor, &Descriptor) -> Result<()>,
    ) -> Result<()> {
        let (writer, reader) = copy::executors(&self.descriptor, &from.descriptor)?;
        self.before_use_by(writer)?;
        from.before_use_by(reader)?;
        // SAFETY: passed on from the caller.
        let written = unsafe { write(&self.descriptor, &from.descriptor) };
        let left = self.after_use_by(writer).and(from.after_use_by(reader));
        written.and(left)
    }

    /// Waits for a device's work on memory whose owner records no streams: it may be freed with this tensor.
    fn after_use_by(&self, executor: Executor) -> Result<()> {
        match executor {
            Executor::Device(device)
                if self.owner.stream_uses().is_none()
                    && self.is_of_host_and_devices()
                    && self.descriptor.size() > 0 =>
            {
                synchronize(device, current_stream(device).stream())
            }
            _ => Ok(()),
        }
    }
}

/// Returns the error for a copy that was forbidden but is needed.
#[cold]
pub(crate) fn needs_copy(reason: &dyn Display) -> ExchangeError {
    let sentence = format_args!("False, but {reason}");
    ExchangeError::from_sentence("copy", &sentence).with_kind(ExchangeErrorKind::NeedsCopy)
}
