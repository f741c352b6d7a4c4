//! Work of devices on a tensor's memory.

use super::Tensor;
use crate::error::Result;
use crate::memory::cuda::{Stream, current_stream, wait};

impl Tensor {
    /// Hands the memory to what another library does in a stream: that comes after what was asked of the thread's current
    /// stream so far, and the memory is not freed before it is done. Nothing is waited for here. On the host there is no
    /// work to be ordered.
    ///
    /// This is what DLPack wants of a producer that is told the consumer's stream, and has to be called before
    /// [`Tensor::to_versioned`] where there is one.
    ///
    /// # Errors
    /// [`DeviceError::Driver`](crate::DeviceError::Driver), for a stream that is gone, say.
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
