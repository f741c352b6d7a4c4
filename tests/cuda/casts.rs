//! Casts: a device does them itself, with the results of the host, bit for bit.

use dlfield::{DType, DTypeErrorKind, Descriptor, Device, Error, Index, Layout, Owner, Spec, Tensor, can_cast};

use crate::double::{Double, on_cuda, on_double};
use crate::driver::{GPU, PLACES, SHARED, gpus, last_gpu};
use crate::memory::{Image, assign, elements, numbers, put};

/// The types that are cast.
const TYPES: [DType; 15] = [
    DType::BOOL,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
];

fn pairs() -> impl Iterator<Item = (DType, DType)> {
    let all = TYPES.iter().flat_map(|from| TYPES.iter().map(move |to| (*from, *to)));
    all.filter(|(from, to)| from != to && can_cast(*from, *to))
}

type Make = fn(&[i64], DType, Device) -> (Tensor, Tensor);

/// A name, a shape, and a function that makes an allocation and the part of it that has the shape.
const LAYOUTS: [(&str, &[i64], Make); 13] = [
    ("C", &[3, 18, 35], |shape, dtype, device| ordered(shape, dtype, device, [0, 1, 2], 1)),
    ("F", &[3, 18, 35], |shape, dtype, device| ordered(shape, dtype, device, [2, 1, 0], 1)),
    ("(2, 0, 1)", &[17, 18, 20], |shape, dtype, device| ordered(shape, dtype, device, [2, 0, 1], 1)),
    ("padded rows", &[3, 18, 35], |shape, dtype, device| ordered(shape, dtype, device, [0, 1, 2], 64)),
    ("inside of a halo", &[3, 18, 35], |shape, dtype, device| part(shape, dtype, device, |len| (3, len + 6, 1))),
    ("every second plane", &[3, 18, 35], |shape, dtype, device| {
        let (whole, _) = ordered(&[2 * shape[0], shape[1], shape[2]], dtype, device, [0, 1, 2], 1);
        let planes = whole.view(&[Index::Range { start: 1, len: shape[0], step: 2 }]).unwrap();
        (whole, planes)
    }),
    ("backwards", &[3, 18, 35], |shape, dtype, device| part(shape, dtype, device, |len| (len - 1, len, -1))),
    ("every third element", &[3, 18, 35], |shape, dtype, device| part(shape, dtype, device, |len| (0, 3 * len, 3))),
    ("no dimension", &[], whole),
    ("no element", &[3, 0, 4], whole),
    ("one dimension", &[1003], whole),
    ("five dimensions", &[2, 3, 17, 2, 18], |shape, dtype, device| {
        let turned: Vec<i64> = [3, 1, 4, 0, 2].iter().map(|axis| shape[*axis]).collect();
        let (whole, _) = whole(&turned, dtype, device);
        let field = whole.transpose(&[3, 1, 4, 0, 2]).unwrap();
        (whole, field)
    }),
    ("no multiples of the element size", &[7, 5], |shape, dtype, device| {
        let (whole, _) = whole(&[1 + 35 * i64::try_from(dtype.itemsize()).unwrap()], DType::U8, device);
        let start = whole.descriptor().ptr().wrapping_add(1);
        let odd = Descriptor::new(start, device, dtype, false, shape, &[1, 7]).unwrap();
        // SAFETY: 35 elements from byte 1 on.
        let odd = unsafe { Tensor::from_parts(odd, Owner::foreign(whole.clone())) };
        (whole, odd)
    }),
];

fn whole(shape: &[i64], dtype: DType, device: Device) -> (Tensor, Tensor) {
    let field = Tensor::empty(&Spec::new(shape, dtype).with_device(device)).unwrap();
    (field.clone(), field)
}

fn ordered(shape: &[i64], dtype: DType, device: Device, order: [i64; 3], alignment: i64) -> (Tensor, Tensor) {
    let spec = Spec::new(shape, dtype).layout(Layout::new(&order, 3).unwrap()).alignment_size(alignment);
    let field = Tensor::empty(&spec.with_device(device)).unwrap();
    (field.clone(), field)
}

/// Returns the part at a start and with a step in dimensions of an extent, which depend on the part's.
fn part(shape: &[i64], dtype: DType, device: Device, of: fn(i64) -> (i64, i64, i64)) -> (Tensor, Tensor) {
    let extents: Vec<i64> = shape.iter().map(|len| of(*len).1).collect();
    let (whole, _) = whole(&extents, dtype, device);
    let range = |len: &i64| Index::Range { start: of(*len).0, len: *len, step: of(*len).2 };
    let part = whole.view(&shape.iter().map(range).collect::<Vec<_>>()).unwrap();
    (whole, part)
}

/// Returns elements with any bits, and with those that are cast in an unusual way.
fn values(field: &Tensor) -> Vec<u8> {
    let dtype = field.descriptor().dtype();
    let mut bytes = numbers(field, 3);
    let mut special: Vec<f64> =
        [0.0, 0.5, 1.0, 1.5, 2.0, 2049.0, 65504.0, 65519.9, 65520.0, 1e9, 16_777_217.0, 1e39, 1e300]
            .into_iter()
            .chain([f64::INFINITY, f64::NAN, 1e-5, 3e-8, 2.9e-8, 1e-40, 1e-46, 1e-310, 5e-324, 9.2e18])
            // Between two neighbours of f16 and of bf16, and a little more and less.
            .chain([1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0])
            .flat_map(|number| [number, number * (1.0 + f64::EPSILON), number * (1.0 - f64::EPSILON)])
            .collect();
    special.extend(special.clone().iter().map(|number| -number));
    let doubles = special.iter().map(|number| number.to_bits());
    // NaNs that are not quiet, with a payload on either side of the bits that are kept.
    let doubles = doubles.chain([0x7ff0_0000_0000_0001, 0xfff4_5678_9abc_def0, 0x7ff8_0000_2000_0000]);
    #[allow(clippy::cast_possible_truncation, reason = "the nearest number")]
    let floats = special.iter().map(|number| (*number as f32).to_bits()).chain([0x7f80_0001, 0xffa3_4567, 0x7fc0_2000]);
    let halves = [0u16, 0x8000, 1, 0x3ff, 0x400, 0x7bff, 0x7c00, 0xfc00, 0x7c01, 0xfe55, 0x3c01, 0x8001];
    let special: Vec<u8> = match dtype {
        DType::F64 | DType::C128 => doubles.flat_map(u64::to_ne_bytes).collect(),
        DType::F32 | DType::C64 => floats.flat_map(u32::to_ne_bytes).collect(),
        DType::F16 => halves.into_iter().flat_map(u16::to_ne_bytes).collect(),
        DType::BF16 => {
            [0u16, 0x7f80, 0xff80, 0x7f81, 0xffc5, 1, 0x8080].into_iter().flat_map(u16::to_ne_bytes).collect()
        }
        DType::BOOL => vec![0, 1],
        _ => [0i64, -1, i64::MIN, i64::MAX, (1 << 24) + 1, (1 << 53) + 1, 65520, 0x0100_8000_0000_0001]
            .into_iter()
            .flat_map(|number| number.to_le_bytes()[..dtype.itemsize()].to_vec())
            .collect(),
    };
    let known = special.len().min(bytes.len()) / dtype.itemsize() * dtype.itemsize();
    bytes[..known].copy_from_slice(&special[..known]);
    bytes
}

/// Makes fields in two layouts, casts from one to the other, and returns the elements of the result. A device has to cast as the
/// host did, itself, and to leave what is between the elements.
fn cast(
    types: (DType, DType),
    shape: &[i64],
    makes: (Make, Make),
    devices: (Device, Device),
    by_host: Option<&[u8]>,
) -> Vec<u8> {
    let (_, from) = makes.0(shape, types.0, devices.0);
    let (whole, to) = makes.1(shape, types.1, devices.1);
    put(&from, &values(&from));
    let mut expected = Image::of(&whole);
    let before = Double::find().map(|double| double.counts(MOVED));
    assign(&to, &from).unwrap();
    if let Some(by_host) = by_host {
        if let (Some([kernels, copies, others @ ..]), Some(double)) = (before, Double::find()) {
            let [more_kernels, more_copies, others_after @ ..] = double.counts(MOVED);
            let expected = u64::from(to.descriptor().size() > 0);
            // Integers of one size are copied.
            assert_eq!(more_kernels + more_copies - kernels - copies, expected, "{types:?}, {devices:?}");
            assert_eq!(others_after, others, "{types:?}, {devices:?}");
        }
        expected.replace(&to, whole.descriptor().ptr(), by_host);
        assert!(Image::of(&whole) == expected, "{types:?}, {devices:?}, {to:?} of {from:?}");
    }
    elements(&to)
}

/// The counters that a cast on a device may change, and those that it may not.
const MOVED: [&str; 5] = ["kernels", "copies_on_device", "copies_to_device", "copies_to_host", "stream_syncs"];

#[test]
fn every_pair_of_types_in_every_layout_is_cast_as_on_the_host() {
    let Some(_cuda) = on_cuda() else { return };
    for types in pairs() {
        for (name, shape, make) in LAYOUTS {
            for makes in [(make, whole as Make), (whole, make)] {
                println!("{types:?}, {name}");
                let by_host = cast(types, shape, makes, (Device::CPU, Device::CPU), None);
                cast(types, shape, makes, (GPU, GPU), Some(&by_host));
            }
        }
    }
}

#[test]
fn a_device_casts_from_and_to_memory_that_it_shares_with_the_host() {
    let Some(_cuda) = on_cuda() else { return };
    for (from, to) in PLACES.into_iter().flat_map(|from| PLACES.map(|to| (from, to))) {
        for types in [(DType::U8, DType::F64), (DType::F64, DType::F16), (DType::F32, DType::C128)] {
            let (_, shape, make) = LAYOUTS[2];
            let by_host = cast(types, shape, (make, whole), (Device::CPU, Device::CPU), None);
            if from == GPU || to == GPU {
                cast(types, shape, (make, whole), (from, to), Some(&by_host));
            }
        }
    }
}

#[test]
fn repeated_elements_are_cast() {
    let Some((_cuda, double)) = on_double(&[]) else { return };
    for shape in [&[18i64, 1][..], &[], &[1, 1, 35], &[3, 1, 35]] {
        let cast = |device| {
            let from = whole(shape, DType::F32, device).0;
            put(&from, &values(&from));
            let to = whole(&[3, 18, 35], DType::F16, device).0;
            let before = double.counts(MOVED)[2..].to_vec();
            assign(&to, &from).unwrap();
            assert_eq!(double.counts(MOVED)[2..], before);
            elements(&to)
        };
        assert_eq!(cast(GPU), cast(Device::CPU), "{shape:?}");
    }
}

#[test]
fn elements_are_cast_between_all_kinds_of_memory() {
    let Some(_cuda) = on_cuda() else { return };
    let places: Vec<_> = [Device::CPU].into_iter().chain(SHARED).chain(gpus()).collect();
    for (to, from) in places.iter().flat_map(|to| places.iter().map(move |from| (*to, *from))) {
        let small = Tensor::empty(&Spec::new(&[3, 4], DType::I16).with_device(from)).unwrap();
        put(&small, &(0..12i16).flat_map(|number| (number - 5).to_ne_bytes()).collect::<Vec<_>>());
        let turned = small.transpose(&[1, 0]).unwrap();
        let spec = Spec::new(&[4, 3], DType::F64).with_device(to).alignment_size(64);
        let expected = (0..4).flat_map(|i| (0..3).map(move |j| f64::from(4 * j + i - 5)));
        let bytes: Vec<u8> = expected.flat_map(f64::to_ne_bytes).collect();
        let copied = Tensor::copy_of(&spec, &turned).unwrap();
        assert_eq!(elements(&copied), bytes, "{from} to {to}");
    }
}

#[test]
fn a_cast_between_two_devices_is_done_by_the_first() {
    let Some((_cuda, double)) = on_double(&[]) else { return };
    if last_gpu() == GPU {
        return;
    }
    let (from, to) = (whole(&[5, 7], DType::F64, GPU).0, whole(&[7, 5], DType::F32, last_gpu()).0);
    put(&from, &values(&from));
    let before = double.counts(MOVED);
    assign(&to, &from.transpose(&[1, 0]).unwrap()).unwrap();
    let [kernels, copies, others @ ..] = double.counts(MOVED);
    assert_eq!((kernels - before[0], copies - before[1], &others[..]), (1, 1, &before[2..]));
}

#[test]
fn a_cast_that_loses_more_than_precision_is_refused() {
    let Some(_cuda) = on_cuda() else { return };
    assert!(!can_cast(DType::F64, DType::I16));
    let floats = Tensor::zeros(&Spec::new(&[3], DType::F64).with_device(GPU)).unwrap();
    for device in [GPU, Device::CPU] {
        let refused = Tensor::copy_of(&Spec::new(&[3], DType::I16).with_device(device), &floats);
        assert!(matches!(refused, Err(Error::DType(error)) if error.kind() == DTypeErrorKind::Cast));
    }
}
