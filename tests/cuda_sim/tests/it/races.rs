use crate::harness::*;
use fakecuda::api::{control, copy, event, memory, set, stream};

#[test]
fn two_reads_do_not_race() {
    let _session = session();
    let (from, to) = (allocate(8), allocate(16));
    move_bytes(to, from, 8, make_stream()).unwrap();
    move_bytes(to + 8, from, 8, make_stream()).unwrap();
    assert_eq!(count("races"), 0);
}

#[test]
fn parts_of_one_allocation_do_not_race() {
    let _session = session();
    let (address, one, two) = (allocate(64), make_stream(), make_stream());
    cu!(set::cuMemsetD2D8Async(address, 16, 1, 8, 4, one)).unwrap();
    cu!(set::cuMemsetD2D8Async(address + 8, 16, 1, 8, 4, two)).unwrap();
    assert_eq!(count("races"), 0);
    fill(address + 24, 0, 1, one).unwrap();
    assert_eq!(count("races"), 1);
}

/// What is done between work in one stream and in another one.
type Order = fn(u64, u64);

#[test]
fn waiting_for_the_first_stream_orders_and_nothing_else() {
    let orders: [(&str, u64, Order); 6] = [
        ("nothing", 1, |_, _| ()),
        ("waiting in the stream", 0, |one, two| {
            let event = make_event();
            record(event, one);
            wait(two, event).unwrap();
            cu!(event::cuEventDestroy_v2(event)).unwrap();
        }),
        ("waiting on the host", 0, |one, _| synchronize(one).unwrap()),
        ("polling until it is done", 0, |one, _| {
            let event = make_event();
            record(event, one);
            while cu!(event::cuEventQuery(event)) == Err(NOT_READY) {}
        }),
        ("waiting for the other stream", 1, |_, two| synchronize(two).unwrap()),
        ("a stream in between", 0, |one, two| {
            let (between, first, second) = (make_stream(), make_event(), make_event());
            record(first, one);
            wait(between, first).unwrap();
            record(second, between);
            wait(two, second).unwrap();
        }),
    ];
    for (name, races, order) in orders {
        let _session = session();
        let (from, to, one, two) = (allocate(8), allocate(8), make_stream(), make_stream());
        fill(from, 1, 8, one).unwrap();
        order(one, two);
        move_bytes(to, from, 8, two).unwrap();
        assert_eq!(count("races"), races, "{name}");
        for part in ["cuMemcpyAsync reading", "cuMemsetD8Async writing"] {
            assert_eq!(messages().contains(part), races > 0, "{name}: {}", messages());
        }
    }
}

#[test]
fn an_event_recorded_too_early_does_not_order() {
    let _session = session();
    let (address, one, two, event) = (allocate(8), make_stream(), make_stream(), make_event());
    record(event, one);
    fill(address, 1, 8, one).unwrap();
    wait(two, event).unwrap();
    fill(address, 2, 8, two).unwrap();
    assert_eq!(count("races"), 1);
}

#[test]
fn the_host_races_for_pinned_memory() {
    let _session = session();
    let (address, host, stream) = (allocate(8), pinned(8), make_stream());
    move_bytes(host, address, 8, stream).unwrap();
    cu!(control::fakecuda_host_access(host, 8, false)).unwrap();
    assert_eq!(count("races"), 1);
    synchronize(stream).unwrap();
    cu!(control::fakecuda_host_access(host, 8, true)).unwrap();
    move_bytes(address, host, 8, stream).unwrap();
    assert_eq!(count("races"), 1);
}

#[test]
fn a_copy_to_the_device_may_be_under_way_when_it_returns() {
    let _session = session();
    let (address, to) = (allocate(8), allocate(8));
    cu!(copy::cuMemcpyHtoD_v2(address, [1u8; 8].as_ptr() as u64, 8)).unwrap();
    move_bytes(to, address, 8, make_stream()).unwrap();
    assert_eq!(count("races"), 1);
}

#[test]
fn memory_of_one_stream_races_in_another() {
    let _session = session();
    let (one, two) = (make_stream(), make_stream());
    let address = get!(|out| memory::cuMemAllocAsync(out, 8, one)).unwrap();
    fill(address, 1, 8, two).unwrap();
    assert_eq!(count("races"), 1);
    cu!(memory::cuMemFreeAsync(address, one)).unwrap();
    assert_eq!(count("races"), 2);
}

#[test]
fn memory_of_a_pool_is_not_waited_for_when_it_is_freed() {
    let _session = session();
    let stream = make_stream();
    let address = get!(|out| memory::cuMemAllocAsync(out, 8, stream)).unwrap();
    fill(address, 1, 8, stream).unwrap();
    free(address).unwrap();
    assert!(count("races") > 0);
}

#[test]
fn a_reset_forgets_complete_accesses_only() {
    let _session = session();
    let (one, two, address) = (make_stream(), make_stream(), allocate(8));
    fill(address, 1, 8, one).unwrap();
    cu!(control::fakecuda_reset()).unwrap();
    fill(address, 2, 8, two).unwrap();
    assert_eq!(count("races"), 1);
    for stream in [one, two] {
        cu!(stream::cuStreamSynchronize(stream)).unwrap();
        cu!(stream::cuStreamDestroy_v2(stream)).unwrap();
    }
    cu!(control::fakecuda_reset()).unwrap();
    fill(address, 3, 8, make_stream()).unwrap();
    assert_eq!(count("races"), 0);
}
