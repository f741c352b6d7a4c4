//! For any content of an array interface or a buffer, validation returns a correct descriptor or an error, and never panics.
//! The rules are in `sound_interfaces.rs`.

use dlfield::DType;
use dlfield::testing::Extents;
use dlfield::testing::protocol::array_interface::{ArrayInterface, CUDA, Data, Descr, GT_GPU, HIP, HOST, Interface};
use dlfield::testing::protocol::buffer::Buffer;
use dlfield::testing::protocol::{pep3118, typestr};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::sound_interfaces::{FORMATS, TYPESTRS, check_buffer, check_dictionary, naive_format, naive_typestr};
use crate::strategies::{config, edgy};

/// A list of extents or steps: mostly ordinary ones.
fn list(smallest: i64) -> impl Strategy<Value = Vec<i64>> {
    let few = prop_oneof![9 => 0usize..4, 1 => 0usize..70];
    few.prop_flat_map(move |len| prop_oneof![6 => vec(smallest..=3, len), 1 => vec(edgy(), len)])
}

fn typestrs() -> impl Strategy<Value = String> {
    let orders = select(vec!["<", "=", "|", ">", ""]);
    let known = (orders, select(TYPESTRS.to_vec())).prop_map(|(order, (text, _))| format!("{order}{text}"));
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
            let typestr = typestr.into();
            ArrayInterface { version, shape, typestr, dtype, data, byte_strides, offset, masked, descr, stream }
        },
    )
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn dictionaries_are_taken_exactly_if_sound(found in dictionary(), interface in interface()) {
        check_dictionary(&found, interface);
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
        (readonly, bare) in (any::<bool>(), prop::bool::weighted(0.1)),
    ) {
        let size_of_letter = if bare { 1 } else { size_of_letter };
        let itemsize = odd_size.unwrap_or(size_of_letter);
        let strides: Option<Vec<i64>> = strides.map(|all| all.iter().map(|step| step.wrapping_mul(itemsize)).collect());
        let elements = shape.as_ref().map_or(5, |all| all.iter().fold(1i64, |all, extent| all.saturating_mul(*extent)));
        let len = odd_len.unwrap_or(elements.saturating_mul(itemsize));
        let found = Buffer {
            address: crate::naive::size(address),
            len,
            itemsize,
            readonly,
            format: (!bare).then_some(format),
            shape: shape.as_deref(),
            byte_strides: strides.as_deref(),
            suboffsets: suboffsets.as_deref(),
        };
        check_buffer(&found);
    }
}
