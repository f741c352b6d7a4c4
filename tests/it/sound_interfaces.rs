//! Which array interfaces and buffers must be taken, the slow and obvious way.

use dlfield::testing::protocol::array_interface::{ArrayInterface, Data, Descr, GT_GPU, Interface};
use dlfield::testing::protocol::buffer::Buffer;
use dlfield::{DType, Descriptor, Device};

use crate::naive::{c_order, is_valid, span, wide};
use crate::sound_dlpack::check_proof;

/// Every type string that must be accepted on this machine, with its type.
pub const TYPESTRS: [(&str, DType); 14] = [
    ("b1", DType::BOOL),
    ("i1", DType::I8),
    ("i2", DType::I16),
    ("i4", DType::I32),
    ("i8", DType::I64),
    ("u1", DType::U8),
    ("u2", DType::U16),
    ("u4", DType::U32),
    ("u8", DType::U64),
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("f8", DType::F64),
    ("c8", DType::C64),
    ("c16", DType::C128),
];

/// Every format that must be accepted, with its sizes.
pub const FORMATS: [(&str, &[(i64, DType)]); 20] = [
    ("?", &[(1, DType::BOOL)]),
    ("b", &[(1, DType::I8)]),
    ("B", &[(1, DType::U8)]),
    ("h", &[(2, DType::I16)]),
    ("H", &[(2, DType::U16)]),
    ("i", &[(4, DType::I32)]),
    ("I", &[(4, DType::U32)]),
    ("l", &[(4, DType::I32), LONG]),
    ("L", &[(4, DType::U32), ULONG]),
    ("q", &[(8, DType::I64)]),
    ("Q", &[(8, DType::U64)]),
    ("n", &[(8, DType::I64)]),
    ("N", &[(8, DType::U64)]),
    ("e", &[(2, DType::F16)]),
    ("f", &[(4, DType::F32)]),
    ("d", &[(8, DType::F64)]),
    ("Zf", &[(8, DType::C64)]),
    ("Zd", &[(16, DType::C128)]),
    ("F", &[(8, DType::C64)]),
    ("D", &[(16, DType::C128)]),
];

const LONG: (i64, DType) = if size_of::<std::ffi::c_long>() == 8 { (8, DType::I64) } else { (4, DType::I32) };
const ULONG: (i64, DType) = if size_of::<std::ffi::c_long>() == 8 { (8, DType::U64) } else { (4, DType::U32) };

/// Returns whether a letter means the other byte order than this machine's.
fn is_foreign(order: &str) -> bool {
    if cfg!(target_endian = "little") { [">", "!"].contains(&order) } else { order == "<" }
}

/// Returns the type of a type string that must be accepted.
pub fn naive_typestr(text: &str) -> Option<DType> {
    let order = ["<", ">", "=", "|"].into_iter().find(|order| text.starts_with(order)).unwrap_or("");
    let (_, dtype) = TYPESTRS.into_iter().find(|(known, _)| *known == &text[order.len()..])?;
    (dtype.itemsize() == 1 || !is_foreign(order)).then_some(dtype)
}

/// Returns the type of a format that must be accepted for elements of this size.
pub fn naive_format(text: &str, itemsize: i64) -> Option<DType> {
    let order = ["@", "^", "=", "<", ">", "!"].into_iter().find(|order| text.starts_with(order)).unwrap_or("");
    let (_, sizes) = FORMATS.into_iter().find(|(known, _)| *known == &text[order.len()..])?;
    let (_, dtype) = sizes.iter().find(|(size, _)| *size == itemsize)?;
    (dtype.itemsize() == 1 || !is_foreign(order)).then_some(*dtype)
}

/// Returns whether elements can have this layout at this address.
fn is_sound(shape: &[i64], strides: &[i128], dtype: DType, address: i128) -> bool {
    let mut steps = shape.iter().zip(strides);
    let whole = shape.contains(&0) || steps.all(|(extent, step)| *extent == 1 || step % wide(dtype.itemsize()) == 0);
    whole && is_valid(address, shape, strides, dtype.itemsize())
}

fn widened(strides: &[i64]) -> Vec<i128> {
    strides.iter().map(|step| i128::from(*step)).collect()
}

fn is_of_host(interface: &Interface) -> bool {
    ["__array_interface__", "__array_struct__"].contains(&interface.name)
}

fn naive_interface(found: &ArrayInterface<'_>, interface: &Interface) -> Option<(DType, Vec<i128>, i128)> {
    let (versions, streams): (&[i64], _) = match interface.name {
        "__hip_array_interface__" => (&[2, 3], 'r'),
        "__cuda_array_interface__" => (&[2, 3], 'c'),
        name if name == GT_GPU.name && std::ptr::eq(interface, &raw const GT_GPU) => (&[2, 3], 'c'),
        _ => (&[3], 'h'),
    };
    let versionless = std::ptr::eq(interface, &raw const GT_GPU) || is_of_host(interface);
    if found.version.map_or(!versionless, |version| !versions.contains(&version)) || found.masked {
        return None;
    }
    let legal = |stream: i64| match streams {
        'c' => stream > 0,
        'r' => stream == 0 || stream > 2,
        _ => false,
    };
    if found.stream.is_some_and(|stream| !legal(stream)) {
        return None;
    }
    match &found.descr {
        Descr::Fields(_) => return None,
        Descr::Plain(text) if **text != *found.typestr => return None,
        _ => {}
    }
    let void = ["|V", "<V", ">V", "=V", "V"].into_iter().find_map(|start| found.typestr.strip_prefix(start));
    let dtype = match (void, found.dtype) {
        (Some(bytes), Some(dtype)) if bytes.trim_start_matches('0') == dtype.itemsize().to_string() => dtype,
        (Some(_), _) => return None,
        (None, _) => naive_typestr(&found.typestr)?,
    };
    let c_order = || c_order(&found.shape, dtype.itemsize());
    let strides = found.byte_strides.as_deref().map_or_else(c_order, widened);
    let offset = i128::from(found.offset);
    let address = match found.data {
        Data::At { address, .. } if offset == 0 => i128::from(address),
        Data::At { .. } => return None,
        Data::In { address, len, .. } => {
            if !(0..=wide(len)).contains(&offset) {
                return None;
            }
            // Sums of many huge steps: what exceeds the address space exceeds the buffer.
            if is_sound(&found.shape, &strides, dtype, i128::from(address) + offset)
                && let Some((low, high)) = span(&found.shape, &strides, dtype.itemsize())
                && (offset + low < 0 || offset + high > wide(len))
            {
                return None;
            }
            i128::from(address) + offset
        }
    };
    is_sound(&found.shape, &strides, dtype, address).then_some((dtype, strides, address))
}

/// Reads a dictionary, and compares the result with the rules.
pub fn check_dictionary(found: &ArrayInterface<'_>, interface: &Interface) {
    let device = if is_of_host(interface) { Device::CPU } else { Device::cuda(1) };
    let expected = naive_interface(found, interface);
    let read = found.read(interface, device);
    assert_eq!(read.is_ok(), expected.is_some(), "{read:?}");
    assert!(read.as_ref().err().is_none_or(|error| !error.to_string().is_empty()));
    if let (Ok(field), Some((dtype, strides, address))) = (read, expected) {
        check_proof(&field);
        assert_eq!((field.dtype(), field.device(), field.shape()), (dtype, device, &found.shape[..]));
        assert_eq!(wide(field.ptr().addr()), address);
        let (Data::At { readonly, .. } | Data::In { readonly, .. }) = found.data;
        assert_eq!(field.is_readonly(), readonly);
        check_strides(&field, &strides);
    }
}

/// Reads a buffer, and compares the result with the rules.
pub fn check_buffer(found: &Buffer<'_>) {
    let expected = naive_format(found.format.unwrap_or("B"), found.itemsize).and_then(|dtype| {
        let flat = || vec![found.len / found.itemsize];
        let shape = found.shape.map_or_else(flat, <[i64]>::to_vec);
        let strides = found.byte_strides.map_or_else(|| c_order(&shape, dtype.itemsize()), widened);
        let direct = found.suboffsets.is_none_or(|all| all.iter().all(|offset| *offset < 0));
        let none = shape.contains(&0).then_some(0);
        let all = || shape.iter().fold(i128::from(found.itemsize), |all, extent| all.saturating_mul((*extent).into()));
        let counted = none.unwrap_or_else(all) == i128::from(found.len);
        (direct && is_sound(&shape, &strides, dtype, wide(found.address)) && counted).then_some((dtype, shape, strides))
    });
    let read = found.read();
    assert_eq!(read.is_ok(), expected.is_some(), "{read:?}");
    assert!(read.as_ref().err().is_none_or(|error| !error.to_string().is_empty()));
    if let (Ok(field), Some((dtype, shape, strides))) = (read, expected) {
        check_proof(&field);
        assert_eq!((field.dtype(), field.shape(), field.is_readonly()), (dtype, &shape[..], found.readonly));
        assert_eq!(field.ptr().addr(), found.address);
        check_strides(&field, &strides);
    }
}

/// Checks the strides that lead from one element to another.
fn check_strides(field: &Descriptor, byte_strides: &[i128]) {
    let kept = |((extent, old), new): ((&i64, &i128), i64)| *extent == 1 || *old == i128::from(new);
    assert!(field.size() == 0 || field.shape().iter().zip(byte_strides).zip(field.byte_strides()).all(kept));
}
