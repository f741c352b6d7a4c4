//! Destroyed streams: the driver crashes on their handles, and memory that they used waits for their work by events.

use dlfield::cuda::{Stream, with_stream};
use dlfield::{DType, Device, Owner, Spec, Tensor};

use crate::cudarc_user::zeros_in;
use crate::double::{Double, on_cuda, on_double, on_two_gpus};
use crate::driver::{GPU, OwnStream, PLACES, SHARED, finish_everything, gpus};
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

/// Destroys a stream, and creates another one, with its handle if the double can.
fn replaced(stream: OwnStream) -> OwnStream {
    let device = stream.device;
    drop(stream);
    OwnStream::new(device)
}

#[test]
fn work_of_a_stream_that_is_gone_is_waited_for_on_every_device() {
    let Some(_cuda) = on_cuda() else { return };
    for place in SHARED {
        for device in gpus() {
            let shared = zeros(place);
            let stream = OwnStream::new(device);
            let copy = copy_in(&stream, &shared);
            drop(stream);
            drop(shared);
            assert_eq!(elements(&copy), [0; 512], "{place}, {device}");
        }
    }
}

#[test]
fn streams_that_are_left_are_waited_for_beside_those_that_are_gone() {
    let Some(_cuda) = on_two_gpus() else { return };
    for place in SHARED {
        for gone_first in [false, true] {
            let shared = zeros(place);
            let (one, other) = (OwnStream::new(Device::cuda(0)), OwnStream::new(Device::cuda(1)));
            let copies = [copy_in(&one, &shared), copy_in(&other, &shared)];
            let (gone, left) = if gone_first { (one, other) } else { (other, one) };
            drop(gone);
            drop(shared);
            drop((copies, left));
        }
    }
}

#[test]
fn memory_outlives_the_stream_that_allocated_it() {
    let Some(_cuda) = on_cuda() else { return };
    for reused in [false, true] {
        Double::find().inspect(|double| double.reuse_streams(reused));
        let own = OwnStream::new(GPU);
        let field = zeros_in(own.stream, 64);
        fill_in(&own, &field);
        let next = replaced(own);
        let copy = copy_in(&next, &field);
        assert_eq!(elements(&copy), [1; 512]);
        fill_in(&next, &field);
        let last = replaced(next);
        drop(field);
        drop(last);
    }
}

#[test]
fn a_consumer_waits_for_the_work_of_streams_that_are_gone() {
    let Some(_cuda) = on_cuda() else { return };
    for place in PLACES {
        let field = zeros(place);
        let (one, other, consumer) = (OwnStream::new(GPU), OwnStream::new(GPU), OwnStream::new(GPU));
        fill_in(&one, &field);
        drop(one);
        fill_in(&replaced(other), &field);
        field.make_stream_wait(consumer.stream).unwrap();
        consumer.write(&field);
        finish_everything();
        drop(consumer);
        assert_eq!(elements(&field.to_device(Device::CPU, Some(true)).unwrap()), [1; 512], "{place}");
    }
}

/// A consumer works with the memory after the export, and its stream is gone before it releases it.
#[test]
fn the_work_of_a_consumer_on_a_blocking_stream_is_waited_for() {
    let Some(_cuda) = on_cuda() else { return };
    for place in PLACES {
        for stream in [Stream::LEGACY, Stream::PER_THREAD] {
            let field = with_stream(GPU, stream, || zeros(place));
            let consumer = OwnStream::blocking(GPU);
            field.make_stream_wait(consumer.stream).unwrap();
            // SAFETY: the struct keeps the memory.
            let theirs = unsafe { Tensor::from_parts(field.descriptor().clone(), Owner::foreign(())) };
            let managed = field.to_versioned(false).unwrap();
            drop(field);
            consumer.write(&theirs);
            drop(consumer);
            drop(managed);
        }
    }
}

#[test]
fn threads_destroy_streams_of_memory_that_others_drop() {
    let Some(_cuda) = on_cuda() else { return };
    let stream = OwnStream::new(GPU);
    let field = zeros_in(stream.stream, 64);
    std::thread::scope(|scope| {
        scope.spawn(|| fill_in(&stream, &field)).join().unwrap();
        scope.spawn(|| fill_in(&OwnStream::new(GPU), &field)).join().unwrap();
    });
    std::thread::spawn(move || drop(stream)).join().unwrap();
    std::thread::spawn(move || drop(field)).join().unwrap();
}

#[test]
fn many_streams_leave_nothing_behind() {
    let Some((_cuda, double)) = on_double(&[]) else { return };
    let field = zeros(GPU);
    let rounds = |count: u64| {
        let before = double.count("calls");
        for _ in 0..count {
            let stream = OwnStream::new(GPU);
            fill_in(&stream, &field);
            stream.with(|| field.make_stream_wait(stream.stream)).unwrap();
        }
        finish_everything();
        double.count("calls") - before
    };
    rounds(10);
    let few = rounds(100);
    assert!(rounds(1000) <= few * 11, "each stream costs more than the one before");
}
