//! Overlap of two fields, compared with the sets of all addresses of their bytes.
#![no_main]

use arbitrary::{Result, Unstructured};
use dlfield::testing::{Strided, overlap};
use dlfield::{Descriptor, Device};
use dlfield_fuzz::draw::{self, list};
use dlfield_fuzz::naive::bytes as bytes_of;

/// Up to so many pairs of elements the answer is exact; beyond, it may be `true` without a common byte.
const EXACT: i64 = 5_000;

fn meet(one: &Descriptor, other: &Descriptor) {
    let common = !bytes_of(one).is_disjoint(&bytes_of(other));
    let found = one.overlaps(other);
    assert_eq!(found, other.overlaps(one), "not symmetric: {one:?} {other:?}");
    let is_exact = one.size().saturating_mul(other.size()) <= EXACT;
    assert!(found == common || (found && !is_exact), "{found}: {one:?} {other:?}");
}

/// Any numbers get an answer, the same in both directions.
fn hostile(bytes: &mut Unstructured<'_>) -> Result<()> {
    let ndims = [bytes.int_in_range(0..=6)?, bytes.int_in_range(0..=6)?];
    let mut axes = |ndim: usize| draw::numbers(bytes, ndim, -3);
    let [shape, other_shape] = [axes(ndims[0])?, axes(ndims[1])?];
    let [strides, other_strides] = [axes(ndims[0])?, axes(ndims[1])?];
    let mut end = || Ok((bytes.arbitrary()?, *bytes.choose(&[0, 1, 8, 16, usize::MAX / 2, usize::MAX])?));
    let [(address, itemsize), (other_address, other_itemsize)] = [end()?, end()?];
    let one = Strided { address, shape: &shape, strides: &strides, itemsize };
    let other =
        Strided { address: other_address, shape: &other_shape, strides: &other_strides, itemsize: other_itemsize };
    assert_eq!(overlap(&one, &other), overlap(&other, &one));
    let has_elements = |field: &Strided<'_>| field.itemsize > 0 && field.shape.iter().all(|extent| *extent > 0);
    assert_eq!(overlap(&one, &one), has_elements(&one));
    Ok(())
}

/// A view of an array: for each dimension a start, a step of either sign, and a number of positions.
fn view(bytes: &mut Unstructured<'_>, array: &Descriptor) -> Result<Descriptor> {
    let (mut start, mut shape, mut strides) = (0, Vec::new(), Vec::new());
    for (extent, stride) in array.shape().iter().zip(array.strides()) {
        let first = bytes.int_in_range(0..=extent - 1)?;
        let step = *bytes.choose(&[1i64, 2, 3, -1, -2])?;
        let room = if step < 0 { first } else { extent - 1 - first } / step.abs() + 1;
        start += first * stride;
        shape.push(bytes.int_in_range(1..=room)?);
        strides.push(stride * step);
    }
    if bytes.arbitrary()? {
        shape.reverse();
        strides.reverse();
    }
    let ptr = array.ptr().wrapping_offset(start as isize * array.itemsize() as isize);
    Ok(Descriptor::new(ptr, Device::CPU, array.dtype(), false, &shape, &strides).expect("part of an array"))
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    draw::run(bytes, |bytes| {
        match bytes.int_in_range(0..=2u8)? {
            0 => hostile(bytes)?,
            1 => {
                let dtypes = [draw::sized(bytes)?, draw::sized(bytes)?];
                let [one, other] = dtypes.map(|dtype| draw::field(bytes, dtype, Device::CPU));
                meet(&one?, &other?);
            }
            _ => {
                let dtype = draw::sized(bytes)?;
                let ndim = bytes.int_in_range(1..=4)?;
                let shape = list(ndim, || bytes.int_in_range(1..=6i64))?;
                let mut strides = vec![1; ndim];
                for axis in (1..ndim).rev() {
                    strides[axis - 1] = strides[axis] * shape[axis] + bytes.int_in_range(0..=2)?;
                }
                let start = std::ptr::without_provenance_mut(draw::MIDDLE);
                let array = Descriptor::new(start, Device::CPU, dtype, false, &shape, &strides).expect("small");
                meet(&view(bytes, &array)?, &view(bytes, &array)?);
            }
        }
        Ok(())
    });
});
