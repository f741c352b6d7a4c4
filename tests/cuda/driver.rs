//! The driver, called by the tests themselves.

use cudarc::driver::sys::{self, CUresult};
use dlfield::Device;
use dlfield::cuda::{Stream, device_count};

/// Panics unless a call succeeded.
pub fn ok(result: CUresult) {
    assert_eq!(result, CUresult::CUDA_SUCCESS);
}

/// The calling thread's current context.
pub fn current() -> usize {
    let mut context = std::ptr::null_mut();
    // SAFETY: a place for the handle.
    ok(unsafe { sys::cuCtxGetCurrent(&raw mut context) });
    context.addr()
}

/// Runs something with the primary context of a device.
pub fn within<R>(device: Device, work: impl FnOnce() -> R) -> R {
    let (mut number, mut context) = (0, std::ptr::null_mut());
    // It is kept for as long as the process runs: what is made in it would end with it.
    // SAFETY: places for what the driver tells; what is pushed is popped.
    unsafe {
        ok(sys::cuDeviceGet(&raw mut number, device.id()));
        ok(sys::cuDevicePrimaryCtxRetain(&raw mut context, number));
        ok(sys::cuCtxPushCurrent_v2(context));
        let result = work();
        ok(sys::cuCtxPopCurrent_v2(&raw mut context));
        result
    }
}

/// Waits for all devices.
pub fn finish_everything() {
    for number in 0..device_count() {
        let device = Device::cuda(u16::try_from(number).unwrap());
        // SAFETY: nothing is asked of it.
        within(device, || ok(unsafe { sys::cuCtxSynchronize() }));
    }
}

/// A stream that waits for no other, until it is dropped.
pub struct OwnStream {
    pub device: Device,
    pub stream: Stream,
}

impl OwnStream {
    pub fn new(device: Device) -> OwnStream {
        OwnStream::with_flags(device, sys::CUstream_flags::CU_STREAM_NON_BLOCKING)
    }

    /// One that waits for the legacy stream, and that for it.
    pub fn blocking(device: Device) -> OwnStream {
        OwnStream::with_flags(device, sys::CUstream_flags::CU_STREAM_DEFAULT)
    }

    fn with_flags(device: Device, flags: sys::CUstream_flags) -> OwnStream {
        let mut made = std::ptr::null_mut();
        // SAFETY: a place for the handle.
        within(device, || ok(unsafe { sys::cuStreamCreate(&raw mut made, flags as u32) }));
        OwnStream { device, stream: Stream::new(device, made.addr() as u64).unwrap() }
    }

    pub fn raw(&self) -> sys::CUstream {
        std::ptr::without_provenance_mut(usize::try_from(self.stream.handle()).unwrap())
    }

    /// Records what `work` asks of the stream, and returns it to be run.
    pub fn record(&self, work: impl FnOnce()) -> Graph {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        let (mut graph, mut run) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the stream is alive; places for the handles.
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
        // SAFETY: nobody uses it from here on; the driver finishes what was asked of it.
        within(self.device, || ok(unsafe { sys::cuStreamDestroy_v2(self.raw()) }));
    }
}

/// What was recorded.
pub struct Graph(sys::CUgraphExec);

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: nobody uses it from here on.
        ok(unsafe { sys::cuGraphExecDestroy(self.0) });
    }
}
