//! Destroyed, per-thread and captured streams: work on the memory keeps its order.

use std::sync::Arc;

use dlfield::cuda::{Stream, with_stream};
use dlfield::cudarc::driver::{CudaContext, sys};
use dlfield::ndarray::Ix1;
use dlfield::{DType, DeviceErrorKind, Error, Index, Spec, Tensor};

use crate::cudarc_user::{
    new_stream, of, on_cuda_with_cudarc as on_cuda, record, recorded, run_recorded, write_in, zeros_in,
};
use crate::double::Double;
use crate::driver::{GPU, OwnStream, PLACES, SHARED, is_capturing};
use crate::memory::{assign, fill};

#[test]
fn the_default_stream_of_another_thread_is_waited_for() {
    let Some(_cuda) = on_cuda() else { return };
    let field = zeros_in(Stream::PER_THREAD, 1024);
    let stream = CudaContext::new(0).unwrap().per_thread_stream();
    let _ = field.cuda_view::<f64>(&stream).unwrap();
    write_in(&stream, &field);
    // The other thread frees it under the same handle, which is another stream there.
    std::thread::spawn(move || drop(field)).join().unwrap();
}

#[test]
fn the_default_stream_of_one_thread_is_handed_to_that_of_another() {
    let Some(_cuda) = on_cuda() else { return };
    let field = zeros_in(Stream::PER_THREAD, 1024);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stream = CudaContext::new(0).unwrap().per_thread_stream();
            with_stream(GPU, Stream::PER_THREAD, || field.make_stream_wait(Stream::PER_THREAD)).unwrap();
            write_in(&stream, &field);
            stream.synchronize().unwrap();
        });
    });
}

#[test]
fn the_default_streams_of_two_threads_are_two_streams() {
    let Some(_cuda) = on_cuda() else { return };
    let own = new_stream(0);
    let field = zeros_in(of(&own), 1024);
    for start in [0, 512] {
        let part = field.view(&[Index::Range { start, len: 512, step: 1 }]).unwrap();
        let write = move || {
            let stream = CudaContext::new(0).unwrap().per_thread_stream();
            let _ = part.cuda_view::<f64>(&stream).unwrap();
            write_in(&stream, &part);
        };
        std::thread::spawn(write).join().unwrap();
    }
    drop(field);
}

#[test]
fn few_streams_are_kept_for_one_field() {
    let Some(_cuda) = on_cuda() else { return };
    let field = zeros_in(Stream::LEGACY, 1024);
    let first = new_stream(0);
    for number in 0..100 {
        let stream = if number == 0 { first.clone() } else { new_stream(0) };
        let _ = field.cuda_view::<f64>(&stream).unwrap();
    }
    assert_eq!(Arc::strong_count(&first), 1);
    drop(field);
}

#[test]
fn a_stream_is_kept_as_long_as_its_view_may_be_at_work() {
    let Some(_cuda) = on_cuda() else { return };
    let (own, other) = (new_stream(0), new_stream(0));
    let field = zeros_in(of(&own), 1024);
    let _ = field.cuda_view::<f64>(&other).unwrap();
    write_in(&other, &field);
    drop(other);
    drop(field);
    own.synchronize().unwrap();
}

#[test]
fn a_captured_view_comes_after_the_allocation() {
    let Some(_cuda) = on_cuda() else { return };
    let (own, other) = (new_stream(0), new_stream(0));
    let field = zeros_in(of(&own), 1024);
    record(&other);
    let _ = field.cuda_view::<f64>(&other).unwrap();
    write_in(&other, &field);
    run_recorded(&other);
}

#[test]
fn an_order_that_failed_is_tried_again() {
    let Some(_cuda) = on_cuda() else { return };
    let Some(double) = Double::find() else { return };
    let (own, other) = (new_stream(0), new_stream(0));
    let field = zeros_in(of(&own), 1024);
    double.fail("cuStreamWaitEvent", 2);
    assert!(
        matches!(field.cuda_view::<f64>(&other), Err(Error::Device(error)) if error.kind() == DeviceErrorKind::Driver)
    );
    let _ = field.cuda_view::<f64>(&other).unwrap();
    write_in(&other, &field);
}

#[test]
fn what_came_from_another_library_is_handed_on() {
    let Some(_cuda) = on_cuda() else { return };
    let (own, other) = (new_stream(0), new_stream(0));
    let field = zeros_in(of(&own), 1024);
    field.make_stream_wait(of(&own)).unwrap();
    // SAFETY: the struct is this library's own.
    let imported = with_stream(GPU, of(&own), || unsafe { Tensor::from_managed(field.to_versioned(false).unwrap()) });
    let imported = imported.unwrap();
    with_stream(GPU, of(&own), || imported.make_stream_wait(of(&other))).unwrap();
    write_in(&other, &imported);
    other.synchronize().unwrap();
    drop((field, imported));
}

#[test]
fn a_view_of_the_host_comes_after_work_of_devices() {
    let Some(_cuda) = on_cuda() else { return };
    for device in SHARED {
        let other = new_stream(0);
        let mut field = Tensor::zeros(&Spec::new(&[4], DType::U8).with_device(device)).unwrap();
        let written = |field: &Tensor| {
            with_stream(GPU, of(&other), || {
                field.make_stream_wait(of(&other)).unwrap();
                write_in(&other, field);
            });
        };
        written(&field);
        assert_eq!(field.array_view_mut::<u8, Ix1>().unwrap().to_vec(), [1; 4], "{device}");
        written(&field);
        drop(field);
    }
}

#[test]
fn a_slice_is_refused_during_graph_capture_and_freed_after() {
    let Some(_cuda) = on_cuda() else { return };
    let (own, consumer, unrelated) = (new_stream(0), new_stream(0), new_stream(0));
    let field = zeros_in(of(&own), 1024);
    let _ = field.cuda_view::<f64>(&consumer).unwrap();
    own.synchronize().unwrap();
    consumer.synchronize().unwrap();
    record(&consumer);
    write_in(&consumer, &field);
    assert!(is_capturing(field.into_cuda_slice::<f64>(&unrelated)));
    // The memory is still there when the graph runs.
    run_recorded(&consumer);
    // The next drop releases it.
    drop(zeros_in(of(&unrelated), 1));
}

#[test]
fn memory_is_allocated_and_freed_while_another_stream_is_captured() {
    let Some(_cuda) = on_cuda() else { return };
    let (own, other) = (new_stream(0), new_stream(0));
    let spec = |device| Spec::new(&[8], DType::F64).with_device(device);
    let before = PLACES.map(|device| Tensor::zeros(&spec(device)).unwrap());
    own.synchronize().unwrap();
    other.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL).unwrap();
    let status = || other.capture_status().unwrap();
    for device in PLACES {
        drop(with_stream(GPU, of(&own), || Tensor::zeros(&spec(device))).unwrap());
        assert_eq!(status(), sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE, "{device}");
    }
    for field in before {
        std::thread::scope(|scope| {
            scope.spawn(|| drop(field));
        });
        assert_eq!(status(), sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
    }
    drop(recorded(&other));
}

#[test]
fn memory_is_used_in_a_capture_after_it_was_written() {
    let Some(_cuda) = on_cuda() else { return };
    let (own, other) = (new_stream(0), new_stream(0));
    let field = zeros_in(of(&own), 1024);
    record(&other);
    with_stream(GPU, of(&own), || field.make_stream_wait(of(&other))).unwrap();
    write_in(&other, &field);
    // The other direction would pull the stream into the graph.
    let refused = with_stream(GPU, of(&other), || field.make_stream_wait(of(&own)));
    assert!(is_capturing(refused));
    run_recorded(&other);
}

#[test]
fn frees_deferred_by_a_capture_happen_step_by_step() {
    let Some(_cuda) = on_cuda() else { return };
    let Some(double) = Double::find() else { return };
    let stream = new_stream(0);
    let before = double.count("leaks");
    let fields: Vec<Tensor> = (0..200).map(|_| zeros_in(of(&stream), 8)).collect();
    for field in &fields {
        let _ = field.cuda_view::<f64>(&stream).unwrap();
    }
    stream.synchronize().unwrap();
    record(&stream);
    let calls = double.count("calls");
    drop(fields);
    assert!(double.count("calls") - calls < 200 * 100, "each drop tries a few again, not all");
    drop(recorded(&stream));
    for _ in 0..50 {
        drop(zeros_in(of(&stream), 8));
    }
    stream.synchronize().unwrap();
    assert_eq!(double.count("leaks"), before);
}

#[test]
fn what_a_blocking_stream_records_is_not_waited_for_by_the_legacy_one() {
    let Some(_cuda) = on_cuda() else { return };
    let stream = OwnStream::blocking(GPU);
    let (before, exported) = (zeros_in(Stream::LEGACY, 8), zeros_in(Stream::LEGACY, 8));
    // The capture fails if any of this invalidates it.
    let graph = stream.record(|| {
        assert!(is_capturing(fill(&before, &[1; 8])));
        assert!(is_capturing(stream.with(|| exported.make_stream_wait(Stream::LEGACY))));
        assert!(is_capturing(dlfield::cuda::synchronize(GPU, Stream::LEGACY)));
        drop(zeros_in(Stream::LEGACY, 8));
    });
    drop((graph, exported));
    fill(&before, &[1; 8]).unwrap();
}

#[test]
fn memory_of_another_threads_default_stream_is_freed_during_capture() {
    let Some(_cuda) = on_cuda() else { return };
    let field = std::thread::spawn(|| zeros_in(Stream::PER_THREAD, 1024)).join().unwrap();
    let stream = OwnStream::new(GPU);
    let graph = stream.record(|| drop(field));
    drop(graph);
}

#[test]
fn temporary_memory_is_not_captured() {
    let Some(_cuda) = on_cuda() else { return };
    let stream = OwnStream::new(GPU);
    let field = zeros_in(stream.stream, 8);
    let part = |start| field.view(&[Index::Range { start, len: 7, step: 1 }]).unwrap();
    let graph = stream.record(|| {
        assert!(is_capturing(stream.with(|| assign(&part(1), &part(0)))));
    });
    stream.launch(&graph);
}
