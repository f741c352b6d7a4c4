//! Copies of any shape and strides compared with a loop over elements, with canaries around and between the written ones.

#![allow(unsafe_code, reason = "fields are laid into memory by hand")]

use dlfield::{DType, Descriptor, Device, Error, Owner, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::layouts::{CANARY, Side, assign};
use crate::naive::{indices, offset, wide};
use crate::strategies::{config, side};

fn sized(itemsize: usize) -> DType {
    DType::all().find(|dtype| dtype.itemsize() == itemsize).unwrap()
}

fn itemsize() -> impl Strategy<Value = usize> {
    select(vec![1usize, 2, 4, 8, 16])
}

/// Shapes with whole tiles, edges, or neither.
fn shape() -> impl Strategy<Value = Vec<i64>> {
    let extent = prop_oneof![2 => 0i64..4, 3 => 4i64..12, 2 => 12i64..40];
    vec(extent, 0..=4).prop_filter("few enough elements", |shape| shape.iter().product::<i64>() < 40_000)
}

proptest! {
    #![proptest_config(config(4))]

    #[test]
    fn every_element_arrives_or_is_repeated_and_no_other_byte_changes(
        (shape, kept, to, from) in shape().prop_flat_map(|shape| {
            let ndim = shape.len();
            (Just(shape), vec(prop::bool::weighted(0.8), ndim), side(ndim), side(ndim))
        }),
        itemsize in itemsize(),
        leading in 0usize..3,
    ) {
        let dtype = sized(itemsize);
        let small: Vec<i64> = shape.iter().zip(&kept).map(|(extent, kept)| if *kept { *extent } else { 1 }).collect();
        let (to, mut from) = (to.lay(&shape, dtype), from.lay(&small, dtype));
        // Leading extents of 1 change nothing, and may be missing.
        from.shape.splice(0..0, std::iter::repeat_n(1, leading));
        from.strides.splice(0..0, std::iter::repeat_n(77, leading));
        assign(to, from);
    }
}

/// A part of one dimension: its first position and its step.
fn part() -> impl Strategy<Value = (i64, i64)> {
    (0i64..8, select(vec![-3i64, -2, -1, 1, 2, 3]))
}

proptest! {
    #![proptest_config(config(2))]

    #[test]
    fn overlapping_sides_are_read_before_they_are_written(
        len in 1i64..200,
        ahead in 0i64..50,
        back in any::<bool>(),
        step in 1i64..3,
        itemsize in itemsize(),
    ) {
        let dtype = sized(itemsize);
        let mut whole = Side { offset: 3, ..Side::c_order(1) }.lay(&[len * step + ahead], dtype);
        whole.number();
        let at = |first: i64, stride: i64, index: i64| {
            whole.start + usize::try_from(first + stride * index).unwrap() * itemsize
        };
        let (to, from) = if back { ((ahead, 1), (0, step)) } else { ((0, step), (ahead, 1)) };
        let mut expected = whole.bytes.clone();
        for index in 0..len {
            let (to, from) = (at(to.0, to.1, index), at(from.0, from.1, index));
            expected[to..to + itemsize].copy_from_slice(&whole.bytes[from..from + itemsize]);
        }
        let base = whole.bytes.as_mut_ptr().wrapping_add(whole.start);
        let view = |(first, stride): (i64, i64)| {
            let ptr = base.wrapping_add(usize::try_from(first).unwrap() * itemsize);
            let field = Descriptor::new(ptr, Device::CPU, dtype, false, &[len], &[stride]).unwrap();
            // SAFETY: the bytes outlive the tensor.
            unsafe { Tensor::from_parts(field, Owner::foreign(())) }
        };
        // SAFETY: nobody else has the memory.
        unsafe { view(to).assign(&view(from)) }.unwrap();
        prop_assert!(whole.bytes == expected);
    }

    /// Two parts of one field that overlap or only interleave, one of them perhaps transposed.
    #[test]
    fn parts_of_one_field_are_assigned_as_if_they_were_two_fields(
        rows in 1i64..40,
        columns in 1i64..40,
        to in (part(), part()),
        from in (part(), part()),
        turned in any::<bool>(),
        itemsize in itemsize(),
    ) {
        let dtype = sized(itemsize);
        let width = 8 + 3 * 40;
        let mut whole = Side { offset: 3, ..Side::c_order(2) }.lay(&[width; 2], dtype);
        whole.number();
        let base = whole.bytes.as_mut_ptr().wrapping_add(whole.start);
        let view = |parts: ((i64, i64), (i64, i64)), turned: bool| {
            let steps = if turned { [1, width] } else { [width, 1] };
            let along = |(first, step): (i64, i64), extent: i64| first + if step < 0 { -step * (extent - 1) } else { 0 };
            let first = along(parts.0, rows) * steps[0] + along(parts.1, columns) * steps[1];
            let ptr = base.wrapping_add(usize::try_from(first).unwrap() * itemsize);
            let strides = [parts.0.1 * steps[0], parts.1.1 * steps[1]];
            Descriptor::new(ptr, Device::CPU, dtype, false, &[rows, columns], &strides).unwrap()
        };
        let (to, from) = (view(to, false), view(from, turned));
        let places = |field: &Descriptor| -> Vec<usize> {
            let start = wide(field.ptr().addr() - whole.bytes.as_ptr().addr());
            let all = indices(field.shape()).into_iter();
            all.map(|index| usize::try_from(start + offset(&index, field.strides(), itemsize)).unwrap()).collect()
        };
        let mut expected = whole.bytes.clone();
        for (to, from) in places(&to).into_iter().zip(places(&from)) {
            expected[to..to + itemsize].copy_from_slice(&whole.bytes[from..from + itemsize]);
        }
        // SAFETY: nobody else has the memory, and it outlives the tensors.
        let [to, from] = [to, from].map(|field| unsafe { Tensor::from_parts(field, Owner::foreign(())) });
        // SAFETY: nobody else has the memory, and it outlives the tensors.
        unsafe { to.assign(&from) }.unwrap();
        prop_assert!(whole.bytes == expected);
    }
}

/// No machine has the memory for a copy of this source, so the error shows whether one was needed.
#[test]
fn only_a_source_that_meets_the_destination_is_copied_first() {
    let mut memory = [0u64; 8];
    let base = memory.as_mut_ptr();
    let tensor = |element: usize, len: i64, stride: i64| {
        let ptr = base.wrapping_add(element).cast();
        let field = Descriptor::new(ptr, Device::CPU, DType::F64, false, &[len], &[stride]).unwrap();
        // SAFETY: the memory outlives the tensor.
        unsafe { Tensor::from_parts(field, Owner::foreign(())) }
    };
    for (element, meets) in [(2, true), (3, false), (6, true), (5, false)] {
        // SAFETY: nobody else has the memory.
        let error = unsafe { tensor(0, 4, 2).assign(&tensor(element, 1 << 50, 0)) }.unwrap_err();
        let expected = if meets { matches!(error, Error::Memory(_)) } else { matches!(error, Error::Layout(_)) };
        assert!(expected, "{element}: {error}");
    }
}

/// Every step that has a loop of its own, and some that have none, in rows from one element to several registers. The source
/// starts and ends with an element, so a sanitizer sees bytes read outside of it.
#[test]
fn rows_of_every_length_and_step_are_gathered_and_scattered() {
    for itemsize in [1usize, 2, 4, 8, 16] {
        let dtype = sized(itemsize);
        for (step, backwards) in (1..=5).flat_map(|step| [(step, false), (step, true)]) {
            for length in (1..=40).chain([63, 64, 65, 200]) {
                let row = |gap: i64, backwards: bool, offset: usize| {
                    let (gaps, backwards) = (vec![1, gap], vec![false, backwards]);
                    Side { gaps, backwards, offset, ..Side::c_order(2) }.lay(&[3, length], dtype)
                };
                // Odd offsets, so elements are not aligned.
                assign(row(0, false, 1), row(step - 1, backwards, 3));
                assign(row(step - 1, backwards, 3), row(0, false, 1));
                assign(row(step - 1, backwards, 1), row(step - 1, false, 2));
            }
        }
    }
}

/// Rows of every length up to several vectors, whose ends are copied by stores that overlap.
#[test]
fn short_rows_are_copied_between_paddings() {
    for itemsize in [1usize, 2, 4, 8, 16] {
        for length in (1..=70).chain([255, 257, 1000, 8191, 8193]) {
            let row = |gap: i64, offset: usize| {
                Side { gaps: vec![gap, 0], offset, ..Side::c_order(2) }.lay(&[3, length], sized(itemsize))
            };
            assign(row(0, 5), row(3, 0));
            assign(row(3, 0), row(0, 5));
        }
    }
}

/// Squares whose last rows or columns are transposed again with their neighbours, and repeated rows.
#[test]
fn squares_of_every_size_are_transposed() {
    for itemsize in [1usize, 2, 4, 8, 16] {
        for (rows, columns) in (7..=25).flat_map(|rows| [(rows, 13), (11, rows), (rows, rows)]) {
            let lay = |order: [i64; 2], offset: usize| {
                Side { order: order.to_vec(), offset, ..Side::c_order(2) }.lay(&[rows, columns], sized(itemsize))
            };
            assign(lay([0, 1], 3), lay([1, 0], 0));
        }
    }
}

/// Long rows and short ones with gaps between them in the source, over which the next row is prefetched.
#[test]
fn large_rows_with_gaps_are_whole_too() {
    for (shape, step, backwards) in [
        ([97i64, 139, 121], 1, false),
        ([35, 180, 260], 1, false),
        ([97, 139, 121], 2, false),
        ([97, 139, 121], 2, true),
    ] {
        let (gaps, backwards) = (vec![0, 100, step - 1], vec![false, false, backwards]);
        let apart = Side { gaps, backwards, offset: 7, ..Side::c_order(3) };
        assign(Side::c_order(3).lay(&shape, DType::F64), apart.lay(&shape, DType::F64));
    }
}

/// Sizes that use threads and non-temporal stores, in shapes that divide badly.
#[test]
fn large_copies_are_whole_too() {
    for (shape, itemsize) in [
        ([3i64, 1031, 701], 8usize),
        ([35, 264, 250], 8),
        ([19, 136, 513], 16),
        ([129, 257, 67], 4),
        ([501, 53, 67], 2),
    ] {
        let dtype = sized(itemsize);
        for (order, gap, offset) in [([2, 1, 0], 0, 0), ([0, 1, 2], 3, 8), ([0, 2, 1], 0, 5), ([1, 2, 0], 1, 16)] {
            let compact = Side::c_order(3);
            let other = Side { order: order.to_vec(), gaps: vec![0, gap, 0], offset, ..Side::c_order(3) };
            assign(other.lay(&shape, dtype), compact.lay(&shape, dtype));
            assign(compact.lay(&shape, dtype), other.lay(&shape, dtype));
        }
    }
}

#[test]
fn fills_reach_every_element_and_nothing_else() {
    for itemsize in [1usize, 2, 4, 8, 16] {
        for (shape, gap, offset) in
            [(vec![7i64, 5], 0, 0), (vec![3, 1025], 2, 7), (vec![300, 70, 129], 1, 9), (vec![], 0, 1)]
        {
            let ndim = shape.len();
            let order = (0..i64::try_from(ndim).unwrap()).collect();
            let gaps = (0..ndim).map(|axis| if axis == 0 { gap } else { 0 }).collect();
            let mut to = Side { order, gaps, offset, ..Side::c_order(ndim) }.lay(&shape, sized(itemsize));
            let element: Vec<u8> = (1..=u8::try_from(itemsize).unwrap()).collect();
            let mut expected = to.bytes.clone();
            for place in to.places() {
                expected[place..place + itemsize].copy_from_slice(&element);
            }
            // SAFETY: nobody else has the memory.
            unsafe { to.tensor().fill_bytes(&element) }.unwrap();
            assert!(to.bytes == expected, "{shape:?} of {itemsize} bytes");
        }
    }
}

#[test]
fn shapes_that_do_not_broadcast_are_refused() {
    let lay = |shape: &[i64]| Side::c_order(shape.len()).lay(shape, DType::F64);
    for (to, from) in [(&[3i64, 4][..], &[4i64, 3][..]), (&[3, 4], &[2, 3, 4]), (&[4], &[3]), (&[], &[2])] {
        let (mut to, mut from) = (lay(to), lay(from));
        let refused = to.assign(&mut from).unwrap_err().to_string();
        assert!(refused.contains("shape"), "{refused}");
        assert!(to.bytes.iter().all(|byte| *byte == CANARY));
    }
}
