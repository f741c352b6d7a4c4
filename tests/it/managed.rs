//! The exported structs, field by field.

#![allow(unsafe_code, reason = "the fields are raw pointers")]

use dlfield::{DType, Error, ExchangeErrorKind, Spec, Tensor};
use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor};
use dlpark::{DlpackFlags, Managed};
use proptest::prelude::*;

use crate::elements::{all, number_all, numbers};
use crate::naive::size;
use crate::runner::check_memory;
use crate::strategies::{config, dtype, spec};

/// Returns the numbers behind a shape or strides field.
fn list(start: *const i64, len: usize) -> Option<Vec<i64>> {
    // SAFETY: the exported struct points to `ndim` numbers while it lives.
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, len) }.to_vec())
}

/// Checks what every consumer may rely on.
fn check_fields(found: &DLTensor, tensor: &Tensor) {
    let field = tensor.descriptor();
    let ndim = field.ndim();
    assert_eq!((found.ndim, found.byte_offset), (i32::try_from(ndim).unwrap(), 0));
    assert_eq!((found.device, found.dtype), (field.device().to_dlpack(), field.dtype().to_dlpack()));
    let none_for_none = |numbers: &[i64]| (ndim > 0).then(|| numbers.to_vec());
    assert_eq!(list(found.shape, ndim), none_for_none(field.shape()));
    assert_eq!(list(found.strides, ndim), none_for_none(field.strides()));
    if field.size() == 0 {
        assert!(found.data.is_null());
    } else {
        assert_eq!(found.data.cast(), field.ptr());
    }
}

fn versioned(tensor: &Tensor, copied: bool) -> Managed<DLManagedTensorVersioned> {
    let managed = tensor.to_versioned(copied).unwrap();
    // SAFETY: a live struct.
    let header = unsafe { &*managed.as_ptr() };
    assert_eq!(header.version, DLPackVersion { major: 1, minor: 3 });
    let flags = [
        (DlpackFlags::READ_ONLY, tensor.descriptor().is_readonly()),
        (DlpackFlags::IS_COPIED, copied),
        (DlpackFlags::IS_SUBBYTE_TYPE_PADDED, tensor.descriptor().dtype().bits() < 8),
    ];
    let wanted = flags.into_iter().filter(|(_, set)| *set).map(|(flag, _)| flag).collect::<DlpackFlags>();
    assert_eq!(header.flags, wanted);
    assert!(header.deleter.is_some());
    check_fields(&header.dl_tensor, tensor);
    managed
}

fn legacy(tensor: &Tensor) -> Managed<DLManagedTensor> {
    let managed = tensor.to_legacy().unwrap();
    // SAFETY: a live struct.
    let header = unsafe { &*managed.as_ptr() };
    assert!(header.deleter.is_some());
    check_fields(&header.dl_tensor, tensor);
    managed
}

/// Imports a struct of this library.
pub fn back<M: dlpark::ManagedTensorBase>(managed: Managed<M>) -> Tensor {
    // SAFETY: the struct is this library's own and describes its memory correctly; nobody else writes.
    unsafe { Tensor::from_managed(managed) }.unwrap()
}

/// Checks all ways to export a tensor, which is marked as exported afterwards.
pub fn check_exports(tensor: &Tensor) {
    check_fields(&tensor.as_dlpack().unwrap(), tensor);
    assert_eq!(all(&back(legacy(tensor))), all(tensor));
    assert_eq!(all(&back(versioned(tensor, false))), all(tensor));
}

proptest! {
    #![proptest_config(config(2))]

    #[test]
    fn tensors_survive_both_ways(spec in spec(dtype()), copied in any::<bool>(), readonly in any::<bool>()) {
        let tensor = check_memory(&spec);
        number_all(&tensor);
        let wanted = numbers(&tensor);
        let tensor = if readonly { tensor.into_readonly() } else { tensor };
        let strides = tensor.descriptor().strides().to_vec();
        let legacy = (!readonly && !tensor.descriptor().dtype().is_sub_byte()).then(|| legacy(&tensor));
        let (exported, another) = (versioned(&tensor, copied), versioned(&tensor, !copied));
        drop((tensor, another));
        let again = back(exported);
        prop_assert_eq!(all(&again), wanted.clone());
        prop_assert_eq!(again.descriptor().strides(), strides);
        prop_assert_eq!(again.descriptor().is_readonly(), readonly);
        if let Some(legacy) = legacy {
            drop(again);
            let again = back(legacy);
            prop_assert_eq!(all(&again), wanted);
            prop_assert!(again.descriptor().is_readonly());
        }
    }
}

#[test]
fn structs_without_flags_refuse_what_they_cannot_say() {
    for dtype in DType::all() {
        let tensor = Tensor::zeros(&Spec::new(&[3], dtype)).unwrap();
        let refused = |error: Error| matches!(error, Error::Exchange(error) if error.kind() == ExchangeErrorKind::Unsupported && error.got() == dtype.name());
        if dtype.is_sub_byte() {
            assert!(refused(tensor.to_legacy().err().unwrap()) && refused(tensor.as_dlpack().err().unwrap()));
        } else {
            legacy(&tensor);
            check_fields(&tensor.as_dlpack().unwrap(), &tensor);
        }
        versioned(&tensor, false);
        let frozen = tensor.into_readonly();
        for error in [frozen.to_legacy().err(), frozen.as_dlpack().err()] {
            assert!(
                matches!(&error, Some(Error::Exchange(error)) if error.kind() == ExchangeErrorKind::ReadOnly),
                "{dtype}: {error:?}"
            );
        }
        assert_eq!(versioned(&frozen, false).flags() & DlpackFlags::READ_ONLY, DlpackFlags::READ_ONLY);
    }
}

/// The maximum number of dimensions: few are stored inline, many on the heap.
#[test]
fn many_dimensions_are_exported_whole() {
    for ndim in [0, 1, 4, 6, 7, 8, 16, 17, 63, 64] {
        let shape: Vec<i64> = (0..ndim).map(|axis| if axis % 9 == 0 { 2 } else { 1 }).collect();
        let tensor = check_memory(&Spec::new(&shape, DType::U8));
        number_all(&tensor);
        check_exports(&tensor);
        let again = back(versioned(&tensor, false));
        assert_eq!((again.descriptor().shape(), again.descriptor().ndim()), (&shape[..], size(ndim)));
    }
}
