//! Compares one allocation layout, and its memory, with the oracle.

#![allow(unsafe_code, reason = "whole blocks, padding included, are read through their address")]

use dlfield::testing::is_contiguous;
use dlfield::{AllocationLayout, DType, Error, Layout, LayoutErrorKind, Padding, Spec, Tensor};

use crate::naive::{Bytes, indices, offset, offsets, size, wide};

/// Places a spec and checks every element's address against the promises of the allocation layout.
pub fn check(spec: &Spec) -> AllocationLayout {
    let place = spec.place().unwrap_or_else(|error| panic!("{spec:?}: {error}"));
    elements_are_apart_and_inside(&place);
    alignment_is_kept(&place);
    strides_follow_the_layout(&place);
    padding_is_what_it_says(&place);
    place
}

/// Allocates zeros for a spec and checks that the memory matches the allocation layout.
pub fn check_memory(spec: &Spec) -> Tensor {
    let place = check(spec);
    let tensor = Tensor::zeros(spec).unwrap_or_else(|error| panic!("{spec:?}: {error}"));
    let field = tensor.descriptor();
    assert_eq!((field.shape(), field.strides()), (&place.shape[..], &place.strides[..]));
    assert_eq!((field.dtype(), field.device()), (place.dtype, place.device));
    assert!(!field.is_readonly());
    assert_eq!((tensor.layout(), tensor.padding()), (place.layout.clone(), place.padding));
    assert_eq!(tensor.alignment_size(), place.alignment_size);

    let block = field.ptr().wrapping_sub(place.first_byte);
    assert_eq!(block.addr() % place.block_alignment, 0, "{place:?}");
    alignment_statement_is_true(&tensor);
    // SAFETY: the block starts `first_byte` bytes before element 0, has `block_bytes` bytes and is all zeros.
    let bytes = unsafe { std::slice::from_raw_parts(block, place.block_bytes) };
    assert!(bytes.iter().all(|byte| *byte == 0), "{place:?}");
    tensor
}

/// Checks that the address of the element at the aligned index is a multiple of the tensor's alignment.
pub fn alignment_statement_is_true(tensor: &Tensor) {
    let field = tensor.descriptor();
    let aligned = offset(tensor.aligned_index(), field.strides(), field.itemsize());
    let address = wide(field.ptr().addr()) + aligned;
    assert!(tensor.alignment_size() >= 1);
    assert_eq!(address.rem_euclid(i128::from(tensor.alignment_size())), 0, "{tensor:?}");
}

fn elements_are_apart_and_inside(place: &AllocationLayout) {
    let itemsize = place.dtype.itemsize();
    let all = offsets(&place.shape, &place.strides, itemsize);
    assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= wide(itemsize)), "elements overlap: {place:?}");
    if let (Some(low), Some(high)) = (all.first(), all.last()) {
        let first = wide(place.first_byte);
        assert!(first + low >= 0 && first + high + wide(itemsize) <= wide(place.block_bytes), "{place:?}");
    }
}

/// Addresses are relative to the block, whose start is aligned.
fn alignment_is_kept(place: &AllocationLayout) {
    let (itemsize, alignment) = (place.dtype.itemsize(), i128::from(place.alignment_size));
    assert_eq!(place.block_alignment % 64, 0);
    assert_eq!(wide(place.block_alignment) % alignment, 0);
    assert_eq!((place.block_alignment % itemsize, place.first_byte % itemsize), (0, 0));
    let zeros = vec![0; place.shape.len()];
    let aligned_index = place.aligned_index.as_deref().unwrap_or(&zeros);
    let address = |index: &[i64]| wide(place.first_byte) + offset(index, &place.strides, itemsize);
    assert_eq!(address(aligned_index) % alignment, 0, "{place:?}");
    if aligned_index.iter().all(|at| *at == 0) {
        assert_eq!(place.first_byte, 0, "the base is to be aligned: {place:?}");
    }
    // No byte is skipped without need: no earlier start is aligned.
    let earlier = (1..).map(|steps| wide(place.first_byte) - steps * wide(itemsize)).take_while(|start| *start >= 0);
    let ahead = address(aligned_index) - wide(place.first_byte);
    assert!(earlier.take(5000).all(|start| (start + ahead) % alignment != 0), "{place:?}");

    let (Padding::Row, Some(row)) = (place.padding, place.layout.axes().last()) else {
        return;
    };
    for mut index in indices(&place.shape).into_iter().filter(|index| index[row] == 0) {
        index[row] = aligned_index[row];
        assert_eq!(address(&index) % alignment, 0, "row at {index:?}: {place:?}");
    }
}

fn strides_follow_the_layout(place: &AllocationLayout) {
    let axes: Vec<usize> = place.layout.axes().collect();
    let mut ranks: Vec<u8> = place.layout.to_vec();
    assert!(axes.iter().enumerate().all(|(rank, axis)| usize::from(ranks[*axis]) == rank));
    ranks.sort_unstable();
    assert!(ranks.iter().enumerate().all(|(rank, found)| usize::from(*found) == rank));
    for pair in axes.windows(2) {
        let (outer, inner) = (pair[0], pair[1]);
        assert!(place.strides[outer] >= place.strides[inner] * place.shape[inner].max(1), "{place:?}");
    }
    if let Some(row) = axes.last() {
        assert_eq!(place.strides[*row], 1, "{place:?}");
    }
}

fn padding_is_what_it_says(place: &AllocationLayout) {
    let itemsize = place.dtype.itemsize();
    let axes: Vec<usize> = place.layout.axes().collect();
    let length = place.block_bytes - place.first_byte;
    // Strides of an empty field are computed as if it had elements; its memory is empty.
    let some = if place.shape.contains(&0) { 0 } else { 1 };
    let extents: Vec<usize> = axes.iter().map(|axis| size(place.shape[*axis].max(1))).collect();
    match (place.padding, extents.split_last()) {
        (Padding::None, _) | (_, None) => {
            assert!(is_contiguous(&place.shape, &place.strides, axes.iter().copied()), "{place:?}");
            let all = offsets(&place.shape, &place.strides, itemsize);
            assert!(all.iter().enumerate().all(|(nth, at)| *at == wide(nth * itemsize)), "{place:?}");
            assert_eq!(length, some * extents.iter().product::<usize>() * itemsize, "{place:?}");
        }
        (padding, Some((row, others))) => {
            assert_eq!(padding, Padding::Row);
            let fits =
                |bytes: &usize| bytes.is_multiple_of(itemsize) && wide(*bytes) % wide(size(place.alignment_size)) == 0;
            let row = (row * itemsize..).find(fits).unwrap();
            assert_eq!(length, some * others.iter().product::<usize>() * row, "{place:?}");
        }
    }
}

/// Places a field of any size, and compares that with 128-bit arithmetic: what 64 bits can count is placed, nothing else.
pub fn check_large(
    shape: &[i64],
    layout: &Layout,
    dtype: DType,
    alignment: i64,
    padding: Padding,
    aligned_index: Option<&[i64]>,
) {
    let mut spec = Spec::new(shape, dtype).layout(layout.clone()).alignment_size(alignment).padding(padding);
    spec = aligned_index.into_iter().fold(spec, Spec::aligned_index);
    let zeros = vec![0; shape.len()];
    let (index, axes) = (aligned_index.unwrap_or(&zeros), layout.axes().collect::<Vec<_>>());
    let bytes = Bytes::of(shape, &axes, dtype.itemsize(), alignment, index, padding == Padding::Row);
    match (spec.place(), bytes.filter(Bytes::fits)) {
        (Ok(place), Some(bytes)) => {
            assert!(place.strides.iter().map(|stride| i128::from(*stride)).eq(bytes.strides.iter().copied()));
            assert_eq!(wide(place.block_bytes - place.first_byte), bytes.held);
            assert_eq!((wide(place.first_byte) + bytes.aligned) % bytes.alignment, 0);
            assert!(wide(place.first_byte) < bytes.alignment);
            assert_eq!(wide(place.block_alignment), bytes.block_alignment);
        }
        (Err(Error::Layout(error)), None) if error.kind() == LayoutErrorKind::TooLarge => {}
        (found, bytes) => panic!("{found:?}, yet 64 bits suffice: {}", bytes.is_some()),
    }
}
