//! Allocation layouts: small ones compared element by element, and in memory; sizes near 64 bits in 128-bit arithmetic.
#![no_main]

use arbitrary::{Result, Unstructured};
use dlfield::{Padding, Preset, Spec};
use dlfield_fuzz::draw::{self, edgy, list};
use dlfield_fuzz::runner::{check, check_large, check_memory};

/// Any numbers for all options: an error, or a layout that keeps its promises.
fn hostile(bytes: &mut Unstructured<'_>) -> Result<()> {
    let ndim = draw::ndim(bytes)?;
    let mut spec = Spec::new(&draw::numbers(bytes, ndim, 0)?, draw::dtype(bytes)?);
    if bytes.arbitrary()? {
        spec = spec.preset(bytes.choose_iter(Preset::all())?);
    }
    if bytes.arbitrary()? {
        spec = spec.alignment_size(edgy(bytes)?);
    }
    if bytes.arbitrary()? {
        spec = spec.padding(Padding::Row);
    }
    let about = |bytes: &mut Unstructured<'_>| if bytes.ratio(7, 8)? { Ok(ndim) } else { draw::ndim(bytes) };
    if bytes.arbitrary()? {
        let len = about(bytes)?;
        spec = spec.aligned_index(&draw::numbers(bytes, len, 0)?);
    }
    if bytes.arbitrary()? {
        let len = about(bytes)?;
        spec = spec.halo(&list(len, || Ok((bytes.int_in_range(0..=2)?, edgy(bytes)?)))?);
    }
    if bytes.arbitrary()? {
        let len = about(bytes)?;
        spec = spec.origin(&draw::numbers(bytes, len, 0)?);
    }
    match spec.place() {
        Ok(place) => {
            assert!(i64::try_from(place.block_bytes + place.block_alignment).is_ok(), "{place:?}");
            let elements = place.shape.iter().fold(1i64, |all, extent| all.saturating_mul((*extent).max(1)));
            if elements < 1 << 12 && place.block_bytes < 1 << 14 && place.block_alignment < 1 << 14 {
                check(&spec);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    Ok(())
}

/// Shapes that fill 64 bits, or nearly.
fn large(bytes: &mut Unstructured<'_>) -> Result<()> {
    let ndim = bytes.int_in_range(0..=7)?;
    let shape = list(ndim, || Ok(edgy(bytes)?.saturating_abs()))?;
    let alignment = edgy(bytes)?.saturating_abs().max(1);
    let padding = *bytes.choose(&[Padding::None, Padding::Row])?;
    let index = if bytes.arbitrary()? { Some(draw::origin(bytes, &shape)?) } else { None };
    check_large(&shape, &draw::layout(bytes, ndim)?, draw::dtype(bytes)?, alignment, padding, index.as_deref());
    Ok(())
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    draw::run(bytes, |bytes| {
        match bytes.int_in_range(0..=3u8)? {
            0 => hostile(bytes)?,
            1 => large(bytes)?,
            _ => {
                let dtype = draw::dtype(bytes)?;
                check_memory(&draw::spec(bytes, dtype)?);
            }
        }
        Ok(())
    });
});
