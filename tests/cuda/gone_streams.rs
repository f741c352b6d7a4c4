//! Destroyed streams that memory still records: their work is waited for, on any device, and a new stream under an old handle
//! is another stream.

use std::ffi::c_void;
use std::sync::Barrier;
use std::thread;

use dlfield::cuda::device_count;
use dlfield::cudarc::driver::sys;
use dlfield::{DType, Device, Spec, Tensor};

use crate::cudarc_user::zeros_in;
use crate::double::{Double, OnCuda, tolerating};
use crate::driver::{GPU, OwnStream, SHARED, gpus, ok, within};
use crate::exports::used_by;
use crate::memory::{elements, fill};

fn zeros(device: Device) -> Tensor {
    Tensor::zeros(&Spec::new(&[64], DType::F64).with_device(device)).unwrap()
}

/// Makes a copy on a device, on a stream that nothing has waited for.
fn copy_in(stream: &OwnStream, field: &Tensor) -> Tensor {
    stream.with(|| field.to_device(stream.device, Some(true))).unwrap()
}

fn fill_in(stream: &OwnStream, field: &Tensor) {
    stream.with(|| fill(field, &[1; 8])).unwrap();
}

/// Destroys a stream, and creates another one with its handle.
fn replaced(stream: OwnStream) -> OwnStream {
    let (device, handle) = (stream.device, stream.stream);
    drop(stream);
    let next = OwnStream::new(device);
    assert_eq!(next.stream, handle);
    next
}

/// As [`tolerating`], for tests that make the driver look up destroyed handles.
fn on_cuda() -> Option<OnCuda> {
    tolerating(&["bad_handles"])
}

/// For tests of reused handles, which only the double guarantees.
fn on_cuda_with_old_handles() -> Option<OnCuda> {
    let cuda = on_cuda()?;
    Double::find()?.reuse_streams(true);
    Some(cuda)
}

#[test]
fn every_device_with_a_stream_that_is_gone_is_waited_for() {
    let Some(_cuda) = on_cuda() else { return };
    for (place, is_handed) in SHARED.into_iter().flat_map(|place| [(place, false), (place, true)]) {
        for device in gpus() {
            let shared = zeros(place);
            let stream = OwnStream::new(device);
            let copy = (!is_handed).then(|| copy_in(&stream, &shared));
            if is_handed {
                shared.make_stream_wait(stream.stream).unwrap();
                stream.write(&shared);
            }
            drop(stream);
            drop(shared);
            assert!(copy.is_none_or(|copy| elements(&copy) == [0; 512]), "{place}, {device}");
        }
    }
}

#[test]
fn streams_that_are_left_are_waited_for_beside_those_that_are_gone() {
    let Some(_cuda) = on_cuda().filter(|_| device_count() > 1) else { return };
    for place in SHARED {
        for gone_first in [false, true] {
            let shared = zeros(place);
            let (one, other) = (OwnStream::new(Device::cuda(0)), OwnStream::new(Device::cuda(1)));
            let copies = [copy_in(&one, &shared), copy_in(&other, &shared)];
            let (gone, left) = if gone_first { (one, other) } else { (other, one) };
            drop(gone);
            drop(shared);
            drop(copies);
            drop(left);
        }
    }
}

#[test]
fn a_new_stream_under_an_old_handle_comes_after_the_allocation() {
    let Some(_cuda) = on_cuda_with_old_handles() else { return };
    let (own, other) = (OwnStream::new(GPU), OwnStream::new(GPU));
    let field = zeros_in(own.stream, 64);
    own.with(|| field.make_stream_wait(other.stream)).unwrap();
    let next = replaced(other);
    fill_in(&next, &field);
    drop(field);
}

#[test]
fn a_new_stream_under_the_handle_of_the_first_comes_after_the_allocation() {
    let Some(_cuda) = on_cuda_with_old_handles() else { return };
    for first_told in [false, true] {
        let own = OwnStream::new(GPU);
        let field = zeros_in(own.stream, 64);
        if first_told {
            fill_in(&own, &field);
        }
        let next = replaced(own);
        fill_in(&next, &field);
        drop(field);
    }
}

#[test]
fn memory_is_not_freed_in_the_order_of_a_new_stream_under_the_handle_of_the_first() {
    let Some(_cuda) = on_cuda_with_old_handles() else { return };
    let own = OwnStream::new(GPU);
    let field = zeros_in(own.stream, 64);
    let next = replaced(own);
    drop(field);
    drop(next);
    if device_count() > 1 {
        // A handle does not name its device.
        let own = OwnStream::new(GPU);
        let field = zeros_in(own.stream, 64);
        let handle = own.stream;
        drop(own);
        let next = OwnStream::new(Device::cuda(1));
        assert_eq!(next.stream, handle);
        drop(field);
    }
}

#[test]
fn the_work_of_a_stream_whose_handle_is_anothers_is_waited_for() {
    let Some(_cuda) = on_cuda_with_old_handles() else { return };
    for told_again in [false, true] {
        let (own, other) = (OwnStream::new(GPU), OwnStream::new(GPU));
        let field = zeros_in(own.stream, 64);
        own.with(|| field.make_stream_wait(other.stream)).unwrap();
        other.write(&field);
        let next = replaced(other);
        if told_again {
            own.with(|| field.make_stream_wait(next.stream)).unwrap();
        }
        drop(field);
        drop((own, next));
    }
}

#[test]
fn the_host_waits_for_a_stream_whose_handle_is_anothers() {
    let Some(_cuda) = on_cuda_with_old_handles() else { return };
    for place in SHARED {
        let shared = zeros(place);
        let other = OwnStream::new(GPU);
        shared.make_stream_wait(other.stream).unwrap();
        other.write(&shared);
        let next = replaced(other);
        let host = shared.to_device(Device::CPU, None).unwrap();
        let start = host.descriptor().ptr();
        Double::find().unwrap().host_access(start.addr(), 512, false);
        // SAFETY: 512 bytes that the host reaches.
        assert_eq!(unsafe { std::slice::from_raw_parts(start, 512) }, [1; 512], "{place}");
        drop(next);
    }
}

#[test]
fn memory_with_many_recorded_streams_of_one_handle_is_freed_as_quickly() {
    let Some(_cuda) = on_cuda_with_old_handles() else { return };
    let double = Double::find().unwrap();
    let own = OwnStream::new(GPU);
    let field = zeros_in(own.stream, 64);
    let mut other = OwnStream::new(GPU);
    for _ in 0..100 {
        own.with(|| field.make_stream_wait(other.stream)).unwrap();
        other = replaced(other);
    }
    let calls = double.count("calls");
    drop(field);
    assert!(double.count("calls") - calls < 100);
}

#[test]
fn a_stream_that_is_gone_during_a_wait_for_another_is_waited_for_too() {
    let Some(_cuda) = on_cuda_with_old_handles() else { return };
    unsafe extern "C" fn meet(barrier: *mut c_void) {
        // SAFETY: the test's barrier, which lives until the stream's work is done.
        unsafe { &*barrier.cast::<Barrier>() }.wait();
    }
    let double = Double::find().unwrap();
    let (consumer, held) = (OwnStream::new(GPU), OwnStream::new(GPU));
    let (early, late) = (OwnStream::new(GPU), OwnStream::new(GPU));
    let field = zeros_in(consumer.stream, 64);
    let record = |stream: &OwnStream| used_by(stream, &field);
    let hand = || consumer.with(|| field.make_stream_wait(consumer.stream)).unwrap();
    [&early, &late].iter().for_each(|stream| record(stream));
    let after_early = replaced(early);
    record(&after_early);
    let barrier = Barrier::new(2);
    let data = (&raw const barrier).cast_mut().cast();
    // SAFETY: the function fits its argument.
    within(GPU, || ok(unsafe { sys::cuLaunchHostFunc(held.raw(), Some(meet), data) }));
    let begun = double.count("context_syncs");
    let after_late = thread::scope(|scope| {
        let handed = scope.spawn(hand);
        while double.count("context_syncs") == begun {
            thread::yield_now();
        }
        late.write(&field);
        let after_late = replaced(late);
        record(&after_late);
        barrier.wait();
        handed.join().unwrap();
        after_late
    });
    let before = double.count("context_syncs");
    hand();
    assert_eq!(double.count("context_syncs") - before, 1);
    hand();
    assert_eq!(double.count("context_syncs") - before, 1);
    consumer.write(&field);
    drop((field, held, after_early, after_late));
}
