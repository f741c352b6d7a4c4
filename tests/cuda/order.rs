//! The order of work between streams, and between streams and the host.

use dlfield::cuda::synchronize;
use dlfield::{DType, Device, Dims, FieldSpec, Signature, Spec, Tensor};

use crate::double::{Double, WAITS, on_cuda, on_double, on_two_gpus};
use crate::driver::{GPU, OwnStream, SHARED};
use crate::memory::{assign, elements, fill, numbers, put};

fn spec(device: Device) -> Spec {
    Spec::new(&[30, 20], DType::F64).alignment_size(64).with_device(device)
}

/// Returns the elements of a field in memory that the host reaches, without waiting.
fn now(tensor: &Tensor) -> Vec<u8> {
    let bytes = usize::try_from(tensor.descriptor().nbytes()).unwrap();
    assert!(tensor.descriptor().is_c_contiguous());
    if let Some(double) = Double::find()
        && tensor.descriptor().device() != Device::CPU
    {
        double.host_access(tensor.descriptor().ptr().addr(), bytes, false);
    }
    // SAFETY: a compact field that the host reaches.
    unsafe { std::slice::from_raw_parts(tensor.descriptor().ptr(), bytes) }.to_vec()
}

#[test]
fn a_recorded_stream_waits_for_the_stream_that_allocated() {
    let Some(_cuda) = on_cuda() else { return };
    let device = GPU;
    let (one, other) = (OwnStream::new(device), OwnStream::new(device));
    let field = one.with(|| Tensor::full_bytes(&spec(device), &[3; 8]).unwrap());
    let host = other.with(|| field.to_device(Device::CPU, None).unwrap());
    assert_eq!(elements(&host), [3; 4800]);
}

#[test]
fn peers_wait_for_each_other() {
    let Some(_cuda) = on_two_gpus() else { return };
    let (here, there) = (OwnStream::new(GPU), OwnStream::new(Device::cuda(1)));
    here.with(|| {
        there.with(|| {
            for turned in [false, true] {
                let field = Tensor::full_bytes(&spec(here.device), &[4; 8]).unwrap();
                let source = if turned { field.transpose(&[1, 0]).unwrap() } else { field.clone() };
                let wanted = Spec::new(source.descriptor().shape(), DType::F64).with_device(there.device);
                let copy = Tensor::copy_of(&wanted, &source).unwrap();
                fill(&field, &[5; 8]).unwrap();
                drop((field, source));
                let host = copy.to_device(Device::CPU, None).unwrap();
                assert_eq!(elements(&host), [4; 4800]);
            }
        });
    });
}

#[test]
fn the_host_waits_for_what_devices_do_with_its_memory() {
    let Some(_cuda) = on_cuda() else { return };
    let (device, stream) = (GPU, OwnStream::new(GPU));
    for place in SHARED {
        let compact = Spec::new(&[30, 20], DType::F64);
        let shared = Tensor::empty(&compact.clone().with_device(place)).unwrap();
        stream.with(|| {
            let field = Tensor::full_bytes(&spec(device), &[6; 8]).unwrap();
            assign(&shared, &field).unwrap();
        });
        // Outside the stream, which is recorded for the memory.
        let host = shared.to_device(Device::CPU, Some(true)).unwrap();
        assert_eq!(now(&host), [6; 4800], "{place}");
        let field = stream.with(|| shared.to_device(device, Some(true)).unwrap());
        fill(&shared, &[7; 8]).unwrap();
        assert_eq!(now(&shared), [7; 4800], "{place}");
        assert_eq!(elements(&field), [6; 4800], "{place}");
    }
}

#[test]
fn copies_with_pinned_memory_wait_for_nothing() {
    let Some((_cuda, double)) = on_double(&[]) else { return };
    let (device, stream) = (GPU, OwnStream::new(GPU));
    stream.with(|| {
        for place in [Device::CUDA_HOST, device] {
            let pinned = Tensor::empty(&spec(place)).unwrap();
            let values = numbers(&pinned, 8);
            put(&pinned, &values);
            let before = double.counts(WAITS);
            let field = pinned.to_device(device, Some(true)).unwrap();
            let back =
                Tensor::copy_of(&Spec::new(&[30, 20], DType::F64).with_device(Device::CUDA_HOST), &field).unwrap();
            assert_eq!(double.counts(WAITS), before);
            synchronize(device, stream.stream).unwrap();
            assert_eq!(now(&back), values);
            // Work that is still queued on the stream keeps the memory.
            let copy = pinned.to_device(device, Some(true)).unwrap();
            drop((pinned, field, back));
            assert_eq!(elements(&copy), values);
        }
    });
}

#[test]
fn a_bound_argument_waits_for_the_work_on_it() {
    let Some(_cuda) = on_cuda() else { return };
    let (device, stream) = (GPU, OwnStream::new(GPU));
    let signature = Signature::new([("x", FieldSpec::new(DType::F64, Dims::standard(2)))]).unwrap();
    for place in SHARED {
        let shared = Tensor::empty(&Spec::new(&[30, 20], DType::F64).with_device(place)).unwrap();
        stream.with(|| {
            let field = Tensor::full_bytes(&spec(device), &[6; 8]).unwrap();
            assign(&shared, &field).unwrap();
        });
        let bound = signature.bind_or_copy(&[("x", &shared)]).unwrap();
        assert_eq!(bound.copied().count(), 0);
        assert_eq!(now(&shared), [6; 4800], "{place}");
    }
}
