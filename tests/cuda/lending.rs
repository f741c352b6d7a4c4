//! Memory that is exported while safe code reads it: there is no deadlock.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use dlfield::{DType, Device, Dims, Error, ExchangeErrorKind, FieldSpec, Owner, Result, Signature, Tensor};

use crate::cudarc_user::{new_stream, on_cuda_with_cudarc, zeros_in};
use crate::double::on_double;
use crate::driver::{GPU, OwnStream};

/// An owner whose drop takes a lock, as that of a Python object takes the GIL.
struct Locked {
    begun: Sender<()>,
    lock: Arc<Mutex<()>>,
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.begun.send(()).unwrap();
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Imported memory, which is released in the order of a stream.
fn imported(stream: &OwnStream, locked: Locked) -> Tensor {
    let field = zeros_in(stream.stream, 8);
    let owner = Owner::foreign((field.clone(), locked));
    // SAFETY: the memory is that of the field, which the owner keeps; the struct is this library's own.
    stream.with(|| unsafe {
        let other = Tensor::from_parts(field.descriptor().clone(), owner);
        Tensor::from_managed(other.to_versioned(false).unwrap()).unwrap()
    })
}

#[test]
fn memory_is_exported_while_a_copy_of_it_frees_other_memory() {
    let Some((_cuda, double)) = on_double(&[]) else { return };
    let stream = OwnStream::new(GPU);
    let (begun, has_begun) = mpsc::channel();
    let lock = Arc::new(Mutex::new(()));
    let waiting = imported(&stream, Locked { begun, lock: lock.clone() });
    let field = zeros_in(stream.stream, 64);
    // Its release is deferred by the capture, until an allocation needs room.
    drop(stream.record(|| drop(waiting)));
    let locked = lock.lock().unwrap();
    thread::scope(|scope| {
        double.fail_allocation(0);
        scope.spawn(|| drop(field.copy()));
        has_begun.recv_timeout(Duration::from_secs(60)).expect("nothing was let go to make room");
        let (done, is_done) = mpsc::channel();
        scope.spawn({
            let field = &field;
            move || {
                drop(field.to_versioned(false).unwrap());
                done.send(()).unwrap();
            }
        });
        let gone_out = is_done.recv_timeout(Duration::from_secs(60));
        drop(locked);
        assert!(gone_out.is_ok(), "the export waits for the copy, which waits for the lock");
    });
    // In some runs without pools no allocation has taken the failure by now, and the next one would.
    double.fail_allocation(-1);
}

fn is_exported_error<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Exchange(error)) if error.kind() == ExchangeErrorKind::Exported)
}

/// The device functions, as a complement to the safe functions of `tests/it/lending.rs`.
#[test]
fn safe_functions_reject_exported_device_memory_or_do_not_access_it() {
    let Some(_cuda) = on_cuda_with_cudarc() else { return };
    let (own, stream) = (OwnStream::new(GPU), new_stream(0));
    let field = zeros_in(own.stream, 8);
    let exported = field.to_versioned(false).unwrap();
    let bind_or_copy = |device| {
        let signature = Signature::new([("field", FieldSpec::new(DType::F64, Dims::standard(1)))])?.with_device(device);
        signature.bind_or_copy(&[("field", &field)]).map(drop)
    };
    assert!(is_exported_error(field.copy()));
    assert!(is_exported_error(field.to_device(Device::CPU, None)));
    assert!(is_exported_error(field.to_device(Device::CUDA_HOST, None)));
    assert!(is_exported_error(bind_or_copy(Device::CPU)));
    assert!(bind_or_copy(GPU).is_ok());
    let alone = field.clone().into_cuda_slice::<f64>(&stream);
    assert!(matches!(alone, Err(Error::Exchange(error)) if error.kind() == ExchangeErrorKind::Shared));
    // The launch, which is unsafe, answers for what a kernel does with the address.
    assert_eq!(field.cuda_view::<f64>(&stream).unwrap().shape(), [8]);
    drop(exported);
    drop(field.into_cuda_slice::<f64>(&stream).unwrap());
}

#[test]
fn memory_that_came_back_during_a_capture_is_refused_with_the_reason() {
    let Some(_cuda) = on_cuda_with_cudarc() else { return };
    let (captured, stream) = (OwnStream::blocking(GPU), new_stream(0));
    let field = zeros_in(captured.stream, 8);
    let mut managed = Some(field.to_versioned(false).unwrap());
    drop(field);
    let mut back = None;
    // The legacy stream can't be ordered then.
    // SAFETY: the struct is this library's own, and nobody writes.
    let import = || back = Some(unsafe { Tensor::from_managed(managed.take().unwrap()) }.unwrap());
    drop(captured.record(import));
    let refused = back.unwrap().into_cuda_slice::<f64>(&stream).unwrap_err();
    assert!(matches!(&refused, Error::Exchange(error) if error.kind() == ExchangeErrorKind::Shared), "{refused}");
    assert!(refused.to_string().contains("during a graph capture"), "{refused}");
}
