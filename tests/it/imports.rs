//! Handmade managed tensors, valid and broken: each defect has its error, and each deleter is called exactly once.

#![allow(unsafe_code, reason = "imports rest on the producer's word")]

use std::ptr::null_mut;

use dlfield::testing::protocol::dlpack::VERSION;
use dlfield::{Error, Tensor};
use dlpark::ffi::{DLDataTypeCode, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, DLTensor};
use dlpark::{DlpackFlags, Managed};

use crate::elements::all;
use crate::managed_tensors::{Drops, make, owned, set_shape, set_strides, versioned};

/// A defect of a valid struct, and the argument and what was found, as its error says.
type Defect = (&'static str, fn(&mut DLTensor), &'static str, &'static str);

const DEFECTS: [Defect; 20] = [
    ("ndim below 0", |t| t.ndim = -1, "ndim", "got -1"),
    ("ndim lowest", |t| t.ndim = i32::MIN, "ndim", "got -2147483648"),
    ("ndim 65", |t| t.ndim = 65, "ndim", "got 65"),
    ("ndim huge", |t| t.ndim = i32::MAX, "ndim", "got 2147483647"),
    ("no shape", |t| t.shape = null_mut(), "shape", "expected 2 extents, got NULL"),
    ("negative extent", |t| set_shape(t, [2, -3]), "shape", "got -3 at axis 1"),
    ("no data", |t| t.data = null_mut(), "data", "got NULL"),
    ("no data but an offset", |t| (t.data, t.byte_offset) = (null_mut(), 64), "data", "got NULL"),
    ("offset beyond memory", |t| t.byte_offset = u64::MAX, "byte_offset", "got 18446744073709551615"),
    ("offset beyond any object", |t| t.byte_offset = 1 << 63, "byte_offset", "got 9223372036854775808"),
    ("offset across the middle", |t| t.byte_offset = (1 << 63) - 1, "byte_offset", "got 9223372036854775807"),
    ("strides beyond memory", |t| set_strides(t, [i64::MAX, 1]), "strides", "address space"),
    ("strides below memory", |t| set_strides(t, [i64::MIN, 1]), "strides", "address space"),
    (
        "more elements than can be counted",
        |t| {
            set_shape(t, [i64::MAX, i64::MAX]);
            set_strides(t, [0, 0]);
        },
        "shape",
        "less than 2**63 bytes",
    ),
    ("vector elements", |t| t.dtype.lanes = 4, "dtype", "code 0 with 64 bits and 4 lanes"),
    ("no lanes", |t| t.dtype.lanes = 0, "dtype", "and 0 lanes"),
    ("handles", |t| t.dtype.code = DLDataTypeCode::OPAQUEHANDLE, "dtype", "code 3 with"),
    ("packed elements", |t| (t.dtype.code, t.dtype.bits) = (DLDataTypeCode::INT, 4), "dtype", "several int4 elements"),
    ("unknown device", |t| t.device.device_type = DLDeviceType(99), "device", "(99, "),
    ("device below 0", |t| t.device.device_id = -1, "device", "(1, -1)"),
];

fn import<M: dlpark::ManagedTensorBase>(managed: Managed<M>) -> dlfield::Result<Tensor> {
    // SAFETY: `managed_tensors` keeps readable and writable elements until the deleter; broken structs are rejected unread.
    unsafe { Tensor::from_managed(managed) }
}

fn import_raw(raw: *mut DLManagedTensorVersioned) -> dlfield::Result<Tensor> {
    // SAFETY: `managed_tensors` returns a live struct.
    import(unsafe { Managed::from_raw(raw) }.expect("major version 1"))
}

/// Returns the given numbers as bytes.
fn numbers(numbers: impl IntoIterator<Item = i64>) -> Vec<Vec<u8>> {
    numbers.into_iter().map(|number| number.to_ne_bytes().to_vec()).collect()
}

#[test]
fn defects_are_refused_and_released_once() {
    for (name, change, argument, found) in DEFECTS {
        let drops = Drops::default();
        let is_right = |error: Error| {
            let message = error.to_string();
            assert!(message.starts_with(argument) && message.contains(found), "{name}: {message}");
        };
        is_right(import(owned::<DLManagedTensor>(&drops, change)).expect_err(name));
        assert_eq!(drops.count(), 1, "{name}");
        for minor in 0..5 {
            is_right(import_raw(versioned(&drops, (1, minor), DlpackFlags::empty(), change)).expect_err(name));
        }
        assert_eq!(drops.count(), 6, "{name}");
    }
}

#[test]
fn strides_may_not_be_missing_from_1_2_on() {
    let drops = Drops::default();
    for minor in 2..5 {
        let raw = versioned(&drops, (1, minor), DlpackFlags::empty(), |tensor| tensor.strides = null_mut());
        let refused = import_raw(raw).unwrap_err();
        let expected = format!("got NULL with ndim 2 in DLPack 1.{minor}");
        assert!(refused.to_string().ends_with(&expected), "1.{minor}: {refused}");
    }
    assert_eq!(drops.count(), 3);
}

#[test]
fn foreign_versions_are_released_untouched() {
    for version in [(0, 8), (2, 0), (u32::MAX, u32::MAX)] {
        let drops = Drops::default();
        // With another major version the fields may be anywhere.
        let raw = versioned(&drops, version, DlpackFlags::empty(), |t| (t.shape, t.ndim) = (null_mut(), 7));
        // SAFETY: a live struct, whose deleter frees it.
        let managed = unsafe { Managed::from_raw(raw) };
        assert!(managed.is_err(), "{version:?}");
        assert_eq!(drops.count(), 1, "{version:?}");
    }
    // SAFETY: null is rejected.
    assert!(unsafe { Managed::<DLManagedTensorVersioned>::from_raw(null_mut()) }.is_err());
    assert_eq!((VERSION.major, VERSION.minor), (1, 3));
}

#[test]
fn sound_structs_keep_their_elements_until_the_last_owner() {
    let drops = Drops::default();
    let tensor = import(owned::<DLManagedTensorVersioned>(&drops, |_| ())).unwrap();
    assert_eq!((tensor.descriptor().shape(), all(&tensor)), (&[2, 3][..], numbers(0..6)));
    assert!(!tensor.descriptor().is_readonly());
    assert_eq!(tensor.alignment_size(), 1);
    let row = tensor.view(&[dlfield::Index::At(1)]).unwrap();
    drop(tensor);
    assert_eq!((all(&row), drops.count()), (numbers(3..6), 0));
    let export = row.to_versioned(false).unwrap();
    drop(row);
    assert_eq!(drops.count(), 0);
    let again = import(export).unwrap();
    assert_eq!((all(&again), drops.count()), (numbers(3..6), 0));
    std::thread::spawn(move || drop(again)).join().unwrap();
    assert_eq!(drops.count(), 1);
}

#[test]
fn addresses_are_data_plus_offset_and_strides_go_both_ways() {
    let drops = Drops::default();
    let shifted = import(owned::<DLManagedTensor>(&drops, |t| t.byte_offset = 16)).unwrap();
    assert_eq!(all(&shifted), numbers(2..8));
    let backwards = import(owned::<DLManagedTensor>(&drops, |t| set_strides(t, [-3, -1]))).unwrap();
    assert_eq!(all(&backwards), numbers([0, -1, -2, -3, -4, -5]));
    assert_eq!(all(&backwards.copy().unwrap()), all(&backwards));
    let spread = import(owned::<DLManagedTensor>(&drops, |t| set_strides(t, [0, 2]))).unwrap();
    assert_eq!(all(&spread), numbers([0, 2, 4, 0, 2, 4]));
    assert_eq!(all(&spread.copy().unwrap()), all(&spread));
}

/// The header has no device number for pinned memory; some producers write one.
#[test]
fn the_number_of_pinned_memory_is_not_looked_at() {
    let pinned = |t: &mut DLTensor| (t.device.device_type, t.device.device_id) = (DLDeviceType::CUDAHOST, 3);
    let tensor = import(owned::<DLManagedTensor>(&Drops::default(), pinned)).unwrap();
    assert_eq!(tensor.descriptor().device().to_string(), "cuda_host");
}

#[test]
fn a_missing_deleter_means_the_producer_keeps_it() {
    let drops = Drops::default();
    let raw = make::<DLManagedTensor>(&drops, |_| ());
    // SAFETY: a live struct that nobody else has.
    let deleter = unsafe { (*raw).deleter.take() }.unwrap();
    // SAFETY: a live struct.
    let tensor = import(unsafe { Managed::from_raw(raw) }.unwrap()).unwrap();
    assert_eq!(all(&tensor), numbers(0..6));
    drop(tensor);
    assert_eq!(drops.count(), 0);
    // SAFETY: nobody has called it.
    unsafe { deleter(raw) };
    assert_eq!(drops.count(), 1);
}
