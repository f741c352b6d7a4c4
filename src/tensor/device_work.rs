//! Device work on a tensor's memory.

use super::Tensor;
use crate::error::Result;
use crate::memory::cuda::{Stream, current_stream, wait};

impl Tensor {
    /// Makes the next work of the stream `to`, a consumer's, wait for the earlier work of the thread's current stream and of
    /// all streams that are recorded for the memory: that of its allocation, and those of copies, fills and views for kernels. The
    /// host waits only if `to` is captured into a graph, for work outside it. On host memory there is no work to order.
    ///
    /// The consumer's own work with the memory has to be done, or be ordered before the work of the legacy default stream, when
    /// it releases the memory.
    ///
    /// DLPack requires this of a producer that is given the consumer's stream; call it before [`Tensor::to_versioned`] then.
    ///
    /// # Errors
    /// [`DeviceError`](crate::DeviceError) if graph capture forbids the order.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor, cuda::Stream};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// field.make_stream_wait(Stream::LEGACY).unwrap();
    /// let managed = field.to_versioned(false).unwrap();
    /// ```
    pub fn make_stream_wait(&self, to: Stream<'_>) -> Result<()> {
        let device = self.descriptor.device();
        match self.owner.stream_uses() {
            Some(uses) => uses.make_stream_wait(device, to, None),
            None if device.is_of_cuda() => wait((device, to), (device, current_stream(device).stream())),
            None => Ok(()),
        }
    }
}
