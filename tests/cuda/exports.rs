//! Memory that is handed to another library: the consumer's stream waits for the work of every recorded stream.

use dlfield::cuda::{Stream, with_stream};
use dlfield::{DType, Device, Index, Spec, Tensor};

use crate::cudarc_user::{new_stream, of, on_cuda_with_cudarc, record, run_recorded, write_in, zeros_in};
use crate::double::{WAITS, on_cuda, on_double, on_two_gpus};
use crate::driver::{GPU, OwnStream, SHARED, finish_everything, is_capturing};

/// Uses a field on a stream, as a kernel would.
fn used_by(stream: &OwnStream, field: &Tensor) {
    stream.with(|| {
        field.make_stream_wait(stream.stream).unwrap();
        stream.write(field);
    });
}

/// Exports a field with a current stream to the stream of a consumer.
fn hand(field: &Tensor, current: &OwnStream, consumer: &OwnStream) -> dlfield::Result<()> {
    current.with(|| field.make_stream_wait(consumer.stream))
}

#[test]
fn the_consumer_waits_for_kernels_of_all_streams() {
    let Some(_cuda) = on_cuda_with_cudarc() else { return };
    let (own, consumer) = (new_stream(0), new_stream(0));
    let others = [new_stream(0), new_stream(0), new_stream(0)];
    for current in [&own, &others[0], &consumer] {
        let field = zeros_in(of(&own), 1024);
        let parts = [0, 300, 600].map(|start| field.view(&[Index::Range { start, len: 300, step: 1 }]).unwrap());
        for (other, part) in std::iter::zip(&others, &parts) {
            let _ = field.cuda_view::<f64>(other).unwrap();
            write_in(other, part);
        }
        with_stream(GPU, of(current), || field.make_stream_wait(of(&consumer))).unwrap();
        write_in(&consumer, &field);
        // A consumer finishes its work before it releases the memory.
        consumer.synchronize().unwrap();
        drop(field);
    }
}

#[test]
fn the_consumer_waits_for_the_later_work_of_the_first_stream() {
    let Some(_cuda) = on_cuda() else { return };
    let (own, current, consumer) = (OwnStream::new(GPU), OwnStream::new(GPU), OwnStream::new(GPU));
    let field = zeros_in(own.stream, 64);
    for current in [&current, &consumer, &own] {
        used_by(&own, &field);
        hand(&field, current, &consumer).unwrap();
        consumer.with(|| {
            consumer.write(&field);
            // The consumer gives it back.
            field.make_stream_wait(own.stream).unwrap();
        });
    }
}

#[test]
fn the_consumer_waits_for_streams_of_all_devices() {
    let Some(_cuda) = on_two_gpus() else { return };
    for place in SHARED {
        let (one, other) = (OwnStream::new(Device::cuda(0)), OwnStream::new(Device::cuda(1)));
        let consumer = OwnStream::new(Device::cuda(0));
        let field = Tensor::zeros(&Spec::new(&[64], DType::F64).with_device(place)).unwrap();
        let read_on = |stream: &OwnStream| stream.with(|| field.to_device(stream.device, Some(true))).unwrap();
        let copies = [read_on(&one), read_on(&other)];
        hand(&field, &consumer, &consumer).unwrap();
        consumer.write(&field);
        finish_everything();
        drop((field, copies));
    }
}

#[test]
fn no_host_waits_and_nothing_is_done_without_other_streams() {
    let Some((_cuda, double)) = on_double(&[]) else { return };
    let (own, other, consumer) = (OwnStream::new(GPU), OwnStream::new(GPU), OwnStream::new(GPU));
    let field = zeros_in(own.stream, 64);
    let before = double.counts(WAITS);
    let calls = |current, consumer| {
        let before = double.count("calls");
        hand(&field, current, consumer).unwrap();
        double.count("calls") - before
    };
    used_by(&other, &field);
    assert!(calls(&own, &consumer) <= 50);
    assert_eq!(double.counts(WAITS), before);
}

#[test]
fn a_stream_that_is_captured_cannot_be_waited_for() {
    let Some(_cuda) = on_cuda() else { return };
    let (own, other, consumer) = (OwnStream::new(GPU), OwnStream::new(GPU), OwnStream::new(GPU));
    let field = zeros_in(own.stream, 64);
    other.with(|| {
        field.make_stream_wait(other.stream).unwrap();
        // The capture would fail if this invalidated it.
        drop(other.record(|| assert!(is_capturing(hand(&field, &own, &consumer)))));
        hand(&field, &own, &consumer).unwrap();
    });
}

#[test]
fn a_captured_consumer_comes_after_all_work_before_the_capture() {
    let Some(_cuda) = on_cuda_with_cudarc() else { return };
    let (own, other, consumer) = (new_stream(0), new_stream(0), new_stream(0));
    let field = zeros_in(of(&own), 1024);
    let _ = field.cuda_view::<f64>(&other).unwrap();
    let _ = field.cuda_view::<f64>(&consumer).unwrap();
    write_in(&other, &field);
    record(&consumer);
    with_stream(GPU, of(&consumer), || field.make_stream_wait(of(&consumer))).unwrap();
    write_in(&consumer, &field);
    run_recorded(&consumer);
}

#[test]
fn streams_of_one_capture_are_ordered_in_its_graph() {
    let Some(_cuda) = on_cuda_with_cudarc() else { return };
    let (own, branch) = (new_stream(0), new_stream(0));
    let field = zeros_in(of(&own), 1024);
    let _ = field.cuda_view::<f64>(&branch).unwrap();
    own.synchronize().unwrap();
    branch.synchronize().unwrap();
    record(&own);
    branch.join(&own).unwrap();
    write_in(&branch, &field);
    with_stream(GPU, of(&own), || field.make_stream_wait(of(&own))).unwrap();
    write_in(&own, &field);
    run_recorded(&own);
}

#[test]
fn a_captured_blocking_stream_that_has_waited_for_the_allocation_is_a_consumer() {
    let Some(_cuda) = on_cuda() else { return };
    let stream = OwnStream::blocking(GPU);
    let field = zeros_in(Stream::LEGACY, 64);
    hand(&field, &stream, &stream).unwrap();
    drop(stream.record(|| {
        hand(&field, &stream, &stream).unwrap();
        stream.write(&field);
    }));
}
