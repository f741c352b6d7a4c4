//! Guards of `Tensor::read`, copies into vectors and arrays, and `dispatch!`.

use std::sync::Barrier;
use std::thread;

use dlfield::ndarray::{Ix1, Ix2, Ix3, IxDyn};
use dlfield::{DType, Error, ExchangeErrorKind, Index, Layout, Preset, Spec, Tensor, dispatch};

use crate::lending::is_exported_error;

fn is_guarded<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Exchange(error)) if error.kind() == ExchangeErrorKind::Borrowed)
}

#[test]
fn memory_is_not_exported_beside_a_guard() {
    let mut field = Tensor::from(vec![1.0f64, 2.0, 3.0]);
    let (clone, part) = (field.clone(), field.view(&[Index::Range { start: 2, len: 3, step: -1 }]).unwrap());
    let (one, other) = (field.read::<f64, Ix1>().unwrap(), part.read::<f64, IxDyn>().unwrap());
    assert_eq!((one.sum(), other[[0]]), (6.0, 3.0));
    assert!(is_guarded(clone.to_versioned(false)) && is_guarded(part.to_legacy()));
    drop(one);
    assert!(is_guarded(field.to_versioned(false)), "one guard is left");
    drop(other);
    assert!(!field.read::<f64, Ix1>().unwrap().is_empty(), "a failed export leaves no mark");
    let managed = field.to_versioned(false).unwrap();
    assert!(is_exported_error(clone.read::<f64, Ix1>()) && is_exported_error(clone.to_vec::<f64>()));
    drop((managed, clone, part));
    assert_eq!(field.array_view_mut::<f64, Ix1>().unwrap().sum(), 6.0);
    assert_eq!(field.read::<f64, Ix1>().unwrap().sum(), 6.0, "the only owner again");
}

#[test]
fn a_forgotten_guard_prevents_exports_of_its_memory_only() {
    let spec = Spec::new(&[8], DType::F64);
    let field = Tensor::zeros(&spec).unwrap();
    std::mem::forget(field.read::<f64, Ix1>().unwrap());
    assert!(is_guarded(field.to_versioned(false)));
    drop(field);
    // The block may be used again.
    for _ in 0..4 {
        assert!(Tensor::zeros(&spec).unwrap().to_versioned(false).is_ok());
    }
}

/// In a race both may fail, but never succeed.
#[test]
fn a_guard_and_an_export_of_two_threads_exclude_each_other() {
    for _ in 0..200 {
        let field = Tensor::from(vec![0u8; 16]);
        let (clone, start) = (field.clone(), Barrier::new(2));
        thread::scope(|scope| {
            let exporter = scope.spawn(|| {
                start.wait();
                clone.to_versioned(false).map(drop)
            });
            start.wait();
            let guard = field.read::<u8, Ix1>();
            let exported = exporter.join().unwrap();
            assert!(guard.is_err() || is_guarded(exported));
        });
    }
}

#[test]
fn a_guard_rejects_what_does_not_fit() {
    let field = Tensor::zeros(&Spec::new(&[2, 3], DType::I32)).unwrap();
    let text = |result: Result<_, Error>| result.map(drop).unwrap_err().to_string();
    assert_eq!(text(field.read::<f32, Ix2>().map(drop)), "dtype: expected float32, got int32");
    assert_eq!(text(field.read::<i32, Ix3>().map(drop)), "ndim: expected 3 dimensions, got 2 of shape (2, 3)");
    assert_eq!(text(field.to_vec::<f32>().map(drop)), "dtype: expected float32, got int32");
    assert!(field.to_versioned(false).is_ok(), "no guard is left");
}

#[test]
fn an_array_that_is_copied_keeps_the_order_of_its_strides() {
    let shape = [3, 4, 5];
    for (layout, strides) in [([0, 1, 2], [20, 5, 1]), ([2, 1, 0], [1, 3, 12]), ([1, 0, 2], [5, 15, 1])] {
        let field = Tensor::zeros(&Spec::new(&shape, DType::F32).layout(Layout::new(&layout, 3).unwrap())).unwrap();
        assert_eq!(field.into_array::<f32, Ix3>().unwrap().strides(), strides, "{layout:?}");
    }
    let padded =
        Spec::new(&shape, DType::F32).preset(Preset::find("gt:gpu").unwrap()).with_device(dlfield::Device::CPU);
    assert_eq!(Tensor::zeros(&padded).unwrap().into_array::<f32, Ix3>().unwrap().strides(), [1, 3, 12]);
}

#[test]
fn every_element_type_is_dispatched() -> dlfield::Result<()> {
    for dtype in DType::all() {
        let field = Tensor::zeros(&Spec::new(&[3], dtype)).unwrap();
        let bytes = dispatch!(field, T in all => size_of::<T>() * field.to_vec::<T>()?.len());
        match bytes {
            Ok(bytes) => assert_eq!(bytes, 3 * dtype.itemsize()),
            Err(error) => {
                let text = error.to_string();
                assert!(dtype.index() > DType::BF16.index(), "{text}");
                assert!(text.starts_with("argument \"field\": dtype: expected bool or int8 or "), "{text}");
                assert!(text.ends_with(&format!(", got {dtype}")), "{text}");
            }
        }
    }
    Ok(())
}
