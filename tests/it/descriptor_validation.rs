//! What a descriptor proves, compared with 128-bit sums without a shortcut: it accepts neither more nor less.

use std::ptr::without_provenance_mut;

use dlfield::{DType, Descriptor, Device};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::naive::{is_valid, wide};
use crate::sound_dlpack::check_proof;
use crate::strategies::{config, dtype, edgy};

/// Returns the strides of a field in elements, if it is valid: a stride without meaning whose bytes exceed 64 bits is 1.
fn proven(address: usize, shape: &[i64], strides: &[i64], itemsize: usize) -> Option<Vec<i64>> {
    let byte_strides: Vec<i128> = strides.iter().map(|stride| i128::from(*stride) * wide(itemsize)).collect();
    let normal = |axis: usize| {
        let unused = shape.contains(&0) || shape[axis] == 1;
        if unused && i64::try_from(byte_strides[axis]).is_err() { 1 } else { strides[axis] }
    };
    is_valid(wide(address), shape, &byte_strides, itemsize).then(|| (0..shape.len()).map(normal).collect())
}

/// The same for byte strides: those that lead to an element must be whole elements.
fn proven_in_bytes(address: usize, shape: &[i64], byte_strides: &[i64], itemsize: usize) -> Option<Vec<i64>> {
    if shape.len() != byte_strides.len() {
        return None;
    }
    let empty = shape.contains(&0);
    let unit = i64::try_from(itemsize).unwrap();
    let whole = |(extent, bytes): (&i64, &i64)| match bytes % unit {
        0 => Some(bytes / unit),
        _ if empty || *extent == 1 => Some(1),
        _ => None,
    };
    let strides: Vec<i64> = shape.iter().zip(byte_strides).map(whole).collect::<Option<_>>()?;
    proven(address, shape, &strides, itemsize)
}

/// Addresses at both ends of the address space, and near the limits of the shortcut.
fn address() -> impl Strategy<Value = usize> {
    let round = (0u32..64, -40i64..=40).prop_map(|(bits, off)| (1u64 << bits).wrapping_add_signed(off));
    let any = prop_oneof![3 => Just(0x7f12_3456_7000), 4 => round, 1 => select(vec![0, u64::MAX, u64::MAX - 8])];
    any.prop_map(|address| usize::try_from(address).unwrap())
}

/// Extents and strides for the same number of dimensions, mostly valid ones.
fn numbers() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    // The shortcut checks for 31 bits of extent and stride, and for 32 of their products.
    let near = (24u32..34, -1i64..=1).prop_map(|(bits, off)| (1i64 << bits) + off);
    let extent = prop_oneof![
        8 => 1i64..=5,
        1 => Just(0),
        4 => (0u32..63, -1i64..=1).prop_map(|(bits, off)| ((1i64 << bits) + off).max(1)),
        2 => near.clone(),
        1 => edgy(),
    ];
    let stride = prop_oneof![2 => edgy(), 1 => near.prop_map(|stride| -stride)];
    let ndim = prop_oneof![12 => 0usize..=4, 4 => 5usize..=8, 1 => 60usize..=66];
    ndim.prop_flat_map(move |ndim| {
        let strides =
            prop_oneof![4 => vec(stride.clone(), ndim), 4 => vec(-40i64..40, ndim), 1 => vec(edgy(), ndim + 1)];
        (vec(extent.clone(), ndim), strides)
    })
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn fields_that_fit_are_accepted_and_no_others(
        (shape, strides) in numbers(),
        address in address(),
        dtype in dtype(),
    ) {
        let pointer = without_provenance_mut(address);
        let (itemsize, unit) = (dtype.itemsize(), i64::try_from(dtype.itemsize()).unwrap());
        let field = Descriptor::new(pointer, Device::CPU, dtype, true, &shape, &strides);
        let wanted = proven(address, &shape, &strides, itemsize);
        prop_assert_eq!(field.as_ref().ok().map(|field| field.strides().to_vec()), wanted, "{:?}", field);
        field.iter().for_each(check_proof);
        for byte_strides in [strides.clone(), strides.iter().map(|stride| stride.wrapping_mul(unit)).collect()] {
            let field = Descriptor::from_byte_strides(pointer, Device::CPU, dtype, true, &shape, &byte_strides);
            let wanted = proven_in_bytes(address, &shape, &byte_strides, itemsize);
            prop_assert_eq!(field.as_ref().ok().map(|field| field.strides().to_vec()), wanted, "{:?}", field);
            field.iter().for_each(check_proof);
        }
    }
}

/// The shortcut multiplies 64-bit numbers without a check for each product.
#[test]
fn products_that_wrap_around_to_small_numbers_are_refused() {
    let pointer = without_provenance_mut(1 << 40);
    let of = |shape: &[i64], strides: &[i64]| Descriptor::new(pointer, Device::CPU, DType::U8, true, shape, strides);
    for shape in [&[1 << 32, 1 << 32][..], &[1 << 22, 1 << 22, 1 << 20], &[1 << 31, 1 << 31, 4], &[1 << 16; 4]] {
        let error = of(shape, &vec![0; shape.len()]).unwrap_err();
        assert_eq!(error.argument(), "shape", "{error}");
    }
    let (apart, half) = ([1 << 31, -(1 << 31)], [1 << 31, 1 << 31]);
    assert_eq!(of(&half, &apart).unwrap_err().argument(), "strides");
    for shape in [[1 << 16, 1 << 16], [1 << 31, 1 << 31], [1, 1 << 62]] {
        assert_eq!(of(&shape, &[0, 0]).unwrap().size(), shape[0] * shape[1]);
    }
}
