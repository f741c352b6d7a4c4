//! Checks that a device may use memory, and waits for the earlier work of devices. Called before elements are read or written.

use super::Tensor;
use crate::device::Device;
use crate::error::Result;
use crate::memory::Executor;
use crate::memory::cuda::{Stream, current_stream, error_if_capturing, is_available, synchronize};

impl Tensor {
    /// Returns whether the memory is the host's, no device uses it, and it stays where it is.
    pub(crate) fn is_of_host_alone(&self) -> bool {
        let owner = &self.owner;
        self.descriptor.device() == Device::CPU && owner.stream_uses().is_none() && owner.movable().is_none()
    }

    /// Returns whether the memory is pinned or managed, so that the host and devices reach it.
    pub(super) fn is_of_host_and_devices(&self) -> bool {
        [Device::CUDA_HOST, Device::CUDA_MANAGED].contains(&self.descriptor.device())
    }

    /// Orders the next work of an executor on the memory after the work of the streams that use it.
    pub(crate) fn before_use_by(&self, executor: Executor) -> Result<()> {
        let uses = self.owner.stream_uses();
        if uses.is_none() && !self.is_of_host_and_devices() || self.descriptor.size() == 0 {
            return Ok(());
        }
        let device = match executor {
            Executor::Host => self.descriptor.device(),
            Executor::Device(device) => device,
        };
        let current = current_stream(device);
        let stream = current.stream();
        // The legacy stream would wait for blocking ones, which fails while one of them is captured.
        if stream == Stream::LEGACY && executor != Executor::Host {
            error_if_capturing(device, stream)?;
        }
        match (executor, uses) {
            (Executor::Host, Some(uses)) => Ok(uses.finish()?),
            (Executor::Device(_), Some(uses)) => uses.record(current.used()),
            // Without a driver no device uses the memory.
            (Executor::Host, None) if !is_available() => Ok(()),
            (Executor::Host, None) => synchronize(device, stream),
            // `after_use_by` will have to wait, which graph capture forbids.
            (Executor::Device(_), None) => Ok(error_if_capturing(device, stream)?),
        }
    }
}
