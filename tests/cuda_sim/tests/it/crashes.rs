//! Programs that crash with a GPU crash with the double; each runs in its own process.

use crate::harness::*;
use fakecuda::api::{capture, copy, event, graph, memory, module, set, stream};
use fakecuda::entry::{In, Out};
use std::os::unix::process::ExitStatusExt;

const INSIDE: &str = "FAKECUDA_TEST_CRASH";
const SEGMENTATION_FAULT: Option<i32> = Some(11);
const ABORT: Option<i32> = Some(6);

fn read(address: u64) -> u8 {
    // SAFETY: none; this ends the process.
    unsafe { (address as *const u8).read_volatile() }
}

/// What the host reads, and the signal that ends it.
type Access = (&'static str, Option<i32>, fn());

const ACCESSES: [Access; 3] = [
    ("memory of a device", SEGMENTATION_FAULT, || {
        read(allocate(64));
    }),
    ("pinned memory that was freed", SEGMENTATION_FAULT, || {
        let address = pinned(64);
        cu!(memory::cuMemFreeHost(address)).unwrap();
        read(address);
    }),
    ("memory of its own kinds", None, || {
        let managed = get!(|out| memory::cuMemAllocManaged(out, 64, 1)).unwrap();
        assert_eq!((read(managed), read(pinned(64))), (0xCD, 0xCD));
    }),
];

#[test]
fn the_host_reads_no_memory_but_its_own() {
    if let Ok(name) = std::env::var(INSIDE) {
        let _session = session();
        let (_, _, access) = ACCESSES.iter().find(|(known, ..)| *known == name).unwrap();
        return access();
    }
    for (name, signal, _) in ACCESSES {
        let ended = rerun("crashes::the_host_reads_no_memory_but_its_own", &[(INSIDE, name)]).status;
        assert_eq!((ended.signal(), ended.success()), (signal, signal.is_none()), "{name}");
    }
}

/// A call with a handle, and with a device address.
type Call = (&'static str, fn(u64, u64) -> Code);

/// Calls a function that writes one result, whose code is what counts.
macro_rules! code {
    (|$out:ident| $call:expr) => {
        get!(|$out| $call).map_or_else(|code| code, |_| 0)
    };
    ($call:expr) => {
        cu!($call).map_or_else(|code| code, |()| 0)
    };
}

const OF_STREAMS: &[Call] = &[
    ("cuStreamIsCapturing", |stream, _| code!(|out| capture::cuStreamIsCapturing(stream, out))),
    ("cuStreamGetCaptureInfo_v2", |stream, _| {
        let none = || Out::new(std::ptr::null_mut());
        let (id, count) = (Out::new(std::ptr::null_mut()), Out::new(std::ptr::null_mut()));
        code!(|out| capture::cuStreamGetCaptureInfo_v2(stream, out, id, Out::new(std::ptr::null_mut()), none(), count))
    }),
    ("cuStreamBeginCapture_v2", |stream, _| code!(capture::cuStreamBeginCapture_v2(stream, RELAXED))),
    ("cuStreamEndCapture", |stream, _| code!(|out| capture::cuStreamEndCapture(stream, out))),
    ("cuStreamGetCtx", |stream, _| code!(|out| stream::cuStreamGetCtx(stream, out))),
    ("cuStreamGetCtx_v2", |stream, _| {
        code!(|out| stream::cuStreamGetCtx_v2(stream, out, Out::new(std::ptr::null_mut())))
    }),
    ("cuStreamGetId", |stream, _| code!(|out| stream::cuStreamGetId(stream, out))),
    ("cuStreamGetFlags", |stream, _| code!(|out| stream::cuStreamGetFlags(stream, out))),
    ("cuStreamGetPriority", |stream, _| code!(|out| stream::cuStreamGetPriority(stream, out))),
    ("cuStreamGetDevice", |stream, _| code!(|out| stream::cuStreamGetDevice(stream, out))),
    ("cuStreamQuery", |stream, _| code!(stream::cuStreamQuery(stream))),
    ("cuStreamSynchronize", |stream, _| code!(stream::cuStreamSynchronize(stream))),
    ("cuStreamWaitEvent", |stream, _| code!(stream::cuStreamWaitEvent(stream, make_event(), 0))),
    ("cuStreamDestroy_v2", |stream, _| code!(stream::cuStreamDestroy_v2(stream))),
    ("cuEventRecord", |stream, _| code!(event::cuEventRecord(make_event(), stream))),
    ("cuEventRecordWithFlags", |stream, _| code!(event::cuEventRecordWithFlags(make_event(), stream, 0))),
    ("cuMemAllocAsync", |stream, _| code!(|out| memory::cuMemAllocAsync(out, 8, stream))),
    ("cuMemFreeAsync", |stream, address| code!(memory::cuMemFreeAsync(address, stream))),
    ("cuMemcpyAsync", |stream, address| code!(copy::cuMemcpyAsync(address, address, 8, stream))),
    ("cuMemcpyHtoDAsync_v2", |stream, address| code!(copy::cuMemcpyHtoDAsync_v2(address, pinned(8), 8, stream))),
    ("cuMemcpyDtoHAsync_v2", |stream, address| code!(copy::cuMemcpyDtoHAsync_v2(pinned(8), address, 8, stream))),
    ("cuMemcpyDtoDAsync_v2", |stream, address| code!(copy::cuMemcpyDtoDAsync_v2(address, address, 0, stream))),
    ("cuMemsetD8Async", |stream, address| code!(set::cuMemsetD8Async(address, 0, 8, stream))),
    ("cuMemsetD2D32Async", |stream, address| code!(set::cuMemsetD2D32Async(address, 4, 0, 1, 1, stream))),
    ("cuLaunchHostFunc", |stream, _| code!(stream::cuLaunchHostFunc(stream, None, std::ptr::null_mut()))),
    ("cuLaunchKernel", |stream, address| {
        let ptx = c".version 7.0\n.target sm_52\n.visible .entry dlfield_copy()";
        let module = get!(|out| module::cuModuleLoadData(out, In::new(ptx.as_ptr().cast()))).unwrap();
        let name = In::new(c"dlfield_copy".as_ptr());
        let function = get!(|out| module::cuModuleGetFunction(out, module, name)).unwrap();
        let empty = [0u64; 32];
        let parameters = [&raw const address, empty.as_ptr(), empty.as_ptr(), empty.as_ptr()];
        let (parameters, extra) = (In::new(parameters.as_ptr()).cast(), In::new(std::ptr::null()));
        code!(module::cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, extra))
    }),
    ("cuGraphLaunch", |stream, _| {
        let alive = make_stream();
        begin(alive, RELAXED);
        let graph = end(alive).unwrap();
        let executable = get!(|out| graph::cuGraphInstantiateWithFlags(out, graph, 0)).unwrap();
        code!(graph::cuGraphLaunch(executable, stream))
    }),
];

const OF_EVENTS: &[Call] = &[
    ("cuEventRecord", |event, _| code!(event::cuEventRecord(event, make_stream()))),
    ("cuEventQuery", |event, _| code!(event::cuEventQuery(event))),
    ("cuEventSynchronize", |event, _| code!(event::cuEventSynchronize(event))),
    ("cuEventElapsedTime_v2", |event, _| code!(|out| event::cuEventElapsedTime_v2(out, event, make_event()))),
    ("cuEventDestroy_v2", |event, _| code!(event::cuEventDestroy_v2(event))),
    ("cuStreamWaitEvent", |event, _| code!(stream::cuStreamWaitEvent(make_stream(), event, 0))),
];

fn destroyed_stream() -> u64 {
    let stream = make_stream();
    cu!(stream::cuStreamDestroy_v2(stream)).unwrap();
    stream
}

fn destroyed_event() -> u64 {
    let event = make_event();
    cu!(event::cuEventDestroy_v2(event)).unwrap();
    event
}

/// Checks that each call ends its process and names itself, unless handles are counted.
fn check_calls(test: &str, calls: &[Call], handle: fn() -> u64) {
    if let Ok(name) = std::env::var(INSIDE) {
        let _session = session();
        let (_, call) = calls.iter().find(|(known, _)| *known == name).unwrap();
        call(handle(), allocate(8));
        return;
    }
    for (name, _) in calls {
        let ended = rerun(test, &[(INSIDE, name)]);
        assert_eq!(ended.status.signal(), ABORT, "{name}: {ended:?}");
        let message = String::from_utf8_lossy(&ended.stderr);
        assert!(message.contains(&format!("fakecuda: {name} crashes: ")), "{name}: {message}");
    }
    let _session = session();
    count_dead_handles();
    for (name, call) in calls {
        let before = count("bad_handles");
        assert_eq!(call(handle(), allocate(8)), INVALID_HANDLE, "{name}");
        assert_eq!(count("bad_handles"), before + 1, "{name}");
    }
}

#[test]
fn calls_with_a_destroyed_stream_crash() {
    check_calls("crashes::calls_with_a_destroyed_stream_crash", OF_STREAMS, destroyed_stream);
}

#[test]
fn calls_with_a_destroyed_event_crash() {
    check_calls("crashes::calls_with_a_destroyed_event_crash", OF_EVENTS, destroyed_event);
}

#[test]
fn calls_with_garbage_crash() {
    check_calls("crashes::calls_with_garbage_crash", &OF_STREAMS[..1], || 0x1234);
}
