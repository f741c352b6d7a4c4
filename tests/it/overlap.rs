//! Overlap of two fields, compared with the sets of all addresses of their bytes.

use std::collections::{BTreeSet, HashSet};

use dlfield::testing::{Spans, Strided, byte_span, overlap};
use dlfield::{DType, Descriptor, Device};
use proptest::array::uniform4;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::naive::bytes;
use crate::strategies::{config, edgy};

/// An address far from both ends of the address space.
const MIDDLE: usize = 1 << 40;

#[derive(Clone, Debug)]
struct Field {
    address: usize,
    shape: Vec<i64>,
    strides: Vec<i64>,
    itemsize: usize,
}

impl Field {
    fn descriptor(&self, device: Device) -> Descriptor {
        let dtype = DType::all().find(|dtype| dtype.itemsize() == self.itemsize).unwrap();
        let ptr = std::ptr::without_provenance_mut(self.address);
        Descriptor::new(ptr, device, dtype, false, &self.shape, &self.strides).unwrap()
    }

    fn bytes(&self) -> HashSet<i128> {
        bytes(&self.descriptor(Device::CPU))
    }
}

fn itemsize() -> impl Strategy<Value = usize> {
    select(vec![1usize, 2, 4, 8, 16])
}

fn field() -> impl Strategy<Value = Field> {
    let extent = prop_oneof![1 => Just(0i64), 12 => 1i64..=6];
    (vec((extent, -20i64..=20), 0..=4), itemsize(), 0usize..400).prop_map(|(axes, itemsize, ahead)| {
        let (shape, strides) = axes.into_iter().unzip();
        Field { address: MIDDLE + ahead, shape, strides, itemsize }
    })
}

/// Two views of one array: slices `a[...]` of any start, extent and step.
fn views() -> impl Strategy<Value = (Field, Field)> {
    let cut = |extent: i64| {
        (0..extent, 1i64..=3, any::<bool>(), any::<prop::sample::Index>()).prop_map(move |(start, step, back, len)| {
            let step = if back { -step } else { step };
            let room = if back { start } else { extent - 1 - start } / step.abs() + 1;
            (start, step, i64::try_from(len.index(usize::try_from(room).unwrap())).unwrap() + 1)
        })
    };
    let array = (vec(1i64..=7, 1..=4), 0i64..=2, itemsize(), any::<bool>());
    let cuts = move |shape: &[i64]| shape.iter().map(|extent| cut(*extent)).collect::<Vec<_>>();
    array.prop_flat_map(move |(shape, padding, itemsize, turned)| {
        let mut strides = vec![1i64; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * (shape[axis] + if axis + 1 == shape.len() { padding } else { 0 });
        }
        let view = move |cuts: Vec<(i64, i64, i64)>, strides: &[i64], turned: bool| {
            let first: i64 = cuts.iter().zip(strides).map(|((start, ..), stride)| start * stride).sum();
            let mut axes: Vec<(i64, i64)> =
                cuts.iter().zip(strides).map(|((_, step, len), stride)| (*len, step * stride)).collect();
            if turned {
                axes.reverse();
            }
            let (shape, strides) = axes.into_iter().unzip();
            Field { address: MIDDLE + usize::try_from(first).unwrap() * itemsize, shape, strides, itemsize }
        };
        (cuts(&shape), cuts(&shape))
            .prop_map(move |(one, other)| (view(one, &strides, false), view(other, &strides, turned)))
    })
}

fn meet(one: &Descriptor, other: &Descriptor) -> bool {
    assert_eq!(one.overlaps(other), other.overlaps(one), "not symmetric: {one:?} {other:?}");
    one.overlaps(other)
}

proptest! {
    #![proptest_config(config(20))]

    #[test]
    fn fields_meet_where_they_have_an_address_in_common(one in field(), other in field()) {
        let common = !one.bytes().is_disjoint(&other.bytes());
        prop_assert_eq!(meet(&one.descriptor(Device::CPU), &other.descriptor(Device::CPU)), common);
    }

    #[test]
    fn views_of_one_array_meet_where_they_have_an_element_in_common((one, other) in views()) {
        let common = !one.bytes().is_disjoint(&other.bytes());
        prop_assert_eq!(meet(&one.descriptor(Device::CPU), &other.descriptor(Device::CPU)), common);
    }

    /// Invalid numbers get an answer too, by the same rule.
    #[test]
    fn hostile_numbers_do_no_harm(
        axes in vec(uniform4(edgy()), 0..6),
        addresses in (any::<usize>(), any::<usize>()),
        itemsizes in (select(vec![0, 1, 16, usize::MAX]), select(vec![0, 1, 8, usize::MAX / 2])),
    ) {
        let [a, b, c, d]: [Vec<i64>; 4] = [0, 1, 2, 3].map(|number| axes.iter().map(|axis| axis[number]).collect());
        let one = Strided { address: addresses.0, shape: &a, strides: &b, itemsize: itemsizes.0 };
        let other = Strided { address: addresses.1, shape: &c, strides: &d, itemsize: itemsizes.1 };
        prop_assert_eq!(overlap(&one, &other), overlap(&other, &one));
        let elements = |field: &Strided<'_>| field.itemsize > 0 && field.shape.iter().all(|extent| *extent > 0);
        prop_assert_eq!(overlap(&one, &one), elements(&one));
    }
}

/// Fields too large to enumerate.
#[test]
fn large_arrays_are_cut_exactly() {
    let n = 1i64 << 14;
    let whole = |shape: &[i64; 2], strides: [i64; 2], first: i64| Field {
        address: MIDDLE + usize::try_from(first * 8).unwrap(),
        shape: shape.to_vec(),
        strides: strides.to_vec(),
        itemsize: 8,
    };
    let half = n / 2;
    let (c, f) = ([n, 1], [1, n]);
    for (one, other, met) in [
        // Left and right halves, one in C order, the other transposed.
        (whole(&[n, half], c, 0), whole(&[half, n], f, half), false),
        (whole(&[n, half], c, 0), whole(&[half, n], f, half - 1), true),
        // Even and odd columns, even and odd rows, the two colours of a checkerboard.
        (whole(&[n, half], [n, 2], 0), whole(&[n, half], [n, 2], 1), false),
        (whole(&[half, n], [2 * n, 1], 0), whole(&[half, n], [2 * n, 1], n), false),
        (whole(&[half, half], [2 * n, 2], 0), whole(&[half, half], [2 * n, 2], n + 1), false),
        // The diagonal, and the one below it.
        (whole(&[n, 1], [n + 1, 1], 0), whole(&[n - 1, 1], [n + 1, 1], n), false),
        (whole(&[n, 1], [n + 1, 1], 0), whole(&[n, 1], [n, 1], n / 3), true),
        (whole(&[half, 1], [n + 1, 1], 0), whole(&[n, 1], [n, 1], half), false),
    ] {
        assert_eq!(meet(&one.descriptor(Device::CPU), &other.descriptor(Device::CPU)), met, "{one:?} {other:?}");
    }
}

#[test]
fn only_devices_with_the_same_addresses_meet() {
    let field = Field { address: MIDDLE, shape: vec![4], strides: vec![1], itemsize: 8 };
    let on = |device: &str| field.descriptor(device.parse().unwrap());
    for (one, other, met) in [
        ("cpu", "cuda_host", true),
        ("cpu", "cuda_managed", true),
        ("rocm_host", "cuda_host", true),
        ("cuda:1", "cuda:1", true),
        ("cuda_managed", "cuda:1", true),
        ("cuda:0", "cuda:1", true),
        ("cpu", "cuda:0", true),
        ("cuda_host", "cuda:0", true),
        ("rocm:0", "cuda:0", false),
        ("cuda_managed", "rocm:0", false),
    ] {
        assert_eq!(meet(&on(one), &on(other)), met, "{one} {other}");
    }
}

/// A field among others, some of them far longer.
fn borrowed() -> impl Strategy<Value = Field> {
    let extent = prop_oneof![6 => 0i64..20, 1 => Just(5000i64)];
    (extent, -2i64..=2, itemsize(), 0usize..2000).prop_map(|(extent, stride, itemsize, ahead)| Field {
        address: MIDDLE + ahead,
        shape: vec![extent],
        strides: vec![stride],
        itemsize,
    })
}

/// The lowest address of the elements, and one past the highest.
fn range(memory: &Descriptor) -> (usize, usize) {
    let bounds = byte_span(memory.shape(), memory.strides(), memory.dtype().itemsize());
    let address = |offset: i128| memory.ptr().addr().wrapping_add_signed(isize::try_from(offset).unwrap());
    bounds.map_or((0, 0), |(low, high)| (address(low), address(high)))
}

proptest! {
    #![proptest_config(config(1))]

    /// Of the borrows that have not ended, those that overlap a field are among the near ones, and no others are.
    #[test]
    fn borrows_that_overlap_are_near(
        borrows in vec((borrowed(), any::<bool>(), any::<bool>()), 0..50),
        asked in borrowed(),
    ) {
        let asked = asked.descriptor(Device::CPU);
        let borrows: Vec<_> = borrows.iter().map(|(field, writes, ends)| (field.descriptor(Device::CPU), *writes, *ends)).collect();
        let mut spans = Spans::new();
        for (number, (memory, writes, _)) in borrows.iter().enumerate() {
            spans.insert(range(memory), *writes, number, number);
        }
        for (number, (memory, writes, _)) in borrows.iter().enumerate().filter(|(_, (.., ends))| *ends) {
            spans.remove(range(memory), *writes, number);
        }
        for writes in [false, true] {
            let near: BTreeSet<usize> = spans.near(range(&asked), writes).collect();
            let living = |number: &usize| borrows[*number].1 == writes && !borrows[*number].2;
            prop_assert!(near.iter().all(living));
            let overlapping = (0..borrows.len()).filter(living).filter(|number| borrows[*number].0.overlaps(&asked));
            prop_assert!(overlapping.collect::<BTreeSet<_>>().is_subset(&near));
        }
    }
}

#[test]
fn few_borrows_are_near_among_many() {
    let mut spans = Spans::new();
    for number in 0..1000 {
        spans.insert((MIDDLE + 256 * number, MIDDLE + 256 * number + 64), true, number, number);
    }
    spans.insert((MIDDLE, MIDDLE + 256_000), true, 1000, 1000);
    assert!(spans.near((MIDDLE + 256 * 500, MIDDLE + 256 * 500 + 64), true).count() <= 3);
    assert_eq!(spans.near((2 * MIDDLE, 2 * MIDDLE + 64), true).count(), 0);
}
