//! What a descriptor proves, compared with 128-bit sums without a shortcut: it accepts neither more nor less.

use std::ptr::without_provenance_mut;

use dlfield::{DType, Descriptor, Device, ExchangeError, MAX_NDIM};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::naive::wide;
use crate::strategies::{config, dtype, edgy};

/// Returns the strides of a field in elements, if it is valid: a stride without meaning whose bytes exceed 64 bits is 1.
fn proven(address: usize, shape: &[i64], strides: &[i64], itemsize: i128) -> Option<Vec<i64>> {
    let numbers = || shape.iter().zip(strides).map(|(extent, stride)| (i128::from(*extent), i128::from(*stride)));
    let fits = |bytes: i128| i64::try_from(bytes).is_ok();
    let empty = shape.contains(&0);
    let legal = shape.len() <= MAX_NDIM && shape.len() == strides.len() && shape.iter().all(|extent| *extent >= 0);
    let countable = |bytes: i128, extent: i128| bytes.checked_mul(extent).filter(|bytes| fits(*bytes));
    let counted = numbers().map(|(extent, _)| extent).filter(|extent| *extent != 0).try_fold(itemsize, countable);
    if !legal || counted.is_none() {
        return None;
    }
    if !empty {
        let reach = |(extent, stride): (i128, i128)| (extent - 1).checked_mul(stride)?.checked_mul(itemsize);
        let reaches: Vec<i128> = numbers().map(reach).collect::<Option<_>>()?;
        let sum = |sign: i128| {
            let mut one_way = reaches.iter().copied().filter(|bytes| bytes.signum() == sign);
            one_way.try_fold(0i128, i128::checked_add)
        };
        let (low, high) = (sum(-1)?, sum(1)?.checked_add(itemsize)?);
        let inside = wide(address) + low >= 0 && wide(address) + high <= i128::from(u64::MAX) && fits(high - low);
        if address == 0 || !inside {
            return None;
        }
    }
    let normal =
        |(extent, stride): (i128, i128)| if (empty || extent == 1) && !fits(stride * itemsize) { 1 } else { stride };
    Some(numbers().map(|number| i64::try_from(normal(number)).unwrap()).collect())
}

/// The same for byte strides: those that lead to an element must be whole elements.
fn proven_in_bytes(address: usize, shape: &[i64], byte_strides: &[i64], itemsize: i64) -> Option<Vec<i64>> {
    if shape.len() != byte_strides.len() {
        return None;
    }
    let empty = shape.contains(&0);
    let whole = |(extent, bytes): (&i64, &i64)| match bytes % itemsize {
        0 => Some(bytes / itemsize),
        _ if empty || *extent == 1 => Some(1),
        _ => None,
    };
    let strides: Vec<i64> = shape.iter().zip(byte_strides).map(whole).collect::<Option<_>>()?;
    proven(address, shape, &strides, i128::from(itemsize))
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

/// Calls every method of a field: nothing overflows.
fn ask(field: &Descriptor) {
    let strides: Vec<i64> = field.byte_strides().collect();
    assert_eq!((strides.len(), field.layout().len()), (field.ndim(), field.ndim()));
    assert_eq!(field.size() == 0, field.byte_span().is_none());
    assert!(field.nbytes() >= 0 && field.alignment() > 0);
    let _ = (field.is_c_contiguous(), field.is_f_contiguous());
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
        let itemsize = i64::try_from(dtype.itemsize()).unwrap();
        let field = Descriptor::new(pointer, Device::CPU, dtype, true, &shape, &strides);
        let wanted = proven(address, &shape, &strides, i128::from(itemsize));
        prop_assert_eq!(field.as_ref().ok().map(|field| field.strides().to_vec()), wanted, "{:?}", field);
        field.iter().for_each(ask);
        for byte_strides in [strides.clone(), strides.iter().map(|stride| stride.wrapping_mul(itemsize)).collect()] {
            let field = Descriptor::from_byte_strides(pointer, Device::CPU, dtype, true, &shape, &byte_strides);
            let wanted = proven_in_bytes(address, &shape, &byte_strides, itemsize);
            prop_assert_eq!(field.as_ref().ok().map(|field| field.strides().to_vec()), wanted, "{:?}", field);
            field.iter().for_each(ask);
        }
    }
}

/// The shortcut multiplies 64-bit numbers without a check for each product.
#[test]
fn products_that_wrap_around_to_small_numbers_are_refused() {
    let pointer = without_provenance_mut(1 << 40);
    let of = |shape: &[i64], strides: &[i64]| Descriptor::new(pointer, Device::CPU, DType::U8, true, shape, strides);
    for shape in [&[1 << 32, 1 << 32][..], &[1 << 22, 1 << 22, 1 << 20], &[1 << 31, 1 << 31, 4], &[1 << 16; 4]] {
        assert!(matches!(of(shape, &vec![0; shape.len()]), Err(ExchangeError::Size { .. })), "{shape:?}");
    }
    let (apart, half) = ([1 << 31, -(1 << 31)], [1 << 31, 1 << 31]);
    assert!(matches!(of(&half, &apart), Err(ExchangeError::Span { .. })));
    for shape in [[1 << 16, 1 << 16], [1 << 31, 1 << 31], [1, 1 << 62]] {
        assert_eq!(of(&shape, &[0, 0]).unwrap().size(), shape[0] * shape[1]);
    }
}

/// The shortcut supports no larger element, and divides by shifting.
#[test]
fn elements_have_1_2_4_8_or_16_bytes() {
    for dtype in DType::all() {
        assert!(dtype.itemsize().is_power_of_two() && dtype.itemsize() <= 16, "{dtype}");
    }
}
