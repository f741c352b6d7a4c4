//! Copies between element types compared with a cast of one element at a time; every byte between the elements is checked.

use dlfield::{DType, can_cast};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::casts::{cast, specials};
use crate::layouts::{LaidOut, Side};
use crate::strategies::{config, side};

/// Pairs of element types with a cast from the first to the second.
fn pairs() -> Vec<(DType, DType)> {
    let all = DType::all().flat_map(|from| DType::all().map(move |to| (from, to)));
    all.filter(|(from, to)| can_cast(*from, *to)).collect()
}

/// Converts one field into another, repeating extents of 1, and compares all bytes of the destination with the oracle's.
fn check(mut from: LaidOut, mut to: LaidOut) {
    let mut expected = to.bytes.clone();
    let (itemsize, places) = (from.dtype.itemsize(), to.places());
    for (place, source) in places.iter().zip(from.repeated(&to.shape)) {
        let should = cast(&from.bytes[source..source + itemsize], from.dtype, to.dtype);
        expected[*place..place + should.len()].copy_from_slice(&should);
    }
    to.assign(&mut from).unwrap();
    if to.bytes != expected {
        let wrong =
            |place: &&usize| to.bytes[**place..][..to.dtype.itemsize()] != expected[**place..][..to.dtype.itemsize()];
        let first = places.iter().zip(from.repeated(&to.shape)).find(|(place, _)| wrong(place));
        let element = first.map(|(_, source)| &from.bytes[source..source + itemsize]);
        let (shapes, strides) = ((&from.shape, &to.shape), (&from.strides, &to.strides));
        panic!("{} to {}, {shapes:?}, {strides:?}: {element:02x?} in {first:?}", from.dtype, to.dtype);
    }
}

/// Returns elements of a type: the special ones in turn, with some of the given bytes between them.
fn elements(dtype: DType, bytes: usize, raw: &[u8]) -> Vec<u8> {
    let specials = specials(dtype);
    let mut random = raw.iter().copied().cycle();
    let mut all = Vec::with_capacity(bytes + 32);
    for nth in 0.. {
        if all.len() >= bytes {
            break;
        }
        match (random.next(), specials.get(nth % (2 * specials.len()))) {
            (Some(pick), Some(special)) if pick % 4 > 0 => all.extend_from_slice(special),
            _ => all.extend(random.by_ref().take(dtype.itemsize())),
        }
    }
    all.truncate(bytes);
    all
}

fn shape() -> impl Strategy<Value = Vec<i64>> {
    prop_oneof![
        vec(prop_oneof![1 => 0i64..2, 9 => 1i64..7], 0..5),
        vec(1i64..50, 2),
        // Longer than a chunk of any kind.
        (0i64..9000).prop_map(|extent| vec![extent]),
        (1i64..300, 1i64..20, any::<bool>()).prop_map(|(a, b, turned)| if turned { vec![a, b] } else { vec![b, a] }),
    ]
}

/// Two sides, one of which is repeated in some dimensions.
fn case() -> impl Strategy<Value = (LaidOut, LaidOut)> {
    (shape(), select(pairs()), vec(any::<u8>(), 61)).prop_flat_map(|(shape, (from, to), raw)| {
        let ndim = shape.len();
        (side(ndim), side(ndim), vec(prop::bool::weighted(0.85), ndim)).prop_map(move |(source, destination, kept)| {
            let small: Vec<i64> = shape.iter().zip(kept).map(|(extent, kept)| if kept { *extent } else { 1 }).collect();
            (filled(source.lay(&small, from), &raw), destination.lay(&shape, to))
        })
    })
}

/// Writes elements from the first position on, also between those of the field.
fn filled(mut field: LaidOut, raw: &[u8]) -> LaidOut {
    let first = field.start % field.dtype.itemsize();
    let all = field.bytes.len();
    field.bytes.truncate(first);
    field.bytes.extend(elements(field.dtype, all - first, raw));
    field
}

proptest! {
    #![proptest_config(config(4))]

    #[test]
    fn any_field_becomes_any_other((from, to) in case()) {
        check(from, to);
    }
}

/// Rows of elements with a gap between them.
fn rows(gap: i64, offset: usize) -> Side {
    Side { gaps: vec![0, gap], offset, ..Side::c_order(2) }
}

/// Every pair with all special values: elements that are contiguous, strided, and repeated.
#[test]
fn every_pair_and_every_special_value() {
    for (from, to) in pairs() {
        let specials = specials(from);
        let count = i64::try_from(specials.len()).unwrap();
        for (source, target, gap) in
            [([count, 1], [count, 1], 0), ([1, count], [1, count], 2), ([count, 1], [count, 3], 0)]
        {
            let mut source = rows(gap, 0).lay(&source, from);
            for (place, special) in source.places().into_iter().zip(&specials) {
                source.bytes[place..place + special.len()].copy_from_slice(special);
            }
            check(source, rows(gap, 5).lay(&target, to));
        }
    }
}

/// Large fields bypass the caches, and are divided among threads.
#[test]
fn large_fields_are_converted_as_small_ones_are() {
    let raw: Vec<u8> = (0..=250u8).map(|byte| byte.wrapping_mul(97)).collect();
    for (from, to, turned) in [
        (DType::F64, DType::F32, false),
        (DType::F32, DType::F64, true),
        (DType::I64, DType::C64, false),
        (DType::F16, DType::C128, true),
    ] {
        let shape = [i64::try_from((17 << 20) / 1021 / to.itemsize()).unwrap(), 1021];
        let mut target = rows(0, to.itemsize());
        if turned {
            target.order.reverse();
        }
        check(filled(rows(0, 0).lay(&shape, from), &raw), target.lay(&shape, to));
    }
}
