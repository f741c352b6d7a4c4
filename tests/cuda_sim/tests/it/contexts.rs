use crate::harness::*;
use fakecuda::api::{context, device, event, init, memory};
use fakecuda::entry::Out;

fn current() -> u64 {
    get!(|out| context::cuCtxGetCurrent(out)).unwrap()
}

#[test]
fn contexts_are_a_stack() {
    let session = session();
    assert_eq!(current(), session.contexts[0]);
    cu!(context::cuCtxPushCurrent_v2(session.contexts[1])).unwrap();
    assert_eq!(get!(|out| context::cuCtxGetDevice(out)), Ok(1));
    assert_eq!(get!(|out| context::cuCtxPopCurrent_v2(out)), Ok(session.contexts[1]));
    assert_eq!(current(), session.contexts[0]);
}

#[test]
fn a_context_is_there_while_it_is_retained() {
    let session = session();
    let state = || {
        let mut flags = 0;
        get!(|active| device::cuDevicePrimaryCtxGetState(1, Out::new(&mut flags), active)).unwrap()
    };
    assert_eq!(state(), 1);
    cu!(device::cuDevicePrimaryCtxRelease_v2(1)).unwrap();
    assert_eq!(state(), 0);
    assert_eq!(cu!(context::cuCtxSetCurrent(session.contexts[1])), Err(709));
    assert_eq!(cu!(device::cuDevicePrimaryCtxRelease_v2(1)), Err(INVALID_HANDLE));
    get!(|out| device::cuDevicePrimaryCtxRetain(out, 1)).unwrap();
}

#[test]
fn memory_is_freed_in_a_context_and_the_wrong_one_is_counted() {
    let session = session();
    let address = allocate(8);
    let thread = std::thread::spawn(move || {
        assert_eq!(free(address), Err(INVALID_CONTEXT));
        assert_eq!(get!(|out| memory::cuMemAlloc_v2(out, 8)), Err(INVALID_CONTEXT));
    });
    thread.join().unwrap();
    assert_eq!((count("no_context"), count("leaks")), (2, 1));
    session.make_current(1);
    free(address).unwrap();
    assert_eq!((count("foreign_context"), count("leaks")), (1, 0));
}

#[test]
fn events_belong_to_their_device() {
    let session = session();
    let (event, stream) = (make_event(), make_stream());
    session.make_current(1);
    let other = make_stream();
    assert_eq!(cu!(event::cuEventRecord(event, other)), Err(INVALID_HANDLE));
    record(event, stream);
    assert_eq!(wait(other, event), Ok(()));
    assert_eq!(count("foreign_context"), 1);
}

#[test]
fn null_streams_of_two_devices_are_two() {
    let session = session();
    let first = allocate(4);
    fill(first, 1, 4, NULL).unwrap();
    session.make_current(1);
    synchronize(NULL).unwrap();
    assert_eq!(peek(first, 4), [0xCD; 4]);
    session.make_current(0);
    synchronize(NULL).unwrap();
    assert_eq!(peek(first, 4), [1; 4]);
}

#[test]
fn what_a_context_had_is_gone_with_it() {
    let session = session();
    let (stream, event, address) = (make_stream(), make_event(), allocate(8));
    cu!(device::cuDevicePrimaryCtxReset_v2(0)).unwrap();
    assert_eq!(count("lost_with_context"), 1);
    assert_eq!((count("live_streams"), count("live_events")), (0, 0));
    count_dead_handles();
    assert_eq!(synchronize(stream), Err(INVALID_HANDLE));
    assert_eq!(cu!(event::cuEventSynchronize(event)), Err(INVALID_HANDLE));
    assert_eq!(free(address), Err(INVALID_VALUE));
    assert_eq!(current(), session.contexts[0]);
}

#[test]
fn peer_access_is_switched_on_once() {
    let session = session();
    assert_eq!(get!(|out| device::cuDeviceCanAccessPeer(out, 0, 1)), Ok(1));
    let peer = session.contexts[1];
    assert_eq!(cu!(context::cuCtxDisablePeerAccess(peer)), Err(705));
    assert_eq!(cu!(context::cuCtxEnablePeerAccess(peer, 0)), Ok(()));
    assert_eq!(cu!(context::cuCtxEnablePeerAccess(peer, 0)), Err(704));
    assert_eq!(cu!(context::cuCtxDisablePeerAccess(peer)), Ok(()));
}

#[test]
fn there_are_as_many_devices_as_asked_for() {
    let _session = session();
    assert_eq!(get!(|out| device::cuDeviceGetCount(out)), Ok(2));
    assert_eq!(get!(|out| device::cuDeviceGet(out, 2)), Err(101));
    cu!(fakecuda::api::control::fakecuda_set_version(12040)).unwrap();
    assert_eq!(get!(|out| init::cuDriverGetVersion(out)), Ok(12040));
}
