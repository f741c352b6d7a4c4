//! Buffers of the buffer protocol, with formats of PEP 3118.
#![no_main]

use arbitrary::{Result, Unstructured};
use dlfield::DType;
use dlfield::testing::protocol::buffer::Buffer;
use dlfield::testing::protocol::pep3118;
use dlfield_fuzz::draw::{self, edgy, numbers};
use dlfield_fuzz::sound_interfaces::{FORMATS, check_buffer, naive_format};

fn format(bytes: &mut Unstructured<'_>) -> Result<String> {
    let letters = if bytes.ratio(7, 8)? { bytes.choose(&FORMATS)?.0 } else { bytes.arbitrary::<&str>()? };
    Ok(format!("{}{letters}", bytes.choose(&["", "@", "^", "=", "<", ">", "!", "<<"])?))
}

fn read(bytes: &mut Unstructured<'_>) -> Result<()> {
    let format = if bytes.ratio(7, 8)? { Some(format(bytes)?) } else { None };
    let itemsize = if bytes.ratio(7, 8)? { 1 << bytes.int_in_range(0..=4)? } else { edgy(bytes)? };
    let text = format.as_deref();
    let decoded = pep3118::decode(text, itemsize);
    assert_eq!(decoded.as_ref().ok(), naive_format(text.unwrap_or("B"), itemsize).as_ref(), "{text:?}");
    assert!(decoded.is_ok_and(|dtype| dtype.itemsize() as i64 == itemsize) || pep3118::decode(text, itemsize).is_err());

    let ndim = draw::ndim(bytes)?;
    let steps = if bytes.ratio(7, 8)? { ndim } else { draw::ndim(bytes)? };
    let shape = if bytes.ratio(7, 8)? { Some(numbers(bytes, ndim, 0)?) } else { None };
    let strides = if bytes.arbitrary()? { Some(numbers(bytes, steps, -3)?) } else { None };
    let strides: Option<Vec<i64>> = strides.map(|all| all.iter().map(|step| step.wrapping_mul(itemsize)).collect());
    let suboffsets = if bytes.ratio(1, 4)? { Some(numbers(bytes, ndim, -2)?) } else { None };
    let elements = shape.as_ref().map_or(5, |all| all.iter().fold(1i64, |all, extent| all.saturating_mul(*extent)));
    check_buffer(&Buffer {
        address: draw::address(bytes)? as usize,
        len: if bytes.ratio(7, 8)? { elements.saturating_mul(itemsize) } else { edgy(bytes)? },
        itemsize,
        readonly: bytes.arbitrary()?,
        format: text,
        shape: shape.as_deref(),
        byte_strides: strides.as_deref(),
        suboffsets: suboffsets.as_deref(),
    });
    Ok(())
}

libfuzzer_sys::fuzz_target!(
    init: {
        // What is written is read.
        for dtype in DType::all() {
            let Some(format) = pep3118::encode(dtype) else { continue };
            let text = format.to_str().expect("ASCII");
            assert_eq!(pep3118::decode(Some(text), dtype.itemsize() as i64), Ok(dtype));
        }
    },
    |bytes: &[u8]| draw::run(bytes, read)
);
