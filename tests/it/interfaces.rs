//! For any content of an array interface or a buffer, validation returns a correct descriptor or an error, and never panics.
//! The rules are repeated here, the slow and obvious way.

use dlfield::native::Extents;
use dlfield::native::protocol::array_interface::{ArrayInterface, CUDA, Data, Descr, GT_GPU, HIP, HOST, Interface};
use dlfield::native::protocol::buffer::Buffer;
use dlfield::native::protocol::{pep3118, typestr};
use dlfield::{DType, Device, MAX_NDIM};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::naive::wide;
use crate::read::check_proof;
use crate::strategies::{config, edgy};

/// Every type string that must be accepted on this machine, with its type.
const TYPESTRS: [(&str, DType); 14] = [
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
const FORMATS: [(&str, &[(i64, DType)]); 20] = [
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

fn naive_typestr(text: &str) -> Option<DType> {
    let order = ["<", ">", "=", "|"].into_iter().find(|order| text.starts_with(order)).unwrap_or("");
    let (_, dtype) = TYPESTRS.into_iter().find(|(known, _)| *known == &text[order.len()..])?;
    (dtype.itemsize() == 1 || !is_foreign(order)).then_some(dtype)
}

fn naive_format(text: &str, itemsize: i64) -> Option<DType> {
    let order = ["@", "^", "=", "<", ">", "!"].into_iter().find(|order| text.starts_with(order)).unwrap_or("");
    let (_, sizes) = FORMATS.into_iter().find(|(known, _)| *known == &text[order.len()..])?;
    let (_, dtype) = sizes.iter().find(|(size, _)| *size == itemsize)?;
    (dtype.itemsize() == 1 || !is_foreign(order)).then_some(*dtype)
}

/// Returns the lowest byte and the one after the highest, from element 0; `None` without elements.
fn naive_span(shape: &[i64], strides: &[i64], itemsize: i128) -> Option<(i128, i128)> {
    if shape.contains(&0) {
        return None;
    }
    let reach = |(extent, stride): (&i64, &i64)| (i128::from(*extent) - 1) * i128::from(*stride);
    let reaches: Vec<i128> = shape.iter().zip(strides).map(reach).collect();
    let low = reaches.iter().filter(|reach| **reach < 0).fold(0i128, |sum, reach| sum.saturating_add(*reach));
    let high = reaches.iter().filter(|reach| **reach > 0).fold(itemsize, |sum, reach| sum.saturating_add(*reach));
    Some((low, high))
}

/// Returns byte strides in C order, saturated to 64 bits.
fn naive_c_order(shape: &[i64], itemsize: i128) -> Vec<i64> {
    (0..shape.len())
        .map(|axis| {
            let after = shape[axis + 1..].iter().map(|extent| i128::from((*extent).max(1)));
            let step = after.fold(itemsize, i128::saturating_mul);
            i64::try_from(step).unwrap_or(i64::MAX)
        })
        .collect()
}

/// Returns whether elements can have this layout at this address.
fn is_sound(shape: &[i64], strides: &[i64], dtype: DType, address: i128) -> bool {
    let itemsize = wide(dtype.itemsize());
    let most = i128::from(i64::MAX);
    if shape.len() > MAX_NDIM || shape.len() != strides.len() || shape.iter().any(|extent| *extent < 0) {
        return false;
    }
    let counted =
        shape.iter().filter(|extent| **extent != 0).fold(itemsize, |all, extent| all.saturating_mul((*extent).into()));
    let Some((low, high)) = naive_span(shape, strides, itemsize) else { return counted <= most };
    let whole = shape.iter().zip(strides).all(|(extent, stride)| *extent == 1 || i128::from(*stride) % itemsize == 0);
    // Spans beyond 128 bits are saturated.
    let (start, end) = (address.saturating_add(low), address.saturating_add(high));
    let there = start >= 0 && end <= i128::from(u64::MAX) && high.saturating_sub(low) <= most;
    counted <= most && whole && address != 0 && there
}

fn naive_interface(found: &ArrayInterface<'_>, interface: &Interface) -> Option<(DType, Vec<i64>, i128)> {
    let (versions, streams): (&[i64], _) = match interface.name {
        "__hip_array_interface__" => (&[2, 3], 'r'),
        "__cuda_array_interface__" => (&[2, 3], 'c'),
        name if name == GT_GPU.name && std::ptr::eq(interface, &raw const GT_GPU) => (&[2, 3], 'c'),
        _ => (&[3], 'h'),
    };
    let versionless = std::ptr::eq(interface, &raw const GT_GPU) || std::ptr::eq(interface, &raw const HOST);
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
        (Some("1"), Some(dtype)) if dtype.itemsize() == 1 => dtype,
        (Some("2"), Some(dtype)) if dtype.itemsize() == 2 => dtype,
        (Some("8"), Some(dtype)) if dtype.itemsize() == 8 => dtype,
        (Some(_), _) => return None,
        (None, _) => naive_typestr(&found.typestr)?,
    };
    let itemsize = wide(dtype.itemsize());
    let strides = match &found.byte_strides {
        Some(strides) => strides.to_vec(),
        None => naive_c_order(&found.shape, itemsize),
    };
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
                && let Some((low, high)) = naive_span(&found.shape, &strides, itemsize)
                && (offset + low < 0 || offset + high > wide(len))
            {
                return None;
            }
            i128::from(address) + offset
        }
    };
    is_sound(&found.shape, &strides, dtype, address).then_some((dtype, strides, address))
}

/// A list of extents or steps: mostly ordinary ones.
fn list(smallest: i64) -> impl Strategy<Value = Vec<i64>> {
    let few = prop_oneof![9 => 0usize..4, 1 => 0usize..70];
    few.prop_flat_map(move |len| prop_oneof![6 => vec(smallest..=3, len), 1 => vec(edgy(), len)])
}

fn typestrs() -> impl Strategy<Value = String> {
    let known = (select(vec!["<", "=", "|", ">", ""]), select(TYPESTRS.to_vec())).prop_map(|(order, (text, _))| {
        let mut all = order.to_owned();
        all.push_str(text);
        all
    });
    prop_oneof![
        20 => known,
        4 => select(vec!["|V1", "|V2", "<V2", "|V8", "|V3", "|O8", "<U3", "<M8[s]", "f8", "V2", "<f16", "", "<"]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[<>=|]?[a-zA-UW-Z][0-9]{0,3}",
    ]
}

fn interface() -> impl Strategy<Value = &'static Interface> {
    select(vec![&HOST, &CUDA, &HIP, &GT_GPU])
}

fn data() -> impl Strategy<Value = Data> {
    let near = |what: i64| u64::from_ne_bytes(what.to_ne_bytes());
    let address = prop_oneof![1 => Just(0u64), 8 => 1u64 << 20..1 << 47, 1 => edgy().prop_map(near)];
    let len = prop_oneof![8 => 0usize..300, 1 => Just(usize::MAX / 2)];
    prop_oneof![
        3 => (address.clone(), any::<bool>()).prop_map(|(address, readonly)| Data::At { address, readonly }),
        2 => (1u64 << 20..1 << 47, len, any::<bool>())
            .prop_map(|(address, len, readonly)| Data::In { address, len, readonly }),
    ]
}

fn dictionary() -> impl Strategy<Value = ArrayInterface<'static>> {
    let version = prop_oneof![8 => Just(Some(3i64)), 2 => Just(Some(2)), 1 => Just(None), 1 => edgy().prop_map(Some)];
    let dtype = option::of(select(DType::all().collect::<Vec<_>>()));
    let strides = prop_oneof![3 => Just(None), 2 => list(-3).prop_map(Some)];
    let offset = prop_oneof![6 => Just(0i64), 2 => -8i64..64, 1 => edgy()];
    let stream = prop_oneof![6 => Just(None), 2 => (-1i64..4).prop_map(Some), 1 => edgy().prop_map(Some)];
    let masked = prop_oneof![15 => Just(false), 1 => Just(true)];
    let descr = prop_oneof![
        12 => Just(Descr::Absent),
        2 => typestrs().prop_map(Descr::Plain),
        1 => any::<String>().prop_map(Descr::Fields),
    ];
    let first = (version, list(0), typestrs(), dtype, data());
    let rest = (strides, 0i64..17, offset, masked, descr, stream, any::<bool>());
    (first, rest).prop_map(
        |((version, shape, typestr, dtype, data), (strides, unit, offset, masked, descr, stream, same))| {
            // Mostly as many strides as extents, in elements of some size.
            let fit = |strides: Vec<i64>| -> Extents {
                let count = if same { shape.len() } else { strides.len() };
                (0..count).map(|axis| strides.get(axis).map_or(unit, |step| step.wrapping_mul(unit))).collect()
            };
            let descr = if same && matches!(descr, Descr::Plain(_)) { Descr::Plain(typestr.clone()) } else { descr };
            let byte_strides = strides.map(fit);
            let shape = Extents::from_vec(shape);
            ArrayInterface {
                version,
                shape,
                typestr: typestr.into(),
                dtype,
                data,
                byte_strides,
                offset,
                masked,
                descr,
                stream,
            }
        },
    )
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn dictionaries_are_taken_exactly_if_sound(found in dictionary(), interface in interface()) {
        let device = if std::ptr::eq(interface, &raw const HOST) { Device::CPU } else { Device::cuda(1) };
        let expected = naive_interface(&found, interface);
        let read = found.read(interface, device);
        prop_assert_eq!(read.is_ok(), expected.is_some(), "{:?}", read);
        if let (Ok(field), Some((dtype, strides, address))) = (read, expected) {
            check_proof(&field);
            prop_assert_eq!((field.dtype(), field.device(), field.shape()), (dtype, device, &found.shape[..]));
            prop_assert_eq!(wide(field.ptr().addr()), address);
            let (Data::At { readonly, .. } | Data::In { readonly, .. }) = found.data;
            prop_assert_eq!(field.is_readonly(), readonly);
            let kept = |((extent, old), new): ((&i64, &i64), i64)| *extent == 1 || *old == new;
            let steps = field.byte_strides().collect::<Vec<_>>();
            prop_assert!(field.size() == 0 || found.shape.iter().zip(&strides).zip(steps).all(kept));
        }
    }

    #[test]
    fn type_strings_are_read_exactly_if_known(text in prop_oneof![typestrs(), any::<String>()]) {
        prop_assert_eq!(typestr::decode(&text).ok(), naive_typestr(&text));
    }

    #[test]
    fn formats_are_read_exactly_if_known(
        order in select(vec!["", "@", "^", "=", "<", ">", "!", "<<"]),
        letters in prop_oneof![9 => select(FORMATS.map(|(text, _)| text.to_owned()).to_vec()), 1 => any::<String>()],
        itemsize in prop_oneof![8 => select(vec![1i64, 2, 4, 8, 16]), 1 => edgy()],
    ) {
        let text = format!("{order}{letters}");
        prop_assert_eq!(pep3118::decode(Some(&text), itemsize).ok(), naive_format(&text, itemsize));
    }

    #[test]
    fn buffers_are_taken_exactly_if_sound(
        (shape, strides, suboffsets) in (option::of(list(0)), option::of(list(-3)), option::of(list(-2))),
        (format, size_of_letter) in select(FORMATS.to_vec()).prop_map(|(text, sizes)| (text, sizes[0].0)),
        address in prop_oneof![1 => Just(0u64), 9 => 1u64 << 20..1 << 47],
        (odd_size, odd_len) in (option::weighted(0.1, edgy()), option::weighted(0.2, edgy())),
        readonly in any::<bool>(),
    ) {
        let itemsize = odd_size.unwrap_or(size_of_letter);
        let strides: Option<Vec<i64>> = strides.map(|all| all.iter().map(|step| step.wrapping_mul(itemsize)).collect());
        let elements = shape.as_ref().map_or(5, |all| all.iter().fold(1i64, |all, extent| all.saturating_mul(*extent)));
        let len = odd_len.unwrap_or(elements.saturating_mul(itemsize));
        let found = Buffer {
            address: crate::naive::size(address),
            len,
            itemsize,
            readonly,
            format: Some(format),
            shape: shape.as_deref(),
            byte_strides: strides.as_deref(),
            suboffsets: suboffsets.as_deref(),
        };
        let expected = naive_format(format, itemsize).and_then(|dtype| {
            let shape = shape.clone().unwrap_or_else(|| vec![len / itemsize]);
            let strides = strides.clone().unwrap_or_else(|| naive_c_order(&shape, itemsize.into()));
            let direct = suboffsets.as_ref().is_none_or(|all| all.iter().all(|offset| *offset < 0));
            let count = shape.iter().fold(i128::from(itemsize), |all, extent| all.saturating_mul((*extent).into()));
            let sound = direct && is_sound(&shape, &strides, dtype, address.into()) && count == i128::from(len);
            sound.then_some((dtype, shape))
        });
        let read = found.read();
        prop_assert_eq!(read.is_ok(), expected.is_some(), "{:?}", read);
        if let (Ok(field), Some((dtype, shape))) = (read, expected) {
            check_proof(&field);
            prop_assert_eq!((field.dtype(), field.shape(), field.is_readonly()), (dtype, &shape[..], readonly));
        }
    }
}
