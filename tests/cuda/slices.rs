//! Conversion of `cudarc` slices to tensors and back.

use std::sync::Arc;

use crate::cudarc_user::{new_stream, of, on_cuda_with_cudarc as on_cuda, read};
use crate::double::Double;
use crate::driver::GPU;
use dlfield::cuda::{device_count, with_stream};
use dlfield::cudarc::driver::sys::CUresult;
use dlfield::cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DriverError};
use dlfield::{
    DType, DTypeErrorKind, Device, DeviceErrorKind, Error, ExchangeErrorKind, LayoutErrorKind, Preset, Spec, Tensor,
};

fn address<T>(slice: &CudaSlice<T>) -> u64 {
    slice.device_ptr(slice.stream()).0
}

#[test]
fn a_slice_goes_in_and_comes_out_as_it_is() {
    let Some(_cuda) = on_cuda() else { return };
    let stream = new_stream(0);
    let slice = stream.clone_htod(&[1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let start = address(&slice);
    let field = Tensor::from_cuda_slice(slice, &[2, 3], None).unwrap();
    assert_eq!((field.descriptor().device(), field.descriptor().strides()), (GPU, &[3, 1][..]));
    assert_eq!(field.descriptor().ptr().addr() as u64, start);
    let back = field.into_cuda_slice::<f64>(&stream).unwrap();
    assert_eq!((address(&back), read(&stream, &back)), (start, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
}

#[test]
fn a_slice_with_gaps_is_a_padded_field() {
    let Some(_cuda) = on_cuda() else { return };
    let stream = new_stream(0);
    let field = Tensor::from_cuda_slice(stream.alloc_zeros::<f32>(24).unwrap(), &[3, 5], Some(&[8, 1])).unwrap();
    let view = field.cuda_view::<f32>(&stream).unwrap();
    assert_eq!((view.shape(), view.strides()), (&[3, 5][..], &[8, 1][..]));
    assert_eq!(view.device_ptr(), field.descriptor().ptr().addr() as u64);
    assert!(
        matches!(field.into_cuda_slice::<f32>(&stream), Err(Error::Layout(error)) if error.kind() == LayoutErrorKind::NeedsCopy)
    );
    let outside = Tensor::from_cuda_slice(stream.alloc_zeros::<f32>(20).unwrap(), &[3, 5], Some(&[8, 1]));
    assert!(matches!(outside, Err(Error::Exchange(error)) if error.got().ends_with(" to 84")));
    let before = Tensor::from_cuda_slice(stream.alloc_zeros::<f32>(20).unwrap(), &[3], Some(&[-1]));
    assert!(matches!(before, Err(Error::Exchange(error)) if error.got().starts_with("-8 to ")));
}

#[test]
fn an_allocation_becomes_a_slice_in_another_streams_order() {
    let Some(_cuda) = on_cuda() else { return };
    let (own, other) = (new_stream(0), new_stream(0));
    let handle = of(&own);
    let spec = Spec::new(&[4, 6], DType::I32).with_device(GPU).preset(Preset::find("F").unwrap());
    let field = with_stream(GPU, handle, || Tensor::zeros(&spec)).unwrap();
    let start = field.descriptor().ptr().addr() as u64;
    let slice = field.into_cuda_slice::<i32>(&other).unwrap();
    assert_eq!((slice.len(), address(&slice)), (24, start));
    // The zeros are there although another stream wrote them.
    assert_eq!(read(&other, &slice), [0; 24]);
}

#[test]
fn what_is_not_wanted_is_refused_and_freed() {
    let Some(_cuda) = on_cuda() else { return };
    let stream = new_stream(0);
    let field = || Tensor::zeros(&Spec::new(&[8], DType::F32).with_device(GPU)).unwrap();
    let wrong = field().into_cuda_slice::<f64>(&stream);
    assert!(matches!(wrong, Err(Error::DType(error)) if error.kind() == DTypeErrorKind::Mismatch));
    let shared = field();
    let view = shared.clone();
    assert!(
        matches!(shared.into_cuda_slice::<f32>(&stream), Err(Error::Exchange(error)) if error.kind() == ExchangeErrorKind::Shared)
    );
    drop(view);
    let host = Tensor::zeros(&Spec::new(&[8], DType::F32)).unwrap();
    assert!(
        matches!(host.into_cuda_slice::<f32>(&stream), Err(Error::Device(error)) if error.kind() == DeviceErrorKind::Mismatch)
    );
    // Its first byte is not that of the allocation.
    let spec = Spec::new(&[8], DType::F32).with_device(GPU).alignment_size(64).aligned_index(&[3]);
    let shifted = Tensor::zeros(&spec).unwrap().into_cuda_slice::<f32>(&stream);
    assert!(matches!(shifted, Err(Error::Layout(error)) if error.kind() == LayoutErrorKind::NeedsCopy));
}

#[test]
fn a_view_of_another_device_is_refused() {
    let Some(_cuda) = on_cuda().filter(|_| device_count() > 1) else { return };
    let elsewhere = Tensor::zeros(&Spec::new(&[8], DType::F32).with_device(Device::cuda(1))).unwrap();
    assert!(
        matches!(elsewhere.cuda_view::<f32>(&new_stream(0)), Err(Error::Device(error)) if error.kind() == DeviceErrorKind::Mismatch)
    );
}

#[test]
fn a_slice_is_freed_on_a_thread_that_never_saw_its_device() {
    let Some(_cuda) = on_cuda().filter(|_| device_count() > 1) else { return };
    let stream = new_stream(1);
    let field = Tensor::try_from(stream.alloc_zeros::<u8>(100).unwrap()).unwrap();
    assert_eq!(field.descriptor().device(), Device::cuda(1));
    std::thread::spawn(move || drop(field)).join().unwrap();
}

#[test]
fn fields_without_elements_keep_their_slice() {
    let Some(_cuda) = on_cuda() else { return };
    let stream = new_stream(0);
    let field = Tensor::from_cuda_slice(stream.alloc_zeros::<f64>(4).unwrap(), &[0, 3], None).unwrap();
    assert_eq!(field.descriptor().size(), 0);
    assert!(
        matches!(field.into_cuda_slice::<f64>(&stream), Err(Error::Layout(error)) if error.kind() == LayoutErrorKind::NeedsCopy)
    );
}

#[test]
fn bools_come_out_as_bytes() {
    let Some(_cuda) = on_cuda() else { return };
    let stream = new_stream(0);
    let field = || Tensor::full_bytes(&Spec::new(&[4], DType::BOOL).with_device(GPU), &[7]).unwrap();
    assert!(
        matches!(field().into_cuda_slice::<bool>(&stream), Err(Error::DType(error)) if error.kind() == DTypeErrorKind::Mismatch)
    );
    assert_eq!(read(&stream, &field().into_cuda_slice::<u8>(&stream).unwrap()), [7; 4]);
    let field = Tensor::try_from(stream.clone_htod(&[true, false, true]).unwrap()).unwrap();
    let address = field.descriptor().ptr().addr();
    let bytes = field.into_cuda_slice::<u8>(&stream).unwrap();
    assert_eq!((bytes.device_ptr(&stream).0, read(&stream, &bytes)), (address as u64, vec![1, 0, 1]));
}

/// A slice of bools in the order of a stream for whose events `cudarc` waits, and which has two of them then.
fn tracked_bools() -> (Arc<CudaStream>, CudaSlice<bool>) {
    let context = CudaContext::new(0).unwrap();
    let (stream, _other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let bools = stream.clone_htod(&[true, false, true]).unwrap();
    (stream, bools)
}

fn is_out_of_memory<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Device(error)) if error.kind() == DeviceErrorKind::Driver)
}

#[test]
fn an_error_of_the_context_of_bools_is_returned_and_the_memory_freed() {
    let Some(_cuda) = on_cuda() else { return };
    let (slice_stream, bools) = tracked_bools();
    let field = Tensor::try_from(bools).unwrap();
    // Another object for the same context.
    let stream = new_stream(0);
    slice_stream.context().record_err::<()>(Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)));
    assert!(is_out_of_memory(field.into_cuda_slice::<u8>(&stream)));
    assert!(slice_stream.context().check_err().is_ok());
}

#[test]
fn an_error_of_the_last_waits_for_bools_is_returned_and_the_memory_freed() {
    let Some(_cuda) = on_cuda() else { return };
    let Some(double) = Double::find() else { return };
    let (stream, bools) = tracked_bools();
    let field = Tensor::try_from(bools).unwrap();
    double.fail("cuStreamWaitEvent", 2);
    assert!(is_out_of_memory(field.into_cuda_slice::<u8>(&stream)));
    assert!(stream.context().check_err().is_ok());
}
