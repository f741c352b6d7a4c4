//! Managed tensors as another library makes them, with a deleter that counts.

#![allow(unsafe_code, reason = "a producer of C structs")]

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlfield::dlpark::ffi::{DLManagedTensorVersioned, DLPackVersion, DLTensor};
use dlfield::dlpark::{DlpackFlags, Managed, ManagedTensorBase};
use dlfield::{DType, Device};

/// Counts releases.
#[derive(Clone, Default)]
pub struct Drops(Arc<AtomicUsize>);

impl Drops {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A value whose drop is counted.
pub struct Counted(pub Drops);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.add();
    }
}

/// The context of a managed tensor: the numbers that its fields point to, and the elements.
struct Context {
    drops: Drops,
    shape: Vec<i64>,
    strides: Vec<i64>,
    data: Vec<u64>,
}

/// The deleter: frees context and struct.
///
/// # Safety
/// - `managed` comes from [`make`] and is not used after this.
unsafe extern "C" fn delete<M: ManagedTensorBase>(managed: *mut M) {
    // SAFETY: both were boxes in `make`, and the deleter is called once.
    let (managed, context) = unsafe {
        let managed = Box::from_raw(managed);
        let context = Box::from_raw(managed.manager_ctx().cast::<Context>());
        (managed, context)
    };
    context.drops.add();
    // No code may read after the release: this leaves invalid numbers.
    let Context { mut shape, mut strides, mut data, .. } = *context;
    shape.fill(-1);
    strides.fill(i64::MIN);
    data.fill(u64::MAX);
    drop(managed);
}

/// Returns a field of 2 by 3 64-bit numbers 0 to 5, last index fastest, with `change` applied to its struct.
pub fn make<M: ManagedTensorBase>(drops: &Drops, change: impl FnOnce(&mut DLTensor)) -> *mut M {
    let mut context = Box::new(Context {
        drops: drops.clone(),
        shape: vec![2, 3],
        strides: vec![3, 1],
        // Room on both sides, for negative strides and offsets.
        data: (0..24).map(|number: u64| number.wrapping_sub(8)).collect(),
    });
    let mut tensor = DLTensor {
        data: context.data[8..].as_mut_ptr().cast(),
        device: Device::CPU.to_dlpack(),
        ndim: 2,
        dtype: DType::I64.to_dlpack(),
        shape: context.shape.as_mut_ptr(),
        strides: context.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    change(&mut tensor);
    let context: *mut c_void = Box::into_raw(context).cast();
    Box::into_raw(Box::new(M::from_parts(tensor, context, Some(delete::<M>))))
}

/// The same, owned.
pub fn owned<M: ManagedTensorBase>(drops: &Drops, change: impl FnOnce(&mut DLTensor)) -> Managed<M> {
    // SAFETY: `make` returns a live struct, whose deleter frees it.
    unsafe { Managed::from_raw(make(drops, change)) }.expect("our own version")
}

/// Returns a versioned one with the given version and flags.
pub fn versioned(
    drops: &Drops,
    version: (u32, u32),
    flags: DlpackFlags,
    change: impl FnOnce(&mut DLTensor),
) -> *mut DLManagedTensorVersioned {
    let raw = make::<DLManagedTensorVersioned>(drops, change);
    // SAFETY: `make` returns a live struct that nobody else has.
    unsafe {
        (*raw).version = DLPackVersion { major: version.0, minor: version.1 };
        (*raw).flags = flags;
    }
    raw
}

/// Overwrites the numbers of a tensor's shape, not its strides.
pub fn set_shape(tensor: &mut DLTensor, shape: [i64; 2]) {
    // SAFETY: `make` points shape at two numbers.
    unsafe { tensor.shape.cast::<[i64; 2]>().write(shape) };
}

pub fn set_strides(tensor: &mut DLTensor, strides: [i64; 2]) {
    // SAFETY: `make` points strides at two numbers.
    unsafe { tensor.strides.cast::<[i64; 2]>().write(strides) };
}
