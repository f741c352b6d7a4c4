//! What a capture allows, call by call, as driver 580 answered on an H100 and an H200; else as CUDA's documentation says.

use crate::harness::*;
use fakecuda::api::{capture, context, copy, device, event, graph, memory, module, pool, set, stream};
use fakecuda::entry::{In, Out};

const MODES: [i32; 3] = [GLOBAL, THREAD_LOCAL, RELAXED];
const CAPTURED_EVENT: Code = 907;

/// A call with the stream that is captured, and with an event.
type Call = fn(u64, u64) -> Answer;

/// Ends a capture that has to be valid, or invalid.
fn end_expecting(stream: u64, valid: bool, what: &str) {
    let ended = end(stream);
    assert_eq!(ended.is_ok(), valid, "{what}");
    match ended {
        Ok(made) => cu!(graph::cuGraphDestroy(made)).unwrap(),
        Err(failure) => assert_eq!(failure, ALREADY_INVALIDATED, "{what}"),
    }
}

/// Makes a call during captures of each mode, and checks whether the capture survives it.
fn check_in(modes: &[i32], expected: Answer, survives: bool, calls: &[(&str, Call)]) {
    for &(name, call) in calls {
        for &mode in modes {
            let _session = session();
            let (stream, event) = (make_stream(), make_event());
            begin(stream, mode);
            let what = format!("{name}, mode {mode}");
            assert_eq!(call(stream, event), expected, "{what}");
            assert_eq!(is_capturing(stream), if survives { ACTIVE } else { INVALIDATED }, "{what}");
            end_expecting(stream, survives, &what);
            assert_eq!(is_capturing(stream), 0, "{what}");
        }
    }
}

fn get_info_v2(stream: u64) -> Answer {
    let (mut id, mut dependencies, mut count) = (0, std::ptr::null(), 0);
    let (id, graph) = (Out::new(&mut id), Out::new(std::ptr::null_mut()));
    let (dependencies, count) = (Out::new(&mut dependencies), Out::new(&mut count));
    let status = get!(|out| capture::cuStreamGetCaptureInfo_v2(stream, out, id, graph, dependencies, count))?;
    assert_eq!(status, ACTIVE);
    Ok(())
}

/// Returns the pool's release threshold.
fn threshold(pool: u64) -> Answer<u64> {
    result(|out: Out<u64>| {
        // SAFETY: this attribute has 64 bits.
        unsafe { pool::cuMemPoolGetAttribute(pool, 4, out.cast()) }
    })
}

#[test]
fn a_captured_stream_may_be_asked_for_its_capture_and_its_context() {
    check_in(
        &MODES,
        Ok(()),
        true,
        &[
            ("cuStreamIsCapturing", |stream, _| get!(|out| capture::cuStreamIsCapturing(stream, out)).map(drop)),
            ("cuStreamGetCtx", |stream, _| get!(|out| stream::cuStreamGetCtx(stream, out)).map(drop)),
            ("cuStreamGetCaptureInfo_v2", |stream, _| get_info_v2(stream)),
            ("cuEventRecord", |stream, event| cu!(event::cuEventRecord(event, stream))),
            ("cuMemAllocAsync", |stream, _| get!(|out| memory::cuMemAllocAsync(out, 8, stream)).map(drop)),
            ("cuStreamGetId of another", |_, _| get!(|out| stream::cuStreamGetId(make_stream(), out)).map(drop)),
            ("cuDevicePrimaryCtxRetain again", |_, _| {
                get!(|out| device::cuDevicePrimaryCtxRetain(out, 0))?;
                cu!(device::cuDevicePrimaryCtxRelease_v2(0))
            }),
        ],
    );
}

#[test]
fn what_else_a_captured_stream_is_asked_invalidates_its_capture() {
    check_in(
        &MODES,
        Err(UNSUPPORTED),
        false,
        &[
            ("cuStreamGetId", |stream, _| get!(|out| stream::cuStreamGetId(stream, out)).map(drop)),
            ("cuStreamGetFlags", |stream, _| get!(|out| stream::cuStreamGetFlags(stream, out)).map(drop)),
            ("cuStreamGetDevice", |stream, _| get!(|out| stream::cuStreamGetDevice(stream, out)).map(drop)),
            ("cuStreamGetPriority", |stream, _| get!(|out| stream::cuStreamGetPriority(stream, out)).map(drop)),
            ("cuStreamQuery", |stream, _| cu!(stream::cuStreamQuery(stream))),
            ("cuStreamSynchronize", |stream, _| synchronize(stream)),
            ("cuCtxSynchronize", |_, _| cu!(context::cuCtxSynchronize())),
            ("a copy of pageable memory", |stream, _| move_bytes(0x1000, [0u8; 8].as_ptr() as u64, 8, stream)),
        ],
    );
    let uncaptured: Call = |stream, event| {
        record(event, make_stream());
        wait(stream, event)
    };
    check_in(&MODES, Err(905), false, &[("waiting for uncaptured work", uncaptured)]);
}

const UNSAFE: [(&str, Call); 8] = [
    ("cuMemAlloc", |_, _| get!(|out| memory::cuMemAlloc_v2(out, 8)).map(drop)),
    ("cuMemAllocManaged", |_, _| get!(|out| memory::cuMemAllocManaged(out, 8, 1)).map(drop)),
    ("cuMemHostAlloc", |_, _| get!(|out| memory::cuMemHostAlloc(out, 8, 0)).map(drop)),
    ("cuMemHostRegister", |_, _| cu!(memory::cuMemHostRegister_v2(0x1000, 8, 0))),
    ("cuModuleLoadData", |_, _| {
        let ptx = c".version 7.0\n.target sm_52\n";
        get!(|out| module::cuModuleLoadData(out, In::new(ptx.as_ptr().cast()))).map(drop)
    }),
    ("cuMemsetD8", |_, _| cu!(set::cuMemsetD8_v2(pinned_before(), 0, 8))),
    ("cuEventQuery", |_, event| cu!(event::cuEventQuery(event))),
    ("cuEventSynchronize", |_, event| cu!(event::cuEventSynchronize(event))),
];

/// Returns memory that exists, allocated in relaxed mode.
fn pinned_before() -> u64 {
    in_mode(RELAXED, || pinned(8))
}

/// Runs `work` with this mode of the thread.
fn in_mode<T>(mut mode: i32, work: impl FnOnce() -> T) -> T {
    cu!(capture::cuThreadExchangeStreamCaptureMode(Out::new(&mut mode))).unwrap();
    let result = work();
    cu!(capture::cuThreadExchangeStreamCaptureMode(Out::new(&mut mode))).unwrap();
    result
}

#[test]
fn calls_that_may_be_unsafe_are_for_relaxed_captures_and_relaxed_threads() {
    check_in(&[GLOBAL, THREAD_LOCAL], Err(UNSUPPORTED), false, &UNSAFE);
    check_in(&[RELAXED], Ok(()), true, &UNSAFE);
    for (name, call) in UNSAFE {
        let _session = session();
        let (stream, event) = (make_stream(), make_event());
        begin(stream, GLOBAL);
        assert_eq!(in_mode(RELAXED, || call(stream, event)), Ok(()), "{name}");
        end_expecting(stream, true, name);
    }
}

#[test]
fn memory_is_freed_by_relaxed_captures_and_relaxed_threads() {
    for (mode, thread_mode, expected) in
        [(GLOBAL, GLOBAL, Err(UNSUPPORTED)), (RELAXED, GLOBAL, Ok(())), (GLOBAL, RELAXED, Ok(()))]
    {
        let _session = session();
        let (stream, address, host) = (make_stream(), allocate(8), pinned(8));
        begin(stream, mode);
        assert_eq!(in_mode(thread_mode, || free(address)), expected);
        assert_eq!(in_mode(thread_mode, || cu!(memory::cuMemFreeHost(host))), expected);
        end_expecting(stream, expected.is_ok(), "cuMemFree");
    }
}

#[test]
fn unsafe_calls_of_another_thread_disturb_global_captures_only() {
    for (mode, thread_mode, survives) in
        [(GLOBAL, GLOBAL, false), (GLOBAL, THREAD_LOCAL, true), (GLOBAL, RELAXED, true), (THREAD_LOCAL, GLOBAL, true)]
    {
        let session = session();
        let (first, second) = (make_stream(), make_stream());
        begin(first, mode);
        begin(second, mode);
        let context = session.contexts[0];
        let other = std::thread::spawn(move || {
            cu!(context::cuCtxSetCurrent(context)).unwrap();
            in_mode(thread_mode, || get!(|out| memory::cuMemAlloc_v2(out, 8)).is_ok())
        });
        assert_eq!(other.join().unwrap(), survives);
        // All captures that forbid the call end with it.
        for stream in [first, second] {
            end_expecting(stream, survives, &format!("modes {mode}, {thread_mode}"));
        }
    }
}

#[test]
fn the_first_use_of_a_device_invalidates_captures_in_every_mode() {
    check_in(
        &MODES,
        Err(UNSUPPORTED),
        false,
        &[
            ("cuDevicePrimaryCtxRetain", |_, _| {
                // The session has retained it, and will release it.
                in_mode(RELAXED, || {
                    cu!(device::cuDevicePrimaryCtxRelease_v2(1)).unwrap();
                    let refused = get!(|out| device::cuDevicePrimaryCtxRetain(out, 1)).map(drop);
                    assert_eq!(get!(|out| device::cuDeviceGet(out, 1)), Ok(1));
                    refused
                })
            }),
            ("cuDeviceGetDefaultMemPool", |_, _| {
                in_mode(RELAXED, || get!(|out| pool::cuDeviceGetDefaultMemPool(out, 0)).map(drop))
            }),
        ],
    );
}

#[test]
fn the_pool_known_before_is_not_asked_during_a_capture() {
    for set in [false, true] {
        let _session = session();
        let (pool, stream, value) = (get!(|out| pool::cuDeviceGetDefaultMemPool(out, 0)).unwrap(), make_stream(), 0u64);
        begin(stream, RELAXED);
        let answer = if set {
            cu!(pool::cuMemPoolSetAttribute(pool, 4, In::new((&raw const value).cast())))
        } else {
            threshold(pool).map(drop)
        };
        assert_eq!(answer, Err(UNSUPPORTED));
        end_expecting(stream, false, "attributes of a pool");
    }
}

#[test]
fn waiting_for_a_context_invalidates_all_of_its_captures() {
    let session = session();
    let (one, two) = (make_stream(), make_stream());
    session.make_current(1);
    let elsewhere = make_stream();
    session.make_current(0);
    for stream in [one, two, elsewhere] {
        begin(stream, RELAXED);
    }
    assert_eq!(cu!(context::cuCtxSynchronize()), Err(UNSUPPORTED));
    end_expecting(one, false, "this context");
    end_expecting(two, false, "this context");
    end_expecting(elsewhere, true, "another context");
}

#[test]
fn an_invalid_capture_says_so_until_it_ends() {
    let _session = session();
    let (address, stream, event) = (allocate(8), make_stream(), make_event());
    begin(stream, RELAXED);
    assert_eq!(get!(|out| stream::cuStreamGetId(stream, out)), Err(UNSUPPORTED));
    let later = [
        get!(|out| stream::cuStreamGetId(stream, out)).map(drop),
        get!(|out| stream::cuStreamGetCtx(stream, out)).map(drop),
        synchronize(stream),
        fill(address, 1, 8, stream),
        cu!(event::cuEventRecord(event, stream)),
        wait(stream, event),
        get!(|out| memory::cuMemAllocAsync(out, 8, stream)).map(drop),
    ];
    assert_eq!(later, [Err(ALREADY_INVALIDATED); 7]);
    assert_eq!(is_capturing(stream), INVALIDATED);
    end_expecting(stream, false, "cuStreamGetId");
    begin(stream, RELAXED);
    fill(address, 1, 8, stream).unwrap();
    end_expecting(stream, true, "a new capture");
}

#[test]
fn the_legacy_stream_is_asked_whether_it_captures_and_does_nothing_else_while_a_blocking_stream_does() {
    let query: Call = |_, _| get!(|out| capture::cuStreamIsCapturing(NULL, out)).map(drop);
    let work: [(&str, Call); 6] = [
        ("cuMemcpyDtoD", |_, _| cu!(copy::cuMemcpyDtoD_v2(0x1000, 0x2000, 8))),
        ("cuMemsetD8Async", |_, _| fill(in_mode(RELAXED, || allocate(8)), 1, 8, NULL)),
        ("cuEventRecord", |_, event| cu!(event::cuEventRecord(event, NULL))),
        ("cuStreamWaitEvent", |_, event| wait(NULL, event)),
        ("cuStreamSynchronize", |_, _| synchronize(NULL)),
        ("cuMemAllocAsync", |_, _| get!(|out| memory::cuMemAllocAsync(out, 8, NULL)).map(drop)),
    ];
    for ((name, call), valid) in
        work.map(|work| (work, false)).into_iter().chain([(("cuStreamIsCapturing", query), true)])
    {
        for mode in MODES {
            let _session = session();
            let (blocking, event) = (get!(|out| stream::cuStreamCreate(out, 0)).unwrap(), make_event());
            begin(blocking, mode);
            assert_eq!(call(blocking, event), Err(IMPLICIT), "{name}, mode {mode}");
            end_expecting(blocking, valid, name);
        }
    }
}

#[test]
fn the_legacy_stream_neither_disturbs_captures_of_other_streams_nor_captures() {
    let _session = session();
    let (address, stream) = (allocate(8), make_stream());
    begin(stream, RELAXED);
    fill(address, 1, 8, NULL).unwrap();
    end_expecting(stream, true, "work on the legacy stream");
    assert_eq!(cu!(capture::cuStreamBeginCapture_v2(NULL, RELAXED)), Err(UNSUPPORTED));
}

#[test]
fn captured_events_are_for_streams_of_the_capture() {
    let _session = session();
    let (stream, event) = (make_stream(), make_event());
    begin(stream, RELAXED);
    record(event, stream);
    assert_eq!(cu!(event::cuEventQuery(event)), Err(CAPTURED_EVENT));
    assert_eq!(wait(NULL, event), Err(IMPLICIT));
    end_expecting(stream, false, "the legacy stream waits for a captured event");
}
