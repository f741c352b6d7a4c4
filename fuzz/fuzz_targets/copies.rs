//! Copies of any shape and strides compared with a loop over elements; every byte of the destination's memory is looked at.
#![no_main]
#![allow(unsafe_code, reason = "fields are laid into memory by hand")]

use arbitrary::{Result, Unstructured};
use dlfield::{DType, Descriptor, Device, Owner, Tensor};
use dlfield_fuzz::draw::{self, list};
use dlfield_fuzz::layouts::assign;
use dlfield_fuzz::naive::{indices, offset};

/// The bytes in which two fields may overlap.
const MEMORY: usize = 4096;

/// Few enough elements for several loops of any length, whole tiles included.
fn shape(bytes: &mut Unstructured<'_>) -> Result<Vec<i64>> {
    let ndim = bytes.int_in_range(0..=4)?;
    let mut left = 800i64;
    list(ndim, || {
        let extent = bytes.int_in_range(0..=left.min(40))?;
        left /= extent.max(1);
        Ok(extent)
    })
}

/// A field of any strides inside the memory: the place of element 0 and the strides, or none if there is no room.
fn inside(bytes: &mut Unstructured<'_>, shape: &[i64], itemsize: usize) -> Result<Option<(usize, Vec<i64>)>> {
    let far = bytes.ratio(1, 4)?;
    let strides = list(shape.len(), || if far { bytes.int_in_range(-60..=60) } else { bytes.int_in_range(-6..=6i64) })?;
    let reach = |sign: i64| -> i64 {
        let ways = shape.iter().zip(&strides).map(|(extent, stride)| (extent - 1).max(0) * stride);
        ways.filter(|way| way.signum() == sign).sum::<i64>() * itemsize as i64
    };
    let (low, high) = (-reach(-1), MEMORY as i64 - reach(1) - itemsize as i64);
    if high < low {
        return Ok(None);
    }
    Ok(Some((bytes.int_in_range(low..=high)? as usize, strides)))
}

/// Two fields in the same bytes, which may overlap: all elements are read before any is written.
fn within_one_memory(bytes: &mut Unstructured<'_>, dtype: DType) -> Result<()> {
    let (shape, itemsize) = (shape(bytes)?, dtype.itemsize());
    let (Some((to, to_strides)), Some((from, from_strides))) =
        (inside(bytes, &shape, itemsize)?, inside(bytes, &shape, itemsize)?)
    else {
        return Ok(());
    };
    let places = |start: usize, strides: &[i64]| -> Vec<usize> {
        let place = |index: &Vec<i64>| (start as i128 + offset(index, strides, itemsize)) as usize;
        indices(&shape).iter().map(place).collect()
    };
    let (to_places, from_places) = (places(to, &to_strides), places(from, &from_strides));
    let mut sorted = to_places.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[1] - pair[0] < itemsize) {
        // Elements that are written twice have no one value.
        return Ok(());
    }
    let mut memory: Vec<u8> = (0..MEMORY).map(|at| (at * 31 % 251) as u8).collect();
    let mut expected = memory.clone();
    for (to, from) in to_places.iter().zip(&from_places) {
        expected[*to..to + itemsize].copy_from_slice(&memory[*from..from + itemsize]);
    }
    let base = memory.as_mut_ptr();
    let tensor = |start: usize, strides: &[i64]| {
        let ptr = base.wrapping_add(start);
        let field = Descriptor::new(ptr, Device::CPU, dtype, false, &shape, strides).expect("inside the memory");
        // SAFETY: the memory outlives the tensor.
        unsafe { Tensor::from_parts(field, Owner::foreign(())) }
    };
    // SAFETY: nobody else has the memory.
    unsafe { tensor(to, &to_strides).assign(&tensor(from, &from_strides)) }.expect("equal shapes");
    assert!(memory == expected, "{shape:?} to {to} {to_strides:?} from {from} {from_strides:?} of {itemsize} bytes");
    Ok(())
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    draw::run(bytes, |bytes| {
        let dtype = draw::sized(bytes)?;
        if bytes.arbitrary()? {
            return within_one_memory(bytes, dtype);
        }
        let shape = shape(bytes)?;
        let mut from = draw::side(bytes, shape.len())?.lay(&shape, dtype);
        let to = draw::side(bytes, shape.len())?.lay(&shape, dtype);
        for axis in 0..shape.len() {
            // A source that repeats its elements.
            if bytes.ratio(1, 8)? && from.strides[axis] > 0 {
                from.strides[axis] = 0;
            }
        }
        assign(to, from);
        Ok(())
    });
});
