//! Direct calls of the driver by the tests.

use cudarc::driver::sys::{self, CUresult};
use dlfield::cuda::{Stream, device_count, with_stream};
use dlfield::{Device, DeviceErrorKind, Error, Result, Tensor};

pub const GPU: Device = Device::cuda(0);
/// Memory that the host and all devices reach.
pub const SHARED: [Device; 2] = [Device::CUDA_HOST, Device::CUDA_MANAGED];
/// Every kind of memory that the driver allocates.
pub const PLACES: [Device; 3] = [GPU, Device::CUDA_HOST, Device::CUDA_MANAGED];

pub fn last_gpu() -> Device {
    Device::cuda(u16::from(device_count() > 1))
}

/// Returns the first two devices, or the only one.
pub fn gpus() -> Vec<Device> {
    (0..device_count().min(2)).map(|number| Device::cuda(u16::try_from(number).unwrap())).collect()
}

/// Returns whether a call was refused because it would disturb a capture.
pub fn is_capturing<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Device(error)) if error.kind() == DeviceErrorKind::Capturing)
}

/// Panics unless a call succeeded.
pub fn ok(result: CUresult) {
    assert_eq!(result, CUresult::CUDA_SUCCESS);
}

/// Returns the calling thread's current context.
pub fn current() -> usize {
    let mut context = std::ptr::null_mut();
    // SAFETY: the driver writes the handle to a live variable.
    ok(unsafe { sys::cuCtxGetCurrent(&raw mut context) });
    context.addr()
}

/// Runs `work` with the primary context of a device current.
pub fn within<R>(device: Device, work: impl FnOnce() -> R) -> R {
    let (mut number, mut context) = (0, std::ptr::null_mut());
    // The context is never released, as its objects would be destroyed with it.
    // SAFETY: the driver writes to live variables; what is pushed is popped.
    unsafe {
        ok(sys::cuDeviceGet(&raw mut number, device.id()));
        ok(sys::cuDevicePrimaryCtxRetain(&raw mut context, number));
        ok(sys::cuCtxPushCurrent_v2(context));
        let result = work();
        ok(sys::cuCtxPopCurrent_v2(&raw mut context));
        result
    }
}

pub fn finish_everything() {
    for number in 0..device_count() {
        let device = Device::cuda(u16::try_from(number).unwrap());
        // SAFETY: the function takes no arguments.
        within(device, || ok(unsafe { sys::cuCtxSynchronize() }));
    }
}

/// Writes to all bytes of a field on a stream of the current context.
pub fn write_on(stream: sys::CUstream, field: &Tensor) {
    let descriptor = field.descriptor();
    let (address, bytes) = (descriptor.ptr().addr() as u64, usize::try_from(descriptor.nbytes()).unwrap());
    // SAFETY: the field's own bytes.
    ok(unsafe { sys::cuMemsetD8Async(address, 1, bytes, stream) });
}

/// A stream that does not synchronize with the legacy stream, until it is dropped.
pub struct OwnStream {
    pub device: Device,
    pub stream: Stream<'static>,
}

impl OwnStream {
    pub fn new(device: Device) -> OwnStream {
        OwnStream::with_flags(device, sys::CUstream_flags::CU_STREAM_NON_BLOCKING)
    }

    /// Creates a stream that synchronizes with the legacy stream.
    pub fn blocking(device: Device) -> OwnStream {
        OwnStream::with_flags(device, sys::CUstream_flags::CU_STREAM_DEFAULT)
    }

    fn with_flags(device: Device, flags: sys::CUstream_flags) -> OwnStream {
        let mut made = std::ptr::null_mut();
        // SAFETY: the driver writes the handle to a live variable.
        within(device, || ok(unsafe { sys::cuStreamCreate(&raw mut made, flags as u32) }));
        // SAFETY: the tests do not use it after this owner.
        OwnStream { device, stream: unsafe { Stream::borrow_raw(device, made.addr() as u64) }.unwrap() }
    }

    pub fn raw(&self) -> sys::CUstream {
        std::ptr::without_provenance_mut(usize::try_from(self.stream.handle()).unwrap())
    }

    /// Does work with this stream as the current one.
    pub fn with<R>(&self, work: impl FnOnce() -> R) -> R {
        with_stream(self.device, self.stream, work)
    }

    /// Writes to all bytes of a field, as another library would: the stream is not recorded for it.
    pub fn write(&self, field: &Tensor) {
        within(self.device, || write_on(self.raw(), field));
    }

    /// Captures what `work` submits to the stream; returns the graph, ready to launch.
    pub fn record(&self, work: impl FnOnce()) -> Graph {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        let (mut graph, mut run) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the stream is alive; the driver writes the handles to live variables.
        within(self.device, || unsafe {
            ok(sys::cuStreamBeginCapture_v2(self.raw(), mode));
            work();
            ok(sys::cuStreamEndCapture(self.raw(), &raw mut graph));
            ok(sys::cuGraphInstantiateWithFlags(&raw mut run, graph, 0));
            ok(sys::cuGraphDestroy(graph));
        });
        Graph(run)
    }

    pub fn launch(&self, graph: &Graph) {
        // SAFETY: both are alive.
        within(self.device, || ok(unsafe { sys::cuGraphLaunch(graph.0, self.raw()) }));
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        // SAFETY: no code uses it from here on; the driver finishes its work.
        within(self.device, || ok(unsafe { sys::cuStreamDestroy_v2(self.raw()) }));
    }
}

/// A captured graph.
pub struct Graph(sys::CUgraphExec);

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: no code uses it from here on.
        ok(unsafe { sys::cuGraphExecDestroy(self.0) });
    }
}
