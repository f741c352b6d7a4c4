//! Sizes beyond 64 bits are errors, all others are correct, and nothing panics.

use dlfield::testing::{Block, Contents};
use dlfield::{DType, Device, Error, Layout, LayoutError, LayoutErrorKind, MAX_NDIM, Padding, Spec, Tensor};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::runner::check_large;
use crate::strategies::{config, dtype, edgy, permutation, preset};

/// Bytes that no machine can map.
const TOO_MUCH: usize = 1 << 52;

/// Bytes that every machine has.
const LITTLE: usize = 1 << 20;

/// Mostly as many numbers as dimensions.
fn about(ndim: usize) -> impl Strategy<Value = Vec<i64>> {
    let other = ndim.saturating_sub(1)..=ndim + 1;
    prop_oneof![9 => vec(edgy(), ndim), 1 => vec(edgy(), other)]
}

fn pairs(ndim: usize) -> impl Strategy<Value = Vec<(i64, i64)>> {
    vec((edgy(), edgy()), ndim.saturating_sub(1)..=ndim + 1)
}

/// Shape, layout and aligned index for the same number of dimensions.
fn large() -> impl Strategy<Value = (Vec<i64>, Vec<i64>, Option<Vec<i64>>)> {
    let extent = edgy().prop_map(|extent| extent.saturating_abs());
    (0usize..=7)
        .prop_flat_map(move |ndim| {
            let extents = prop_oneof![vec(extent.clone(), ndim), vec(0i64..1 << 12, ndim)];
            let index = vec(prop_oneof![3 => 0i64..9, 1 => edgy().prop_map(|at| at.saturating_abs())], ndim);
            (extents, permutation(ndim), option::of(index))
        })
        .prop_map(|(extents, ranks, index)| {
            let inside = |index: Vec<i64>| index.iter().zip(&extents).map(|(at, extent)| *at.min(extent)).collect();
            let index = index.map(inside);
            (extents, ranks, index)
        })
}

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn nothing_panics_whatever_is_asked_for(
        (shape, index, halo, origin) in prop_oneof![4 => 0usize..7, 1 => 60usize..70]
            .prop_flat_map(|ndim| (vec(edgy(), ndim), about(ndim), option::of(pairs(ndim)), option::of(about(ndim)))),
        dtype in dtype(),
        preset in option::of(preset()),
        alignment in option::of(edgy()),
        row in any::<bool>(),
    ) {
        let mut spec = Spec::new(&shape, dtype).aligned_index(&index);
        spec = preset.into_iter().fold(spec, Spec::preset);
        spec = alignment.into_iter().fold(spec, Spec::alignment_size);
        spec = halo.iter().fold(spec, |spec, halo| spec.halo(halo));
        spec = origin.iter().fold(spec, |spec, origin| spec.origin(origin));
        spec = if row { spec.padding(Padding::Row) } else { spec };
        if let Ok(place) = spec.place() {
            prop_assert!(shape.len() <= MAX_NDIM && index.len() == shape.len());
            prop_assert!(shape.iter().chain(&index).chain(origin.iter().flatten()).all(|number| *number >= 0));
            prop_assert!(i64::try_from(place.block_bytes + place.block_alignment).is_ok());
            let tensor = || Tensor::zeros(&spec.clone().with_device(Device::CPU));
            match place.block_bytes + place.block_alignment {
                TOO_MUCH.. => prop_assert!(matches!(tensor(), Err(Error::Memory(_))), "{:?}", tensor()),
                0..LITTLE => assert_eq!(tensor().unwrap().descriptor().strides(), &place.strides[..]),
                LITTLE..TOO_MUCH => {}
            }
        }
    }

    #[test]
    fn what_64_bits_can_count_is_placed_and_nothing_else(
        (shape, ranks, index) in large(),
        dtype in dtype(),
        alignment in prop_oneof![1i64..5000, edgy().prop_map(|bytes| bytes.saturating_abs().max(1))],
        padding in prop_oneof![Just(Padding::None), Just(Padding::Row)],
    ) {
        let layout = Layout::new(&ranks, shape.len()).unwrap();
        check_large(&shape, &layout, dtype, alignment, padding, index.as_deref());
    }
}

fn refused(spec: Spec) -> LayoutError {
    match spec.place() {
        Err(Error::Layout(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_name_the_argument() {
    let spec = |shape: &[i64]| Spec::new(shape, DType::F64);
    let check = |spec: Spec, message: &str| assert_eq!(refused(spec).to_string(), message);
    check(spec(&[1; 65]), "shape: expected at most 64 dimensions, got 65");
    check(spec(&[2, -1]), "shape: expected extents of 0 or more, got -1 at axis 1");
    check(spec(&[2]).alignment_size(0), "alignment_size: expected 1 byte or more, got 0");
    check(spec(&[2]).alignment_size(-8), "alignment_size: expected 1 byte or more, got -8");
    check(spec(&[2, 2]).aligned_index(&[0, -1]), "aligned_index: expected 0 to 2 at axis 1 of extent 2, got -1");
    check(spec(&[2, 0]).aligned_index(&[2, 1]), "aligned_index: expected 0 to 0 at axis 1 of extent 0, got 1");
    for (argument, spec) in [
        ("aligned_index", spec(&[2, 2]).aligned_index(&[0])),
        ("origin", spec(&[2, 2]).origin(&[0])),
        ("halo", spec(&[2, 2]).halo(&[(0, 0)])),
        ("layout", spec(&[2, 2]).layout(Layout::c_order(1))),
    ] {
        check(spec, &format!("{argument}: expected one entry for each dimension, got 1 entry for 2 dimensions"));
    }
    let both = "0 or more each, together at most the extent, which includes them";
    let wide_halo = format!("halo: expected {both}, got ({}, 1) at axis 0 of extent 2", i64::MAX);
    check(spec(&[2]).halo(&[(i64::MAX, 1)]), &wide_halo);
    check(spec(&[2]).origin(&[3]), "origin: expected 0 to 2 at axis 0 of extent 2, got 3");
    let too_large = |spec: Spec, argument: &str| {
        let error = refused(spec);
        assert_eq!((error.kind(), error.argument()), (LayoutErrorKind::TooLarge, argument), "{error}");
    };
    too_large(spec(&[2]).alignment_size(i64::MAX), "alignment_size");
    for huge in [vec![i64::MAX], vec![1 << 31, 1 << 32], vec![0, i64::MAX], vec![i64::MAX; 64]] {
        too_large(spec(&huge), "shape");
    }
    too_large(Spec::new(&[1, 3 << 61], DType::U8).aligned_index(&[1, 3 << 61]), "aligned_index");
}

#[test]
fn a_failed_allocation_is_an_error() {
    for bytes in [TOO_MUCH, 1 << 62, usize::MAX / 2, usize::MAX] {
        for alignment in [1, 64, 4096, 1 << 21, 1 << 62] {
            for contents in [Contents::Zeros, Contents::Undefined] {
                assert!(matches!(Block::allocate(Device::CPU, bytes, alignment, contents), Err(Error::Memory(_))));
            }
        }
    }
    assert!(matches!(Block::allocate(Device::rocm(0), 8, 64, Contents::Zeros), Err(Error::Device(_))));
}
