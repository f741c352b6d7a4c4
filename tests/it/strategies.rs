//! Strategies for proptest.

use dlfield::{DType, Dims, Layout, Padding, Preset, Spec};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index as Pick, select};

use crate::layouts::Side;
use crate::repeated;

/// Draws `factor` times as many cases as proptest's default or `PROPTEST_CASES`: the same in every run.
pub fn config(factor: u32) -> ProptestConfig {
    repeated::config(256 * factor)
}

pub fn dtype() -> impl Strategy<Value = DType> + Clone {
    select(DType::all().collect::<Vec<_>>())
}

/// Any preset; [`spec`] overrides its device.
pub fn preset() -> impl Strategy<Value = Preset> {
    select(Preset::all())
}

/// `0..ndim` in any order.
pub fn permutation(ndim: usize) -> impl Strategy<Value = Vec<i64>> {
    Just((0..i64::try_from(ndim).unwrap()).collect::<Vec<i64>>()).prop_shuffle()
}

/// Labels of all three kinds.
fn dims(ndim: usize) -> impl Strategy<Value = Dims> {
    Just(vec!["I", "J", "K", "0", "1", "7", "cell", "edge"])
        .prop_shuffle()
        .prop_map(move |labels| Dims::parse(&labels[..ndim]).unwrap())
}

fn padding() -> impl Strategy<Value = Padding> {
    select(vec![Padding::None, Padding::Row])
}

/// Returns a halo that fits a shape, from any two numbers per dimension.
pub fn halo_within(shape: &[i64], raw: &[(Pick, Pick)]) -> Vec<(i64, i64)> {
    let below = |pick: &Pick, limit: i64| i64::try_from(pick.index(usize::try_from(limit + 1).unwrap())).unwrap();
    let pair = |(extent, (lower, upper)): (&i64, &(Pick, Pick))| {
        let lower = below(lower, *extent);
        (lower, below(upper, *extent - lower))
    };
    shape.iter().zip(raw).map(pair).collect()
}

/// A small field on the host with any legal options.
pub fn spec(dtype: impl Strategy<Value = DType> + Clone) -> impl Strategy<Value = Spec> {
    (0usize..=4).prop_flat_map(move |ndim| {
        let alignment = prop_oneof![1i64..=70, (0u32..=12).prop_map(|bits| 1i64 << bits)];
        let picks = vec((any::<Pick>(), any::<Pick>()), ndim);
        let shape = vec(prop_oneof![1 => Just(0i64), 9 => 1i64..=5], ndim);
        let layout = permutation(ndim).prop_map(move |ranks| Layout::new(&ranks, ndim).unwrap());
        let stated = (option::of(dims(ndim)), option::of(preset()), option::of(layout), option::of(alignment));
        let rest =
            (option::of(vec(0i64..9, ndim)), option::of(padding()), option::of(picks.clone()), option::of(picks));
        (shape, dtype.clone(), stated, rest).prop_map(|(shape, dtype, stated, rest)| {
            let (dims, preset, layout, alignment) = stated;
            let (aligned_index, padding, halo, origin) = rest;
            let mut spec = Spec::new(&shape, dtype).with_device(dlfield::Device::CPU);
            spec = dims.into_iter().fold(spec, Spec::dims);
            spec = preset.into_iter().fold(spec, Spec::preset);
            spec = layout.into_iter().fold(spec, Spec::layout);
            spec = alignment.into_iter().fold(spec, Spec::alignment_size);
            spec = padding.into_iter().fold(spec, Spec::padding);
            spec = aligned_index.iter().fold(spec, |spec, raw| {
                let inside = raw.iter().zip(&shape).map(|(index, extent)| *index.min(extent));
                spec.aligned_index(&inside.collect::<Vec<_>>())
            });
            spec = halo.iter().fold(spec, |spec, raw| spec.halo(&halo_within(&shape, raw)));
            origin.iter().fold(spec, |spec, raw| {
                spec.origin(&halo_within(&shape, raw).iter().map(|(lower, _)| *lower).collect::<Vec<_>>())
            })
        })
    })
}

/// Numbers at which 64-bit arithmetic goes wrong, and ordinary ones.
pub fn edgy() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![
        6 => -3i64..=9,
        3 => (0u32..63, -1i64..=1).prop_map(|(bits, off)| (1i64 << bits) + off),
        1 => (0u32..63, -1i64..=1).prop_map(|(bits, off)| -(1i64 << bits) + off),
        2 => select(vec![i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1, i64::MAX / 8, i64::MAX / 16 + 1]),
        1 => any::<i64>(),
    ]
}

/// Any layout of one side of a copy.
pub fn side(ndim: usize) -> impl Strategy<Value = Side> {
    let gap = prop_oneof![4 => Just(0i64), 1 => 1i64..4];
    (permutation(ndim), vec(gap, ndim), vec(prop::bool::weighted(0.2), ndim), 0usize..70)
        .prop_map(|(order, gaps, backwards, offset)| Side { order, gaps, backwards, offset })
}
