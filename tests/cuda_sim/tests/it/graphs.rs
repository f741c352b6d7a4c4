use crate::harness::*;
use fakecuda::api::{event, graph, memory};

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
