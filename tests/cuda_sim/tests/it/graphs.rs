use crate::harness::*;
use fakecuda::api::{capture, context, copy, event, graph, memory, stream};

const GLOBAL: i32 = 0;
const RELAXED: i32 = 2;
const ACTIVE: i32 = 1;
const INVALIDATED: i32 = 2;
const UNSUPPORTED: Code = 900;
const ALREADY_INVALIDATED: Code = 901;

fn begin(stream: u64, mode: i32) {
    cu!(capture::cuStreamBeginCapture_v2(stream, mode)).unwrap();
}

fn end(stream: u64) -> Answer<u64> {
    get!(|out| capture::cuStreamEndCapture(stream, out))
}

fn instantiate(graph: u64) -> u64 {
    let made = get!(|out| graph::cuGraphInstantiateWithFlags(out, graph, 0)).unwrap();
    cu!(graph::cuGraphDestroy(graph)).unwrap();
    made
}

fn launch(executable: u64, stream: u64) -> Answer {
    cu!(graph::cuGraphLaunch(executable, stream))
}

#[test]
fn what_is_captured_runs_when_it_is_launched_and_each_time() {
    let _session = session();
    let (from, to, stream) = (allocate(4), allocate(4), make_stream());
    begin(stream, GLOBAL);
    fill(from, 1, 2, stream).unwrap();
    move_bytes(to, from, 4, stream).unwrap();
    assert_eq!(is_capturing(stream), ACTIVE);
    let executable = instantiate(end(stream).unwrap());
    synchronize(stream).unwrap();
    assert_eq!(peek(to, 4), [0xCD; 4]);
    launch(executable, stream).unwrap();
    synchronize(stream).unwrap();
    assert_eq!(peek(to, 4), [1, 1, 0xCD, 0xCD]);
    poke(from, &[9; 4]);
    launch(executable, stream).unwrap();
    synchronize(stream).unwrap();
    assert_eq!(peek(to, 4), [1, 1, 9, 9]);
    assert_eq!(count("races"), 0);
    cu!(graph::cuGraphExecDestroy(executable)).unwrap();
}

/// The mode of a capture, and the failure of a call that ends it.
type Disturbance = (i32, Code, fn(u64) -> Answer);

#[test]
fn calls_that_a_capture_does_not_allow_end_it() {
    let calls: [Disturbance; 6] = [
        (RELAXED, UNSUPPORTED, synchronize),
        (RELAXED, UNSUPPORTED, |stream| cu!(stream::cuStreamQuery(stream))),
        (RELAXED, UNSUPPORTED, |_| cu!(context::cuCtxSynchronize())),
        (GLOBAL, UNSUPPORTED, |_| get!(|out| memory::cuMemAlloc_v2(out, 8)).map(drop)),
        // Pageable memory, and work that is not captured.
        (RELAXED, UNSUPPORTED, |stream| move_bytes(allocate(8), [0u8; 8].as_ptr() as u64, 8, stream)),
        (RELAXED, 905, |stream| {
            let event = make_event();
            record(event, make_stream());
            wait(stream, event)
        }),
    ];
    for (mode, failure, call) in calls {
        let _session = session();
        let stream = make_stream();
        begin(stream, mode);
        assert_eq!(call(stream), Err(failure));
        assert_eq!(is_capturing(stream), INVALIDATED);
        assert_eq!(end(stream), Err(ALREADY_INVALIDATED));
        assert_eq!(is_capturing(stream), 0);
        begin(stream, RELAXED);
        allocate(8);
        cu!(graph::cuGraphDestroy(end(stream).unwrap())).unwrap();
    }
}

#[test]
fn the_legacy_stream_disturbs_captures_of_blocking_streams() {
    let _session = session();
    let address = allocate(8);
    let blocking = get!(|out| stream::cuStreamCreate(out, 0)).unwrap();
    begin(blocking, RELAXED);
    assert_eq!(cu!(copy::cuMemcpyDtoD_v2(address, address, 8)), Err(906));
    assert_eq!(end(blocking), Err(ALREADY_INVALIDATED));
    let other = make_stream();
    begin(other, RELAXED);
    fill(address, 1, 8, NULL).unwrap();
    cu!(graph::cuGraphDestroy(end(other).unwrap())).unwrap();
    assert_eq!(cu!(capture::cuStreamBeginCapture_v2(NULL, RELAXED)), Err(UNSUPPORTED));
}

#[test]
fn events_take_other_streams_into_a_capture_and_back_as_branches_that_may_race() {
    let _session = session();
    let (address, one, two) = (allocate(8), make_stream(), make_stream());
    let (fork, join) = (make_event(), make_event());
    let capture = |first_bytes: usize, joined: bool| {
        begin(one, RELAXED);
        fill(address, 0, 8, one).unwrap();
        record(fork, one);
        wait(two, fork).unwrap();
        assert_eq!(is_capturing(two), ACTIVE);
        assert_eq!(cu!(event::cuEventSynchronize(fork)), Err(907));
        fill(address, 1, first_bytes, one).unwrap();
        fill(address + 4, 2, 4, two).unwrap();
        if joined {
            record(join, two);
            wait(one, join).unwrap();
        }
        end(one)
    };
    assert_eq!(capture(4, false), Err(904));
    assert_eq!(is_capturing(two), 0);
    for (first_bytes, races) in [(4, 0), (5, 1)] {
        let executable = instantiate(capture(first_bytes, true).unwrap());
        assert_eq!(count("races"), 0);
        launch(executable, one).unwrap();
        assert_eq!(count("races"), races);
        synchronize(one).unwrap();
        assert!(races > 0 || peek(address, 8) == [1, 1, 1, 1, 2, 2, 2, 2]);
    }
}

#[test]
fn memory_of_a_graph_lives_while_it_runs() {
    let _session = session();
    let (to, stream) = (allocate(4), make_stream());
    begin(stream, GLOBAL);
    let address = get!(|out| memory::cuMemAllocAsync(out, 4, stream)).unwrap();
    fill(address, 3, 2, stream).unwrap();
    move_bytes(to, address, 4, stream).unwrap();
    cu!(memory::cuMemFreeAsync(address, stream)).unwrap();
    let executable = instantiate(end(stream).unwrap());
    assert_eq!(fill(address, 0, 4, stream), Err(INVALID_VALUE));
    for _ in 0..2 {
        fill(to, 0, 4, stream).unwrap();
        launch(executable, stream).unwrap();
        synchronize(stream).unwrap();
        assert_eq!(peek(to, 4), [3, 3, 0xCD, 0xCD]);
    }
    assert_eq!(peek(address, 4), [0xDD; 4]);
    assert_eq!(report()["used"][0], 4);
}

#[test]
fn memory_that_a_graph_leaves_is_freed_before_the_next_launch() {
    let _session = session();
    let stream = make_stream();
    begin(stream, GLOBAL);
    let address = get!(|out| memory::cuMemAllocAsync(out, 4, stream)).unwrap();
    let executable = instantiate(end(stream).unwrap());
    launch(executable, stream).unwrap();
    fill(address, 1, 4, stream).unwrap();
    assert_eq!(launch(executable, stream), Err(INVALID_VALUE));
    cu!(memory::cuMemFreeAsync(address, stream)).unwrap();
    launch(executable, stream).unwrap();
    cu!(memory::cuMemFreeAsync(address, stream)).unwrap();
    synchronize(stream).unwrap();
    assert_eq!(count("leaks"), 0);
}
