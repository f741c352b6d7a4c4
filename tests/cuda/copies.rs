//! Copies between all kinds of memory and all layouts.

use dlfield::cuda::{Stream, current_stream};
use dlfield::{DType, Device, Error, Index, Layout, Spec, Tensor};
use proptest::prelude::*;
use proptest::sample::select;

use crate::cases::{dtype, pair};
use crate::double::{Double, on_cuda, on_double};
use crate::driver::{GPU, OwnStream, PLACES, SHARED, gpus};
use crate::memory::{Image, assign, elements, fill, numbers, put};
use crate::repeated::config;

/// All pairs (destination, source) of devices.
fn routes() -> Vec<(Device, Device)> {
    let places: Vec<_> = [Device::CPU].into_iter().chain(SHARED).chain(gpus()).collect();
    places.iter().flat_map(|from| places.iter().map(|to| (*from, *to))).collect()
}

/// All memory of the destination is compared.
#[test]
fn all_layouts_between_all_kinds_of_memory_in_any_streams() {
    let Some(_cuda) = on_cuda() else { return };
    let (routes, own) = (routes(), prop::bool::weighted(0.3));
    let streams: Vec<_> = gpus().into_iter().map(OwnStream::new).collect();
    let last = streams.last().unwrap();
    proptest!(config(550), |((shape, to_side, from_side) in pair(), dtype in dtype(), route in select(routes.clone()), own in own)| {
        let (to_device, from_device) = route;
        let check = || {
            let (whole, to) = to_side.field(&shape, dtype, to_device);
            let (_, from) = from_side.field(&shape, dtype, from_device);
            let (values, before) = (numbers(&from, 1), numbers(&whole, 2));
            put(&from, &values);
            put(&whole, &before);
            let mut expected = Image::of(&whole);
            expected.replace(&to, whole.descriptor().ptr(), &values);
            assign(&to, &from).unwrap();
            assert_eq!(Image::of(&whole), expected, "{from_device} to {to_device}");
            assert_eq!(elements(&from), values);
            let copy = from.to_device(to_device, Some(true)).unwrap();
            assert_eq!((copy.descriptor().device(), copy.layout()), (to_device, from.layout()));
            assert_eq!(elements(&copy), values);
        };
        // Streams of their own wait for no other stream.
        if own { streams[0].with(|| last.with(check)) } else { check() }
    });
}

#[test]
fn shapes_are_broadcast() {
    let Some(_cuda) = on_cuda() else { return };
    for (to, from) in routes() {
        for shape in [&[1i64][..], &[], &[5], &[4, 1], &[3, 1, 5], &[1, 3, 4, 5]] {
            let field = Tensor::zeros(&Spec::new(&[3, 4, 5], DType::F32).with_device(to)).unwrap();
            let part = Tensor::empty(&Spec::new(shape, DType::F32).with_device(from)).unwrap();
            let values = numbers(&part, 4);
            put(&part, &values);
            assign(&field, &part).unwrap();
            let extent = |axis: usize| (axis + shape.len()).checked_sub(3).map_or(1, |axis| shape[axis]);
            let mut expected = vec![];
            for (i, j, k) in (0..60).map(|at| (at / 20, at / 5 % 4, at % 5)) {
                let at = |index: i64, axis| if extent(axis) == 1 { 0 } else { index };
                let element = (at(i, 0) * extent(1) + at(j, 1)) * extent(2) + at(k, 2);
                let element = usize::try_from(element).unwrap();
                expected.extend_from_slice(&values[4 * element..][..4]);
            }
            assert_eq!(elements(&field), expected, "{shape:?} from {from} to {to}");
        }
    }
}

/// Sizes of whole tiles, of parts of one, and those between; rows that start at multiples of what a thread copies at once, and
/// others.
#[test]
fn orders_are_exchanged_in_tiles() {
    let Some(_cuda) = on_cuda() else { return };
    let field = |shape: &[i64], dtype, layout: &[i64], alignment, device| {
        let spec = Spec::new(shape, dtype).layout(Layout::new(layout, shape.len()).unwrap()).alignment_size(alignment);
        Tensor::empty(&spec.with_device(device)).unwrap()
    };
    for dtype in [DType::U8, DType::F16, DType::F32, DType::F64, DType::C128] {
        for shape in [[2, 64, 128], [3, 130, 16], [1, 129, 131], [2, 17, 260], [140, 2, 140]] {
            for (layout, alignment) in [([0, 2, 1], 1), ([2, 1, 0], 16), ([2, 0, 1], 1), ([1, 2, 0], 64)] {
                let from = field(&shape, dtype, &[0, 1, 2], alignment, GPU);
                let to = field(&shape, dtype, &layout, alignment, GPU);
                let (values, before) = (numbers(&from, 7), numbers(&to, 8));
                put(&from, &values);
                put(&to, &before);
                let mut expected = Image::of(&to);
                expected.replace(&to, to.descriptor().ptr(), &values);
                assign(&to, &from).unwrap();
                assert_eq!(
                    Image::of(&to),
                    expected,
                    "{dtype}, {shape:?}, {layout:?}, rows at multiples of {alignment}"
                );
                assign(&from, &to).unwrap();
                assert_eq!(elements(&from), values, "back: {dtype}, {shape:?}, {layout:?}, {alignment}");
            }
        }
    }
}

#[test]
fn overlapping_views_are_copied_aside() {
    let Some(_cuda) = on_cuda() else { return };
    for device in PLACES {
        let field = Tensor::empty(&Spec::new(&[9], DType::F64).with_device(device)).unwrap();
        let values = numbers(&field, 5);
        put(&field, &values);
        let part = |start| field.view(&[Index::Range { start, len: 8, step: 1 }]).unwrap();
        assign(&part(1), &part(0)).unwrap();
        assert_eq!(elements(&field), [&values[..8], &values[..64]].concat());
    }
}

#[test]
fn nothing_is_asked_of_the_driver_for_fields_without_elements() {
    let Some(_cuda) = on_cuda() else { return };
    for (to, from) in routes() {
        let spec = Spec::new(&[3, 0, 4], DType::F32);
        let (to, from) = (spec.clone().with_device(to), Tensor::empty(&spec.with_device(from)).unwrap());
        let to = Tensor::empty(&to).unwrap();
        let calls = Double::find().map(|double| double.count("calls"));
        assign(&to, &from).unwrap();
        fill(&to, &[0; 4]).unwrap();
        assert_eq!(Double::find().map(|double| double.count("calls")), calls);
    }
}

#[test]
fn pageable_memory_may_go_as_soon_as_a_copy_returns() {
    let Some(_cuda) = on_cuda() else { return };
    let (device, stream) = (GPU, OwnStream::new(GPU));
    stream.with(|| {
        let field = Tensor::empty(&Spec::new(&[40, 30], DType::F64).alignment_size(64).with_device(device)).unwrap();
        let host = Tensor::empty(&Spec::new(&[40, 30], DType::F64)).unwrap();
        let values = numbers(&host, 6);
        put(&host, &values);
        assign(&field, &host).unwrap();
        fill(&host, &[0; 8]).unwrap();
        drop(host);
        let back = field.to_device(Device::CPU, None).unwrap();
        // Not with `elements`, which waits.
        // SAFETY: a compact field in host memory.
        let found = unsafe { std::slice::from_raw_parts(back.descriptor().ptr(), 8) };
        assert_eq!(found, &values[..8]);
    });
    assert_eq!(current_stream(device).handle(), Stream::LEGACY.handle());
}

#[test]
fn a_copy_without_memory_in_between_fails_and_loses_nothing() {
    let Some((_cuda, double)) = on_double(&[]) else { return };
    let host = Tensor::zeros(&Spec::new(&[20, 30, 7], DType::F64)).unwrap();
    let turned = host.transpose(&[2, 1, 0]).unwrap();
    let field = Tensor::zeros(&Spec::new(&[7, 30, 20], DType::F64).with_device(GPU)).unwrap();
    double.fail_allocation(0);
    let refused = assign(&field, &turned);
    assert!(matches!(refused, Err(Error::Memory(_))), "{refused:?}");
    assign(&field, &turned).unwrap();
}
