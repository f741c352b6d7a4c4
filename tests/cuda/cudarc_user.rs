//! What a program that uses `cudarc` itself does.

use std::sync::Arc;

use dlfield::cuda::{self, Stream};
use dlfield::cudarc::driver::{CudaContext, CudaGraph, CudaSlice, CudaStream, DeviceRepr, sys};
use dlfield::{DType, Device, Spec, Tensor};

use crate::double::on_cuda;

pub const GPU: Device = Device::cuda(0);

/// As [`on_cuda`], for tests that use `cudarc`, which leaves its context current.
pub fn on_cuda_with_cudarc(test: impl FnOnce()) {
    on_cuda(|| {
        test();
        if cuda::is_available() {
            // SAFETY: nothing is current after that, as before.
            unsafe { sys::cuCtxSetCurrent(std::ptr::null_mut()) }.result().unwrap();
        }
    });
}

/// A stream of its own. Events of slices would be waited for in recordings that know nothing of them.
pub fn new_stream(ordinal: usize) -> Arc<CudaStream> {
    let context = CudaContext::new(ordinal).unwrap();
    // SAFETY: the tests order their work themselves.
    unsafe { context.disable_event_tracking() };
    context.new_stream().unwrap()
}

/// The same stream as this crate takes it.
pub fn of(stream: &CudaStream) -> Stream {
    Stream::new(GPU, stream.cu_stream().addr() as u64).unwrap()
}

/// Zeros that were asked for in a stream.
pub fn zeros_in(stream: Stream, count: i64) -> Tensor {
    cuda::with_stream(GPU, stream, || Tensor::zeros(&Spec::new(&[count], DType::F64).device(GPU))).unwrap()
}

/// Writes to a field of doubles in a stream, as a kernel would.
pub fn write_in(stream: &CudaStream, field: &Tensor) {
    let descriptor = field.descriptor();
    let (address, bytes) = (descriptor.ptr().addr() as u64, usize::try_from(descriptor.nbytes()).unwrap());
    stream.context().bind_to_thread().unwrap();
    // SAFETY: the field's own bytes.
    unsafe { sys::cuMemsetD8Async(address, 1, bytes, stream.cu_stream()) }.result().unwrap();
}

/// Begins to record what the stream is asked for.
pub fn record(stream: &CudaStream, mode: sys::CUstreamCaptureMode) {
    stream.begin_capture(mode).unwrap();
}

/// What was recorded.
pub fn recorded(stream: &Arc<CudaStream>) -> CudaGraph {
    let flag = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    stream.end_capture(flag).unwrap().unwrap()
}

/// What is in a slice. The driver may return before it is.
pub fn read<T: DeviceRepr + Clone + Default>(stream: &Arc<CudaStream>, slice: &CudaSlice<T>) -> Vec<T> {
    let elements = stream.clone_dtoh(slice).unwrap();
    stream.synchronize().unwrap();
    elements
}
