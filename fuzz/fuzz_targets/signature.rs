//! The checks of a stencil's arguments, compared with the same rules element by element.
#![no_main]

use arbitrary::{Result, Unstructured};
use dlfield::{Access, DType, Descriptor, Device, FieldSpec, Signature, Size};
use dlfield_fuzz::draw::{self, list};
use dlfield_fuzz::fits::check;

const DTYPES: [DType; 3] = [DType::F64, DType::F32, DType::I64];

fn size(bytes: &mut Unstructured<'_>) -> Result<Size> {
    Ok(match bytes.int_in_range(0..=3u8)? {
        0 => Size::Fixed(bytes.int_in_range(-1..=3)?),
        1 => {
            let offset = bytes.int_in_range(-2..=2)?;
            Size::Named { name: (*bytes.choose(&["n", "m"])?).into(), offset }
        }
        _ => Size::Any,
    })
}

fn spec(bytes: &mut Unstructured<'_>) -> Result<FieldSpec> {
    let ndim = bytes.int_in_range(0..=3)?;
    let dims = if bytes.ratio(3, 4)? { Some(draw::dims(bytes, ndim)?) } else { None };
    let mut spec = FieldSpec::new(DType::F64, dims);
    spec = spec.access(*bytes.choose(&[Access::Read, Access::Write, Access::ReadWrite])?);
    if bytes.ratio(1, 4)? {
        let len = bytes.int_in_range(0..=2)?;
        spec = spec.dtypes(&list(len, || Ok(*bytes.choose(&DTYPES)?))?);
    }
    if bytes.ratio(1, 4)? {
        spec = spec.layout(draw::layout(bytes, ndim)?);
    }
    if bytes.ratio(1, 4)? {
        spec = spec.alignment_size(*bytes.choose(&[0, 1, 3, 8, 16, 64])?);
    }
    if bytes.ratio(1, 4)? {
        spec = spec.shape(&list(ndim, || size(bytes))?);
    }
    Ok(spec.optional(bytes.ratio(1, 4)?))
}

/// A field with any labels, halo and origin; mostly one whose elements share no bytes.
fn field(bytes: &mut Unstructured<'_>) -> Result<Descriptor> {
    let device: Device = bytes.choose(&["cpu", "cpu", "cpu", "cuda_host", "cuda:0"])?.parse().expect("a device");
    let dtype = if bytes.ratio(7, 8)? { DType::F64 } else { *bytes.choose(&DTYPES)? };
    let ndim = bytes.int_in_range(0..=3)?;
    let shape = list(ndim, || bytes.int_in_range(0..=3i64))?;
    let mut strides = list(ndim, || bytes.int_in_range(-9..=9i64))?;
    if bytes.ratio(3, 4)? {
        let mut next = 1;
        for axis in draw::permutation(bytes, ndim)? {
            strides[axis] = next + bytes.int_in_range(0..=1)?;
            next = strides[axis] * shape[axis].max(1);
        }
    }
    let start = draw::MIDDLE + 64 * bytes.int_in_range(0..=3usize)? + if bytes.arbitrary()? { 8 } else { 0 };
    let ptr = std::ptr::without_provenance_mut(start);
    let mut field = Descriptor::new(ptr, device, dtype, bytes.ratio(1, 8)?, &shape, &strides).expect("small numbers");
    if bytes.arbitrary()? {
        field = field.with_dims(draw::dims(bytes, ndim)?).expect("as many labels");
    }
    if bytes.arbitrary()? {
        field = field.with_origin(draw::origin(bytes, &shape)?.into()).expect("inside");
    }
    if bytes.arbitrary()? {
        field = field.with_halo(draw::halo(bytes, &shape)?.into()).expect("inside");
    }
    Ok(field)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    draw::run(bytes, |bytes| {
        let names = ["a", "b", "c"];
        let count = bytes.int_in_range(0..=3)?;
        let specs = list(count, || spec(bytes))?;
        let allows_overlap = bytes.arbitrary()?;
        let device: Device = bytes.choose(&["cpu", "cpu", "cuda:0", "cuda:1"])?.parse().expect("a device");
        let Ok(signature) = Signature::new(names.into_iter().zip(specs)) else { return Ok(()) };
        let signature = signature.allow_overlap(allows_overlap).with_device(device);
        let fields = list(count, || field(bytes))?;
        let mut given: Vec<_> = names.into_iter().zip(&fields).collect();
        match bytes.int_in_range(0..=15u8)? {
            0 => drop(given.pop()),
            1 => given.extend(fields.first().map(|field| ("x", field))),
            2 => given.extend(fields.first().map(|field| ("a", field))),
            3 => given.reverse(),
            _ => {}
        }
        check(&signature, &given, allows_overlap);
        Ok(())
    });
});
