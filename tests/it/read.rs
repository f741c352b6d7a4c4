//! For any content of a DLPack struct, reading it returns a correct descriptor or an error, and never panics.

use std::ptr::without_provenance_mut;

use dlfield::testing::{Extents, byte_span};
use dlfield::{DType, Descriptor, Device, ExchangeError};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::sound_dlpack::{Fields, check};
use crate::strategies::{config, dtype, edgy};

/// A list for that many dimensions: NULL, small numbers, or any.
fn list(len: usize, smallest: i64) -> impl Strategy<Value = Option<Vec<i64>>> {
    let ordinary = prop_oneof![1 => Just(0i64), 6 => smallest..=3];
    prop_oneof![
        1 => Just(None),
        5 => vec(ordinary, len).prop_map(Some),
        2 => vec(prop_oneof![30 => Just(1i64), 3 => edgy()], len).prop_map(Some),
        2 => vec(edgy(), len).prop_map(Some),
    ]
}

fn fields() -> impl Strategy<Value = Fields> {
    let known = dtype().prop_map(|dtype| (dtype.code().0, dtype.bits(), 1));
    let dtype = prop_oneof![8 => known, 1 => (0u8..20, any::<u8>(), 0u16..3)];
    let device = prop_oneof![8 => (1u32..=4, 0..3), 1 => (0u32..22, -2..3), 1 => (any::<u32>(), any::<i32>())];
    let version = option::of(prop_oneof![(Just(1u32), 0u32..5), (0u32..3, any::<u32>())]);
    let near = |what: i64| u64::from_ne_bytes(what.to_ne_bytes());
    let address = prop_oneof![1 => Just(0u64), 8 => 1u64 << 20..1 << 47, 2 => edgy().prop_map(near)];
    let offset = prop_oneof![4 => Just(0u64), 2 => 0u64..4096, 1 => edgy().prop_map(near)];
    let lists = prop_oneof![8 => 0i32..5, 2 => -2i32..70].prop_flat_map(|ndim| {
        let len = usize::try_from(ndim).unwrap_or(0);
        (Just(ndim), list(len, 1), list(len, -2))
    });
    (lists, address, offset, dtype, device, version, 0u64..8).prop_map(
        |(lists, data, byte_offset, dtype, device, version, flags)| {
            let (ndim, shape, strides) = lists;
            Fields { ndim, shape, strides, data, byte_offset, dtype, device, version, flags }
        },
    )
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn structs_are_taken_exactly_if_sound(fields in fields()) {
        check(&fields);
    }
}

/// Sums of products of 64-bit numbers that exceed 128 bits.
#[test]
fn spans_beyond_128_bits_are_refused() {
    for stride in [i64::MAX, i64::MIN] {
        for ndim in [2, 3, 4, 64] {
            let (shape, strides) = (Extents::from_elem(i64::MAX, ndim), Extents::from_elem(stride, ndim));
            let start = without_provenance_mut(1 << 40);
            let field = Descriptor::new(start, Device::CPU, DType::U8, false, &shape, &strides);
            let refused =
                field.as_ref().is_err_and(|error: &ExchangeError| ["strides", "shape"].contains(&error.argument()));
            assert!(refused, "{field:?}");
            assert!(byte_span(&shape, &strides, 16).is_some());
        }
    }
}
