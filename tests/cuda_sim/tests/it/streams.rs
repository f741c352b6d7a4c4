use crate::harness::*;
use fakecuda::api::{context, copy, event, memory, stream};
use fakecuda::entry::Out;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn work_runs_when_its_stream_or_its_device_is_waited_for() {
    let _session = session();
    let (address, one, two) = (allocate(8), make_stream(), make_stream());
    fill(address, 1, 4, one).unwrap();
    fill(address + 4, 2, 4, two).unwrap();
    synchronize(two).unwrap();
    assert_eq!(peek(address, 8), [0xCD, 0xCD, 0xCD, 0xCD, 2, 2, 2, 2]);
    cu!(context::cuCtxSynchronize()).unwrap();
    assert_eq!(peek(address, 4), [1; 4]);
}

#[test]
fn an_event_brings_what_came_before_it_and_no_more() {
    let _session = session();
    let (address, one, two, event) = (allocate(8), make_stream(), make_stream(), make_event());
    fill(address, 1, 4, one).unwrap();
    record(event, one);
    fill(address + 4, 2, 4, one).unwrap();
    wait(two, event).unwrap();
    synchronize(two).unwrap();
    assert_eq!(peek(address, 8), [1, 1, 1, 1, 0xCD, 0xCD, 0xCD, 0xCD]);
}

#[test]
fn polling_comes_to_an_end() {
    let _session = session();
    let (address, stream, event) = (allocate(8), make_stream(), make_event());
    assert_eq!(cu!(event::cuEventQuery(event)), Ok(()));
    fill(address, 1, 8, stream).unwrap();
    record(event, stream);
    let polls = (0..10).take_while(|_| cu!(event::cuEventQuery(event)) == Err(NOT_READY)).count();
    assert_eq!(polls, 2);
    assert_eq!(cu!(stream::cuStreamQuery(stream)), Ok(()));
    assert_eq!(peek(address, 8), [1; 8]);
}

#[test]
fn elapsed_time_wants_events_that_have_happened() {
    let _session = session();
    let (address, stream) = (allocate(8), make_stream());
    let (start, end, untimed) = (make_event(), make_event(), get!(|out| event::cuEventCreate(out, 2)).unwrap());
    let elapsed = |end| get!(|out| event::cuEventElapsedTime_v2(out, start, end));
    assert_eq!(elapsed(end), Err(INVALID_HANDLE));
    record(start, stream);
    fill(address, 1, 8, stream).unwrap();
    record(end, stream);
    record(untimed, stream);
    assert_eq!(elapsed(end), Err(NOT_READY));
    synchronize(stream).unwrap();
    assert!(elapsed(end).unwrap() > 0.0);
    assert_eq!(elapsed(untimed), Err(INVALID_HANDLE));
}

#[test]
fn the_legacy_stream_waits_for_blocking_streams_only() {
    let _session = session();
    let address = allocate(12);
    let blocking = get!(|out| stream::cuStreamCreate(out, 0)).unwrap();
    let other = make_stream();
    fill(address, 1, 4, blocking).unwrap();
    fill(address + 4, 2, 4, PER_THREAD).unwrap();
    fill(address + 8, 3, 4, other).unwrap();
    synchronize(NULL).unwrap();
    assert_eq!(peek(address, 12), [1, 1, 1, 1, 2, 2, 2, 2, 0xCD, 0xCD, 0xCD, 0xCD]);
}

#[test]
fn blocking_streams_wait_for_the_legacy_stream() {
    let _session = session();
    let (address, to) = (allocate(4), allocate(4));
    let blocking = get!(|out| stream::cuStreamCreate(out, 0)).unwrap();
    fill(address, 1, 4, NULL).unwrap();
    move_bytes(to, address, 4, blocking).unwrap();
    synchronize(blocking).unwrap();
    assert_eq!(peek(to, 4), [1; 4]);
    assert_eq!(count("races"), 0);
}

unsafe extern "C" {
    fn cuStreamGetId_ptsz(stream: u64, id: Out<u64>) -> Code;
}

#[test]
fn per_thread_variants_use_the_streams_of_their_threads() {
    let _session = session();
    let one = get!(|out| cuStreamGetId_ptsz(NULL, out)).unwrap();
    assert_eq!(get!(|out| stream::cuStreamGetId(PER_THREAD, out)), Ok(one));
    assert_ne!(get!(|out| stream::cuStreamGetId(NULL, out)), Ok(one));
    let current = get!(|out| context::cuCtxGetCurrent(out)).unwrap();
    let other = std::thread::spawn(move || {
        cu!(context::cuCtxSetCurrent(current)).unwrap();
        get!(|out| cuStreamGetId_ptsz(NULL, out)).unwrap()
    });
    assert_ne!(other.join().unwrap(), one);
}

#[test]
fn pageable_copies_read_late_and_write_late_without_staging() {
    let _session = session();
    for (staging, moved, at_once) in [(false, 2, 0), (true, 1, 1)] {
        cu!(fakecuda::api::control::fakecuda_set_staging(staging)).unwrap();
        let (address, stream) = (allocate(4), make_stream());
        let (mut host, mut back) = ([1u8; 4], [0u8; 4]);
        move_bytes(address, host.as_ptr() as u64, 4, stream).unwrap();
        host.fill(2);
        move_bytes(back.as_mut_ptr() as u64, address, 4, stream).unwrap();
        assert_eq!(back, [at_once; 4]);
        synchronize(stream).unwrap();
        assert_eq!((peek(address, 4), back), (vec![moved; 4], [moved; 4]));
    }
}

#[test]
fn copies_without_a_stream_wait_for_the_host_and_not_for_the_device() {
    let _session = session();
    let (address, to) = (allocate(4), allocate(4));
    let mut host = [1u8; 4];
    cu!(copy::cuMemcpyHtoD_v2(address, host.as_ptr() as u64, 4)).unwrap();
    host.fill(2);
    cu!(copy::cuMemcpyDtoD_v2(to, address, 4)).unwrap();
    assert_eq!((peek(address, 4), peek(to, 4)), (vec![0xCD; 4], vec![0xCD; 4]));
    let mut back = [0u8; 4];
    cu!(copy::cuMemcpyDtoH_v2(back.as_mut_ptr() as u64, to, 4)).unwrap();
    assert_eq!(back, [1; 4]);
}

#[test]
fn a_destroyed_stream_finishes_and_its_handle_comes_back_if_it_is_asked_for() {
    let _session = session();
    let id = |stream| get!(|out| stream::cuStreamGetId(stream, out)).unwrap();
    let (address, one) = (allocate(8), make_stream());
    let first = id(one);
    fill(address, 1, 4, one).unwrap();
    cu!(stream::cuStreamDestroy_v2(one)).unwrap();
    count_dead_handles();
    assert_eq!((synchronize(one), count("live_streams")), (Err(INVALID_HANDLE), 0));
    assert_ne!(make_stream(), one);
    cu!(fakecuda::api::control::fakecuda_set_reused_streams(true)).unwrap();
    assert_eq!(make_stream(), one);
    assert_ne!(id(one), first);
    // The handle is a new stream's, with work of its own.
    fill(address + 4, 2, 4, one).unwrap();
    synchronize(one).unwrap();
    assert_eq!(peek(address, 8), [0xCD, 0xCD, 0xCD, 0xCD, 2, 2, 2, 2]);
    cu!(context::cuCtxSynchronize()).unwrap();
    assert_eq!(peek(address, 4), [1; 4]);
}

#[test]
fn events_outlive_the_stream_that_they_were_recorded_on() {
    let _session = session();
    let (address, to, gone, other) = (allocate(4), allocate(4), make_stream(), make_stream());
    let (first, second) = (make_event(), make_event());
    record(first, gone);
    fill(address, 1, 4, gone).unwrap();
    record(second, gone);
    cu!(stream::cuStreamDestroy_v2(gone)).unwrap();
    wait(other, second).unwrap();
    move_bytes(to, address, 4, other).unwrap();
    assert_eq!(count("races"), 0);
    while cu!(event::cuEventQuery(second)) == Err(NOT_READY) {}
    assert_eq!(peek(address, 4), [1; 4]);
    cu!(event::cuEventSynchronize(second)).unwrap();
    assert!(get!(|out| event::cuEventElapsedTime_v2(out, first, second)).unwrap() > 0.0);
    synchronize(other).unwrap();
    assert_eq!(peek(to, 4), [1; 4]);
}

#[test]
fn freeing_memory_waits_for_its_device() {
    let _session = session();
    let (address, other, stream) = (allocate(4), allocate(4), make_stream());
    fill(other, 1, 4, stream).unwrap();
    free(address).unwrap();
    assert_eq!(peek(other, 4), [1; 4]);
}

unsafe extern "C" fn note(argument: *mut c_void) {
    // SAFETY: the test passes a counter that outlives the call.
    let seen = unsafe { &*argument.cast::<AtomicU64>() };
    let answer = get!(|out| memory::cuMemAlloc_v2(out, 8));
    seen.store(answer.unwrap_err() as u64, Ordering::SeqCst);
}

#[test]
fn a_host_function_runs_in_its_turn_and_may_not_call_the_driver() {
    let _session = session();
    let (address, stream) = (allocate(4), make_stream());
    let seen = AtomicU64::new(0);
    cu!(stream::cuLaunchHostFunc(stream, Some(note), (&raw const seen).cast_mut().cast())).unwrap();
    fill(address, 1, 4, stream).unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 0);
    synchronize(stream).unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), NOT_PERMITTED as u64);
    assert_eq!(count("calls_in_host_functions"), 1);
    assert_eq!(peek(address, 4), [1; 4]);
}
