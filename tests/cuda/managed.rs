//! Pinned and managed memory, under the names of all devices that reach it.

use dlfield::{DType, Device, DeviceErrorKind, Error, ExchangeErrorKind, Index, Owner, Spec, Tensor};

use crate::double::on_cuda;
use crate::driver::{GPU, OwnStream, SHARED, last_gpu};
use crate::memory::{assign, elements, fill, numbers, put};

fn shared() -> [Tensor; 2] {
    SHARED.map(|device| {
        Tensor::zeros(&Spec::new(&[12, 5], DType::F64).halo(&[(1, 1), (0, 0)]).with_device(device)).unwrap()
    })
}

#[test]
fn the_same_memory_goes_under_the_names_of_all_that_reach_it() {
    let Some(_cuda) = on_cuda() else { return };
    let last = last_gpu();
    for field in shared() {
        let here = field.descriptor().device();
        for device in [Device::CPU, GPU, last, here] {
            for copy in [None, Some(false)] {
                let same = field.to_device(device, copy).unwrap();
                assert_eq!(same.descriptor().ptr(), field.descriptor().ptr());
                assert_eq!((same.descriptor().device(), same.halo()), (device, field.halo()));
            }
            let copy = field.to_device(device, Some(true)).unwrap();
            assert_ne!(copy.descriptor().ptr(), field.descriptor().ptr());
        }
        // The way back is a copy: the kind of the memory is not known any more.
        let host = field.to_device(Device::CPU, None).unwrap();
        let back = host.to_device(here, Some(false));
        assert!(matches!(back, Err(Error::Exchange(error)) if error.kind() == ExchangeErrorKind::NeedsCopy));
        assert_ne!(host.to_device(here, None).unwrap().descriptor().ptr(), host.descriptor().ptr());
        let missing = field.to_device(Device::cuda(999), None);
        assert!(
            matches!(&missing, Err(Error::Device(error)) if error.kind() == DeviceErrorKind::Unavailable),
            "{missing:?}"
        );
    }
    let field = Tensor::zeros(&Spec::new(&[3], DType::F64).with_device(GPU)).unwrap();
    assert!(
        matches!(field.to_device(Device::CPU, Some(false)), Err(Error::Exchange(error)) if error.kind() == ExchangeErrorKind::NeedsCopy)
    );
    assert!(
        matches!(field.to_device(Device::rocm(0), None), Err(Error::Device(error)) if error.kind() == DeviceErrorKind::Unsupported)
    );
}

#[test]
fn what_one_does_under_one_name_the_others_see() {
    let Some(_cuda) = on_cuda() else { return };
    let (device, stream) = (GPU, OwnStream::new(GPU));
    for field in shared() {
        let values = numbers(&field, 1);
        let on_device = field.to_device(device, None).unwrap();
        let source = Tensor::empty(&Spec::new(&[12, 5], DType::F64).with_device(device)).unwrap();
        put(&source, &values);
        stream.with(|| {
            assign(&on_device, &source).unwrap();
        });
        // Waits for the stream, which was recorded under another device.
        let host = field.to_device(Device::CPU, None).unwrap();
        // SAFETY: a compact field in host memory.
        let found = unsafe { std::slice::from_raw_parts(host.descriptor().ptr(), values.len()) };
        assert_eq!(found, values);
        // Views under two device names overlap.
        let part = |field: &Tensor, start| field.view(&[Index::Range { start, len: 11, step: 1 }]).unwrap();
        assign(&part(&on_device, 1), &part(&host, 0)).unwrap();
        assert_eq!(elements(&field), [&values[..40], &values[..440]].concat());
    }
}

/// Memory as another library exports it, which it may reuse once released.
#[test]
fn memory_of_others_is_waited_for() {
    let Some(_cuda) = on_cuda() else { return };
    let (device, stream) = (GPU, OwnStream::new(GPU));
    for field in shared() {
        let values = numbers(&field, 1);
        put(&field, &values);
        // SAFETY: the field keeps the memory.
        let other = || unsafe { Tensor::from_parts(field.descriptor().clone(), Owner::foreign(field.clone())) };
        stream.with(|| {
            // SAFETY: all are this test's.
            let copy = unsafe { other().to_device_shared(device, Some(true)) }.unwrap();
            fill(&field, &[0; 8]).unwrap();
            assert_eq!(elements(&copy), values);
            put(&field, &values);
        });
    }
}
