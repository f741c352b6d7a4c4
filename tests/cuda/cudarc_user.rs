//! Helpers for tests that use `cudarc` themselves.

use std::sync::Arc;

use dlfield::cuda::{Stream, with_stream};
use dlfield::cudarc::driver::{CudaContext, CudaGraph, CudaSlice, CudaStream, DeviceRepr, sys};
use dlfield::{DType, Spec, Tensor};

use crate::double::{OnCuda, on_cuda};
use crate::driver::{GPU, write_on};

/// As [`on_cuda`], for tests that use `cudarc`.
pub fn on_cuda_with_cudarc() -> Option<OnCuda> {
    let mut cuda = on_cuda()?;
    cuda.uses_cudarc = true;
    Some(cuda)
}

/// Creates a stream of its own. Without disabled tracking, captures would wait for events of slices from outside.
pub fn new_stream(ordinal: usize) -> Arc<CudaStream> {
    let context = CudaContext::new(ordinal).unwrap();
    // SAFETY: the tests order their work themselves.
    unsafe { context.disable_event_tracking() };
    context.new_stream().unwrap()
}

/// Returns the same stream in this crate's type.
pub fn of(stream: &CudaStream) -> Stream<'_> {
    stream.into()
}

pub fn zeros_in(stream: Stream<'_>, count: i64) -> Tensor {
    with_stream(GPU, stream, || Tensor::zeros(&Spec::new(&[count], DType::F64).with_device(GPU))).unwrap()
}

/// Writes to a field of doubles on a stream, as a kernel would.
pub fn write_in(stream: &CudaStream, field: &Tensor) {
    stream.context().bind_to_thread().unwrap();
    write_on(stream.cu_stream(), field);
}

/// Begins the capture of a stream, which forbids this thread alone what would disturb it.
pub fn record(stream: &CudaStream) {
    stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
}

/// Ends the capture; returns its graph, if anything was captured.
pub fn recorded(stream: &Arc<CudaStream>) -> Option<CudaGraph> {
    let flag = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    stream.end_capture(flag).unwrap()
}

/// Ends the capture, and runs its graph.
pub fn run_recorded(stream: &Arc<CudaStream>) {
    let graph = recorded(stream).unwrap();
    graph.launch().unwrap();
    stream.synchronize().unwrap();
}

/// Returns the elements of a slice. The driver may return before the copy is done.
pub fn read<T: DeviceRepr + Clone + Default>(stream: &Arc<CudaStream>, slice: &CudaSlice<T>) -> Vec<T> {
    let elements = stream.clone_dtoh(slice).unwrap();
    stream.synchronize().unwrap();
    elements
}
