//! Work captured into a graph, and run later.

use dlfield::{DType, Device, Index, Spec, Tensor};

use crate::double::{on_cuda, on_two_gpus, tolerating};
use crate::driver::{GPU, OwnStream, PLACES, finish_everything, is_capturing};
use crate::memory::{assign, elements, fill, numbers, put};

#[test]
fn copies_and_fills_are_captured_and_replayed() {
    let Some(_cuda) = on_cuda() else { return };
    let (device, stream) = (GPU, OwnStream::new(GPU));
    for place in PLACES {
        let spec = |shape: &[i64], device| Spec::new(shape, DType::F64).alignment_size(64).with_device(device);
        let source = Tensor::empty(&spec(&[20, 30], place)).unwrap();
        let turned = Tensor::zeros(&spec(&[30, 20], device)).unwrap();
        let padded = Tensor::zeros(&spec(&[20, 30], device)).unwrap();
        let back = Tensor::zeros(&spec(&[20, 30], place)).unwrap();
        let filled = Tensor::zeros(&spec(&[20, 30], device)).unwrap();
        finish_everything();
        let graph = stream.with(|| {
            stream.record(|| {
                assign(&turned, &source.transpose(&[1, 0]).unwrap()).unwrap();
                assign(&padded, &turned.transpose(&[1, 0]).unwrap()).unwrap();
                assign(&back, &padded).unwrap();
                fill(&filled, &0.1f64.to_ne_bytes()).unwrap();
            })
        });
        for seed in 1..4 {
            let values = numbers(&source, seed);
            put(&source, &values);
            put(&filled, &values);
            assert_ne!(elements(&back), values);
            stream.launch(&graph);
            assert_eq!(elements(&back), values, "{place}");
            assert_eq!(elements(&filled), 0.1f64.to_ne_bytes().repeat(600));
        }
    }
}

#[test]
fn a_wait_of_the_host_is_refused_and_the_capture_continues() {
    let Some(_cuda) = on_cuda() else { return };
    let (device, stream) = (GPU, OwnStream::new(GPU));
    let spec = |device| Spec::new(&[6, 5], DType::F32).with_device(device);
    let (field, host) = (Tensor::zeros(&spec(device)).unwrap(), Tensor::zeros(&spec(Device::CPU)).unwrap());
    let one = Tensor::full_bytes(&Spec::new(&[], DType::F32), &2.5f32.to_ne_bytes()).unwrap();
    finish_everything();
    let graph = stream.with(|| {
        stream.record(|| {
            assert!(is_capturing(assign(&field, &host)));
            assert!(is_capturing(assign(&host, &field)));
            assert!(is_capturing(field.to_device(Device::CPU, None)));
            // A number is captured by its value.
            assign(&field, &one).unwrap();
        })
    });
    stream.launch(&graph);
    assert_eq!(elements(&field), 2.5f32.to_ne_bytes().repeat(30));
    assert_eq!(elements(&host), [0; 120]);
}

#[test]
fn memory_is_allocated_and_freed_during_graph_capture() {
    let Some(_cuda) = on_cuda() else { return };
    let (device, stream) = (GPU, OwnStream::new(GPU));
    let source = Tensor::full_bytes(&Spec::new(&[50], DType::F64).with_device(device), &[1; 8]).unwrap();
    let gone = Tensor::zeros(&Spec::new(&[50], DType::F64).with_device(device)).unwrap();
    finish_everything();
    let mut copy = None;
    let graph = stream.with(|| {
        stream.record(|| {
            drop(gone);
            copy = Some(source.to_device(device, Some(true)).unwrap());
        })
    });
    let copy = copy.unwrap();
    assert_ne!(elements(&copy), [1; 400]);
    stream.launch(&graph);
    assert_eq!(elements(&copy), [1; 400]);
}

#[test]
fn copies_from_a_peer_are_captured_if_they_need_no_staging_buffer() {
    let Some(_cuda) = on_two_gpus() else { return };
    let stream = OwnStream::new(Device::cuda(1));
    let source = Tensor::empty(&Spec::new(&[20, 30], DType::F64).with_device(Device::cuda(0))).unwrap();
    let padded = Spec::new(&[20, 30], DType::F64).alignment_size(64).with_device(stream.device);
    let (field, other) = (Tensor::zeros(&padded).unwrap(), Tensor::zeros(&padded).unwrap());
    finish_everything();
    let graph = stream.with(|| {
        stream.record(|| {
            assign(&field, &source).unwrap();
            let turned = source.view(&[Index::All, Index::Range { start: 0, len: 20, step: 1 }]);
            let turned = turned.unwrap().transpose(&[1, 0]).unwrap();
            let part = other.view(&[Index::All, Index::Range { start: 0, len: 20, step: 1 }]);
            assert!(is_capturing(assign(&part.unwrap(), &turned)));
        })
    });
    let values = numbers(&source, 2);
    put(&source, &values);
    stream.launch(&graph);
    assert_eq!(elements(&field), values);
}

/// Runs in its own process, as another test may have loaded the kernels.
#[test]
fn kernels_are_loaded_during_graph_capture() {
    const ALONE: &str = "DLFIELD_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let name = "capture::kernels_are_loaded_during_graph_capture";
        let program = std::env::current_exe().unwrap();
        let ended = std::process::Command::new(program).args(["--exact", name]).env(ALONE, "1").output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
        return;
    }
    let Some(_cuda) = tolerating(&[]) else { return };
    let (device, stream) = (GPU, OwnStream::new(GPU));
    let field = Tensor::empty(&Spec::new(&[20], DType::C128).with_device(device)).unwrap();
    finish_everything();
    let element: Vec<u8> = (1..=16).collect();
    let graph = stream.with(|| stream.record(|| fill(&field, &element).unwrap()));
    stream.launch(&graph);
    assert_eq!(elements(&field), element.repeat(20));
}
