//! Conversions between all types of elements compared with a cast of one element at a time; every byte of the destination's
//! memory is looked at.
#![no_main]

use arbitrary::{Result, Unstructured};
use dlfield::{DType, can_cast};
use dlfield_fuzz::casts::cast;
use dlfield_fuzz::draw::{self, list};
use dlfield_fuzz::layouts::LaidOut;

/// Mostly one short row, which ends inside a vector or a buffer; else few dimensions, also with a side of whole tiles.
fn shape(bytes: &mut Unstructured<'_>) -> Result<Vec<i64>> {
    if bytes.arbitrary()? {
        return Ok(vec![bytes.int_in_range(0..=150)?]);
    }
    let ndim = bytes.int_in_range(0..=3)?;
    let mut left = 400i64;
    list(ndim, || {
        let extent = bytes.int_in_range(0..=left.min(24))?;
        left /= extent.max(1);
        Ok(extent)
    })
}

/// Writes elements from the first position on, also between those of the field: the bytes drawn, over and over.
fn filled(bytes: &mut Unstructured<'_>, mut field: LaidOut) -> Result<LaidOut> {
    let drawn = bytes.int_in_range(1..=64usize)?;
    let raw = list(drawn, || bytes.arbitrary::<u8>())?;
    let first = field.start % field.dtype.itemsize();
    for (byte, raw) in field.bytes[first..].iter_mut().zip(raw.iter().cycle()) {
        *byte = *raw;
    }
    // Signalling NaNs of float16 may become quiet: as in the documentation, the instructions of the machine decide.
    if field.dtype == DType::F16 {
        for place in field.places() {
            let bits = u16::from_ne_bytes([field.bytes[place], field.bytes[place + 1]]);
            let quiet = if bits & 0x7c00 == 0x7c00 && bits & 0x3ff != 0 { bits | 0x200 } else { bits };
            field.bytes[place..place + 2].copy_from_slice(&quiet.to_ne_bytes());
        }
    }
    Ok(field)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    draw::run(bytes, |bytes| {
        let source = draw::dtype(bytes)?;
        let castable: Vec<DType> = DType::all().filter(|target| can_cast(source, *target)).collect();
        let target = if bytes.ratio(1, 8)? { draw::dtype(bytes)? } else { *bytes.choose(&castable)? };
        let shape = shape(bytes)?;
        let small = list(shape.len(), || bytes.ratio(1, 8))?;
        let repeated: Vec<i64> =
            shape.iter().zip(small).map(|(extent, small)| if small { 1 } else { *extent }).collect();
        let laid = draw::side(bytes, shape.len())?.lay(&repeated, source);
        let mut from = filled(bytes, laid)?;
        let mut to = draw::side(bytes, shape.len())?.lay(&shape, target);
        let mut expected = to.bytes.clone();
        let places = to.places();
        if can_cast(source, target) {
            for (place, read) in places.iter().zip(from.repeated(&shape)) {
                let element = &from.bytes[read..read + source.itemsize()];
                expected[*place..place + target.itemsize()].copy_from_slice(&cast(element, source, target));
            }
        }
        let assigned = to.assign(&mut from);
        assert_eq!(assigned.is_ok(), can_cast(source, target), "{source} to {target}: {assigned:?}");
        let element = |place: usize| place..place + target.itemsize();
        let wrong = places.iter().position(|place| to.bytes[element(*place)] != expected[element(*place)]);
        let element = wrong.map(|number| &to.bytes[element(places[number])]);
        assert!(
            to.bytes == expected,
            "{source} to {target}, {repeated:?} to {shape:?}, {:?} to {:?}: {element:02x?} at {wrong:?}",
            from.strides,
            to.strides
        );
        Ok(())
    });
});
