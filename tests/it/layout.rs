//! Properties of layouts and allocation layouts.

use dlfield::testing::Extents;
use dlfield::{DType, Descriptor, Device, Dims, Layout, Spec};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::naive::{indices, offset, offsets, wide};
use crate::runner::{check, check_memory};
use crate::strategies::{config, dtype, permutation, spec};

/// Returns whether the elements are contiguous when visited with the given axes from outermost to innermost.
fn is_run(shape: &[i64], strides: &[i64], axes: &[usize]) -> bool {
    let pick = |all: &[i64]| -> Vec<i64> { axes.iter().map(|axis| all[*axis]).collect() };
    let (shape, strides) = (pick(shape), pick(strides));
    indices(&shape).iter().enumerate().all(|(nth, index)| offset(index, &strides, 1) == wide(nth))
}

fn place_of(ndim: usize) -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    let extent = prop_oneof![1 => Just(0i64), 3 => Just(1i64), 6 => 2i64..=4];
    (vec(extent, ndim), vec(prop_oneof![3 => 0i64..=8, 1 => -4i64..0, 1 => Just(12)], ndim))
}

proptest! {
    #![proptest_config(config(8))]

    #[test]
    fn placements_keep_their_promises(spec in spec(dtype())) {
        check(&spec);
    }

    #[test]
    fn memory_is_as_placed(spec in spec(dtype())) {
        check_memory(&spec);
    }

    #[test]
    fn permutations_and_only_they_are_layouts(ranks in vec(-1i64..6, 0..6), ndim in 0usize..6) {
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        let legal = ranks.len() == ndim && sorted.iter().enumerate().all(|(rank, found)| wide(rank) == i128::from(*found));
        prop_assert_eq!(Layout::new(&ranks, ndim).is_ok(), legal);
    }

    #[test]
    fn layouts_rank_what_they_select(ranks in (0usize..7).prop_flat_map(permutation), mask in any::<u8>()) {
        let layout = Layout::new(&ranks, ranks.len()).unwrap();
        let kept: Vec<usize> = (0..ranks.len()).filter(|axis| mask >> axis & 1 == 1).rev().collect();
        let part = layout.select(&kept).to_vec();
        for (left, right) in (0..kept.len()).flat_map(|left| (0..kept.len()).map(move |right| (left, right))) {
            prop_assert_eq!(part[left] < part[right], ranks[kept[left]] < ranks[kept[right]]);
        }
    }

    #[test]
    fn layouts_are_read_off_strides((shape, strides) in (0usize..5).prop_flat_map(place_of)) {
        let layout = Layout::of_strides(&shape, &strides);
        let axes: Vec<usize> = layout.axes().collect();
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        prop_assert!(sorted.into_iter().eq(0..shape.len()));
        let steps: Vec<u64> = axes.iter().filter(|axis| shape[**axis] != 1).map(|axis| strides[*axis].unsigned_abs()).collect();
        prop_assert!(steps.is_sorted_by(|left, right| left >= right), "{:?} of {:?}", axes, strides);
    }

    #[test]
    fn contiguous_means_no_gaps_in_that_order((shape, strides) in (0usize..4).prop_flat_map(place_of)) {
        // Far from both ends, so that negative strides stay in the address space.
        let start = std::ptr::without_provenance_mut(1 << 20);
        let (extents, steps) = (Extents::from_slice(&shape), Extents::from_slice(&strides));
        let field = Descriptor::new(start, Device::CPU, DType::F32, false, &extents, &steps).unwrap();
        let forth: Vec<usize> = (0..shape.len()).collect();
        let back: Vec<usize> = (0..shape.len()).rev().collect();
        prop_assert_eq!(field.is_c_contiguous(), is_run(&shape, &strides, &forth));
        prop_assert_eq!(field.is_f_contiguous(), is_run(&shape, &strides, &back));

        let all = offsets(&shape, &strides, 4);
        let span = all.first().zip(all.last()).map(|(low, high)| (*low, *high + 4));
        prop_assert_eq!(field.byte_span(), span);
        prop_assert_eq!((i128::from(field.size()), i128::from(field.nbytes())), (wide(all.len()), wide(all.len()) * 4));
    }
}

/// Beyond the number of dimensions that fits a byte there is neither a panic nor a layout.
#[test]
fn layouts_of_too_many_dimensions_are_refused() {
    for ndim in [65usize, 255, 256, 257, 1000] {
        let ranks: Vec<i64> = (0..i64::try_from(ndim).unwrap()).collect();
        let spec = || Spec::new(&vec![1; ndim], DType::F64);
        assert!(spec().place().is_err(), "{ndim}");
        if let Ok(layout) = Layout::new(&ranks, ndim) {
            assert!(spec().layout(layout).place().is_err(), "{ndim}");
        }
    }
}

/// The number of a data dimension is a `u32`, and the last one has no successor.
#[test]
fn data_dimensions_after_the_last_number_do_not_panic() {
    let dims = Dims::parse(["I", "4294967295"]).unwrap().with_data(2);
    assert_eq!(dims.len(), 4);
    let labels: std::collections::HashSet<String> = dims.iter().map(|dim| dim.to_string()).collect();
    assert_eq!(labels.len(), 4, "{dims}");
}
