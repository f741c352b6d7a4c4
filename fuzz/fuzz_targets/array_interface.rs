//! The dictionaries of the array interfaces, and the C struct.
#![no_main]

use arbitrary::{Result, Unstructured};
use dlfield::testing::Extents;
use dlfield::testing::protocol::array_interface::{ArrayInterface, CUDA, Data, Descr, GT_GPU, HIP, HOST};
use dlfield::testing::protocol::array_struct::{ArrayStruct, STRUCT};
use dlfield_fuzz::draw::{self, edgy, numbers};
use dlfield_fuzz::sound_interfaces::{TYPESTRS, check_dictionary};

fn typestr(bytes: &mut Unstructured<'_>) -> Result<String> {
    Ok(match bytes.int_in_range(0..=7u8)? {
        0 => bytes.arbitrary::<&str>()?.to_owned(),
        1 => format!("{}V{}", bytes.choose(&["|", "<", ""])?, bytes.int_in_range(0..=20u8)?),
        _ => format!("{}{}", bytes.choose(&["<", "=", "|", "", ">"])?, bytes.choose(&TYPESTRS)?.0),
    })
}

fn data(bytes: &mut Unstructured<'_>) -> Result<Data> {
    let readonly = bytes.arbitrary()?;
    if bytes.arbitrary()? {
        return Ok(Data::At { address: draw::address(bytes)?, readonly });
    }
    // A buffer is somewhere.
    let address = bytes.int_in_range(1 << 20..=1 << 47)?;
    let len = if bytes.ratio(7, 8)? { bytes.int_in_range(0..=300)? } else { usize::MAX / 2 };
    Ok(Data::In { address, len, readonly })
}

fn dictionary(bytes: &mut Unstructured<'_>) -> Result<ArrayInterface<'static>> {
    let ndim = draw::ndim(bytes)?;
    let text = typestr(bytes)?;
    let unit = *bytes.choose(&[1, 2, 4, 8, 16, 3])?;
    let steps = if bytes.ratio(7, 8)? { ndim } else { draw::ndim(bytes)? };
    let strides = |bytes: &mut _| -> Result<Extents> {
        Ok(numbers(bytes, steps, -3)?.into_iter().map(|step| step.wrapping_mul(unit)).collect())
    };
    Ok(ArrayInterface {
        version: if bytes.ratio(7, 8)? { Some(bytes.int_in_range(2..=3)?) } else { bytes.arbitrary()? },
        shape: numbers(bytes, ndim, 0)?.into_iter().collect(),
        dtype: if bytes.arbitrary()? { Some(draw::dtype(bytes)?) } else { None },
        data: data(bytes)?,
        byte_strides: if bytes.arbitrary()? { Some(strides(bytes)?) } else { None },
        offset: if bytes.arbitrary()? { edgy(bytes)? } else { 0 },
        masked: bytes.ratio(1, 16)?,
        descr: match bytes.int_in_range(0..=7u8)? {
            0 => Descr::Fields(bytes.arbitrary::<&str>()?.to_owned()),
            1 => Descr::Plain(typestr(bytes)?),
            2 => Descr::Plain(text.clone()),
            _ => Descr::Absent,
        },
        stream: if bytes.ratio(1, 4)? { Some(edgy(bytes)?) } else { None },
        typestr: text.into(),
    })
}

/// Reads a struct: what its fields alone rule out, then as a dictionary.
fn read_struct(bytes: &mut Unstructured<'_>) -> Result<()> {
    let (two, nd) = if bytes.ratio(7, 8)? { (2, draw::ndim(bytes)? as i32) } else { bytes.arbitrary()? };
    let counted = ArrayStruct::ndim(two, nd);
    assert_eq!(counted.is_ok(), two == 2 && (0..=64).contains(&nd));
    let Ok(ndim) = counted else { return Ok(()) };
    assert_eq!(ndim as i32, nd);
    let found = ArrayStruct {
        ndim,
        typekind: if bytes.ratio(7, 8)? { *bytes.choose(b"biufcV")? } else { bytes.arbitrary()? },
        itemsize: if bytes.ratio(7, 8)? { 1 << bytes.int_in_range(0..=4)? } else { bytes.arbitrary()? },
        flags: if bytes.arbitrary()? { 0x600 } else { bytes.arbitrary()? },
        shape: if bytes.ratio(7, 8)? { Some(numbers(bytes, ndim, 0)?.into_iter().collect()) } else { None },
        byte_strides: if bytes.arbitrary()? { Some(numbers(bytes, ndim, -16)?.into_iter().collect()) } else { None },
        address: draw::address(bytes)?,
    };
    let (text, legal) = (found.typestr(), found.itemsize > 0 && (ndim == 0 || found.shape.is_some()));
    let writable = found.flags & 0x400 != 0;
    let interface = found.into_interface(&text, None, Descr::Absent);
    assert_eq!(interface.is_ok(), legal);
    if let Ok(interface) = interface {
        assert!(matches!(interface.data, Data::At { readonly, .. } if readonly != writable));
        check_dictionary(&interface, &STRUCT);
    }
    Ok(())
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    draw::run(bytes, |bytes| {
        let interface = match bytes.int_in_range(0..=4u8)? {
            0 => return read_struct(bytes),
            1 => &CUDA,
            2 => &HIP,
            3 => &GT_GPU,
            _ => &HOST,
        };
        check_dictionary(&dictionary(bytes)?, interface);
        Ok(())
    });
});
