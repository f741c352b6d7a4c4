//! The content of a `DLTensor`: null pointers, sizes, types, devices, flags and versions of all kinds.
#![no_main]

use arbitrary::{Result, Unstructured};
use dlfield_fuzz::draw::{self, address, edgy, numbers};
use dlfield_fuzz::sound_dlpack::{Fields, check};

fn fields(bytes: &mut Unstructured<'_>) -> Result<Fields> {
    let ndim = if bytes.ratio(1, 16)? { bytes.arbitrary()? } else { draw::ndim(bytes)?.try_into().unwrap_or(0) };
    // What claims more dimensions is refused before its lists are read.
    let len = usize::try_from(ndim).unwrap_or(0).min(70);
    let shape = if bytes.ratio(7, 8)? { Some(numbers(bytes, len, 0)?) } else { None };
    let strides = if bytes.ratio(3, 4)? { Some(numbers(bytes, len, -3)?) } else { None };
    let known = draw::dtype(bytes)?;
    Ok(Fields {
        ndim,
        shape,
        strides,
        data: address(bytes)?,
        byte_offset: if bytes.arbitrary()? { edgy(bytes)?.cast_unsigned() } else { 0 },
        dtype: if bytes.ratio(7, 8)? { (known.code().0, known.bits(), 1) } else { bytes.arbitrary()? },
        device: if bytes.ratio(7, 8)? { (bytes.int_in_range(1..=4)?, 0) } else { bytes.arbitrary()? },
        version: bytes.arbitrary::<Option<bool>>()?.map_or(Ok(None), |known| {
            if known { Ok(Some((1, bytes.int_in_range(0..=4)?))) } else { bytes.arbitrary().map(Some) }
        })?,
        flags: if bytes.ratio(7, 8)? { bytes.int_in_range(0..=7)? } else { bytes.arbitrary()? },
    })
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    draw::run(bytes, |bytes| {
        check(&fields(bytes)?);
        Ok(())
    });
});
