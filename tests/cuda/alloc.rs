//! Device memory: alignment, contents, freeing, and the errors when there is none.

use dlfield::cuda::{Stream, device_count};
use dlfield::{DType, Device, DeviceErrorKind, Error, Preset, Spec, Tensor};

use crate::double::{Double, on_cuda, on_double};
use crate::driver::{GPU, OwnStream, PLACES, current, last_gpu};
use crate::memory::{elements, numbers, put};

#[test]
fn blocks_and_aligned_indices_start_where_they_should() {
    let Some(_cuda) = on_cuda() else { return };
    for name in ["gt:gpu", "gtcuda", "dace:gpu", "dace:gpu_IJK", "cupy"] {
        let preset = Preset::find(name).unwrap();
        let spec = Spec::new(&[7, 6, 5], DType::F64).preset(preset);
        let field = Tensor::zeros(&spec).unwrap();
        let descriptor = field.descriptor();
        assert_eq!(descriptor.device(), GPU, "{name}");
        assert!(descriptor.ptr().addr().is_multiple_of(256), "{name}");
        let host = Tensor::zeros(&spec.with_device(Device::CPU)).unwrap();
        assert_eq!(descriptor.strides(), host.descriptor().strides(), "{name}");
    }
    for alignment in [64usize, 512, 4096] {
        let spec = Spec::new(&[6, 50], DType::F32)
            .with_device(GPU)
            .aligned_index(&[1, 3])
            .alignment_size(i64::try_from(alignment).unwrap());
        let field = Tensor::zeros(&spec).unwrap();
        let at = field.descriptor().ptr().addr() + usize::try_from(4 * (field.descriptor().strides()[0] + 3)).unwrap();
        assert!(at.is_multiple_of(alignment), "{alignment}");
    }
}

#[test]
fn a_failed_allocation_is_named_and_nothing_is_lost() {
    let Some(_cuda) = on_cuda() else { return };
    for device in PLACES {
        let spec = Spec::new(&[1 << 20, 1 << 20, 1 << 10], DType::F64).with_device(device);
        if device != Device::CUDA_MANAGED || Double::find().is_some() {
            let refused = Tensor::empty(&spec);
            assert!(matches!(refused, Err(Error::Memory(error)) if error.got().contains(&device.to_string())));
        }
        let Some(double) = Double::find() else { continue };
        double.fail_allocation(0);
        let small = Spec::new(&[10], DType::F64).with_device(device);
        assert!(matches!(Tensor::zeros(&small), Err(Error::Memory(_))));
        Tensor::zeros(&small).unwrap();
    }
}

#[test]
fn memory_goes_back_if_what_comes_after_fails() {
    let Some((_cuda, double)) = on_double(&[]) else { return };
    let spec = Spec::new(&[10], DType::F64).with_device(GPU);
    for (function, zeros) in [("cuMemsetD8Async", true), ("cuMemsetD32Async", false), ("cuLaunchKernel", false)] {
        double.fail(function, 700);
        let element = if function == "cuLaunchKernel" { 0.1f64.to_ne_bytes() } else { [1, 2, 3, 4, 1, 2, 3, 4] };
        let failed = if zeros { Tensor::zeros(&spec) } else { Tensor::full_bytes(&spec, &element) };
        let Err(Error::Device(error)) = failed else { panic!("{function}: {failed:?}") };
        assert_eq!(error.kind(), DeviceErrorKind::Driver, "{error}");
        assert!(error.got().starts_with(function) && error.got().ends_with("(700)"), "{error}");
    }
}

#[test]
fn devices_and_streams_that_are_not_there_are_named() {
    let Some(_cuda) = on_cuda() else { return };
    let missing = Device::cuda(u16::try_from(device_count()).unwrap());
    let refused = Tensor::zeros(&Spec::new(&[3], DType::F64).with_device(missing));
    assert!(matches!(refused, Err(Error::Device(error)) if error.kind() == DeviceErrorKind::Unavailable));
    // SAFETY: 0 is rejected before the driver is asked.
    let refused = unsafe { Stream::borrow_raw(GPU, 0) };
    assert!(matches!(refused, Err(Error::Device(error)) if error.kind() == DeviceErrorKind::Stream));
}

#[test]
fn memory_goes_back_from_any_thread() {
    let Some(_cuda) = on_cuda() else { return };
    let last = last_gpu();
    let fields: Vec<_> = [GPU, last, Device::CUDA_HOST, Device::CUDA_MANAGED]
        .map(|device| Tensor::zeros(&Spec::new(&[100], DType::F64).with_device(device)).unwrap())
        .into();
    std::thread::spawn(move || {
        assert_eq!(current(), 0);
        drop(fields);
        assert_eq!(current(), 0);
    })
    .join()
    .unwrap();
}

#[test]
fn memory_goes_back_when_its_stream_is_gone() {
    let Some(_cuda) = on_cuda() else { return };
    let stream = OwnStream::new(GPU);
    let fields = stream.with(|| {
        PLACES.map(|place| Tensor::full_bytes(&Spec::new(&[100], DType::F64).with_device(place), &[7; 8]).unwrap())
    });
    if Double::find().is_none() {
        // On hardware the handle of a destroyed stream may be anything.
        return drop(fields);
    }
    drop(stream);
    assert_eq!(elements(&fields[0]), [7; 800]);
    drop(fields);
}

#[test]
fn memory_goes_back_after_the_work_of_all_streams() {
    let Some(_cuda) = on_cuda() else { return };
    let device = GPU;
    let (one, other) = (OwnStream::new(device), OwnStream::new(device));
    let spec = Spec::new(&[1000], DType::F64).with_device(device);
    let source = one.with(|| Tensor::empty(&spec).unwrap());
    let values = numbers(&source, 1);
    put(&source, &values);
    let copy = other.with(|| source.to_device(device, Some(true)).unwrap());
    one.with(|| {
        drop(source);
        // This most likely gets the same memory again.
        drop(Tensor::full_bytes(&spec, &[9; 8]).unwrap());
    });
    assert_eq!(elements(&copy), values);
}
