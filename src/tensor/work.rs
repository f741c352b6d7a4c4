//! Device work on a tensor's memory.

use super::Tensor;
use crate::error::Result;
use crate::memory::cuda::{Stream, current_stream, wait};

impl Tensor {
    /// Makes the next work of the stream `to`, a consumer's, wait for the earlier work of the thread's current stream and of
    /// all streams that are recorded for the memory: that of its allocation, and those of copies, fills, views for kernels and
    /// exports. Keeps the memory until the work of `to` is done. The host waits only for streams that were destroyed, once
    /// (with drivers before CUDA 12.0 each time), and for those outside a graph into which `to` is captured. On host memory
    /// there is no work to order.
    ///
    /// DLPack requires this of a producer that is given the consumer's stream; call it before [`Tensor::to_versioned`] then.
    ///
    /// # Errors
    /// [`DeviceError::Driver`](crate::DeviceError::Driver), for example for a destroyed stream,
    /// [`DeviceError::Capturing`](crate::DeviceError::Capturing) if graph capture forbids the order, for example after the work
    /// of a destroyed stream.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor, cuda::Stream};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// field.make_stream_wait(Stream::LEGACY).unwrap();
    /// let managed = field.to_versioned(false).unwrap();
    /// ```
    pub fn make_stream_wait(&self, to: Stream) -> Result<()> {
        let device = self.descriptor.device();
        let from = current_stream(device);
        match self.owner.stream_uses() {
            Some(uses) => uses.make_stream_wait(device, from, to),
            None if device.is_of_cuda() => wait((device, to), (device, from)),
            None => Ok(()),
        }
    }
}
