//! Memory that another library was given, and those who read it in safe code meanwhile.

#![allow(unsafe_code, reason = "what was lent is written by address")]

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dlfield::ndarray::Array1;
use dlfield::{DType, Descriptor, Device, Error, ExchangeError, Owner, Spec, Tensor};

fn is_lent<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Exchange(ExchangeError::Lent)))
}

/// An array without memory to speak of, and with more elements than there is memory for.
fn broadcast() -> Tensor {
    let byte = vec![0i8];
    let start = byte.as_ptr().cast_mut().cast();
    let descriptor = Descriptor::new(start, Device::CPU, DType::I8, true, &[1 << 46], &[0]).unwrap();
    // SAFETY: all elements are the one of the vector, which the owner keeps.
    unsafe { Tensor::from_parts(descriptor, Owner::foreign(byte)) }
}

#[test]
fn every_lender_waits_for_the_readers() {
    for _ in 0..100 {
        let field = Tensor::from(vec![7u8; 1 << 18]);
        thread::scope(|scope| {
            scope.spawn(|| {
                // What is read is read before anything is written, or is not read.
                let Ok(copy) = field.copy() else { return };
                // SAFETY: as many elements of a byte.
                let copied = unsafe { std::slice::from_raw_parts(copy.descriptor().ptr(), 1 << 18) };
                assert!(copied.iter().all(|byte| *byte == 7));
            });
            for part in 0..2 {
                let field = &field;
                scope.spawn(move || {
                    let lent = field.to_legacy().unwrap();
                    let start = field.descriptor().ptr().wrapping_add(part << 17);
                    // SAFETY: half of what was lent, which nobody else may read any more in safe code.
                    unsafe { std::slice::from_raw_parts_mut(start, 1 << 17) }.fill(9);
                    drop(lent);
                });
            }
        });
        assert!(is_lent(field.copy()));
    }
}

#[test]
fn a_copy_among_other_work_of_rayon_ends() {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let field = Tensor::zeros(&Spec::new(&[1 << 20], DType::F64)).unwrap();
        let (lender, reader) = (field.clone(), field);
        pool.install(|| {
            rayon::scope(|scope| {
                // Who copies must not be given this meanwhile: it waits for the copy.
                scope.spawn(move |_| drop(lender.to_versioned(false).unwrap()));
                scope.spawn(move |_| drop(reader.copy()));
            });
        });
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(60)).expect("a copy and a loan wait for each other");
}

#[test]
fn an_array_that_cannot_be_had_is_an_error() {
    assert!(matches!(broadcast().into_array::<i8, dlfield::ndarray::Ix1>(), Err(Error::Memory(_))));
}

#[test]
fn what_came_from_elsewhere_is_not_regained() {
    let field = Tensor::from(vec![1.0f64, 2.0]);
    // SAFETY: the struct is this library's own, and nobody writes.
    let imported = unsafe { Tensor::from_managed(field.to_versioned(false).unwrap()) }.unwrap();
    assert!(imported.copy().is_ok(), "on the word of whoever imported it");
    drop(imported.to_versioned(false).unwrap());
    let array: Result<Array1<f64>, Error> = imported.into_array();
    assert!(is_lent(array));
}
