//! Fills with one element.

use dlfield::{DType, Device, Spec, Tensor};
use proptest::prelude::*;

use crate::cases::{dtype, pair};
use crate::double::on_cuda;
use crate::driver::{GPU, OwnStream, PLACES, last_gpu};
use crate::memory::{Image, elements, fill, numbers, put};
use crate::repeated::config;

#[test]
fn every_element_and_nothing_else_is_filled() {
    let Some(_cuda) = on_cuda() else { return };
    let devices = [GPU, last_gpu(), Device::CUDA_HOST, Device::CUDA_MANAGED];
    let stream = OwnStream::new(GPU);
    proptest!(config(300), |((shape, side, _) in pair(), dtype in dtype(), bytes: [u8; 16], period in 0u32..5, at in 0usize..4)| {
        let (whole, field) = side.field(&shape, dtype, devices[at]);
        put(&whole, &numbers(&whole, 1));
        // Elements with a repeated pattern take another path.
        let element: Vec<u8> = bytes.iter().take(1 << period).cycle().take(dtype.itemsize()).map(|byte| if dtype == DType::BOOL { byte & 1 } else { *byte }).collect();
        let mut expected = Image::of(&whole);
        let all = element.repeat(usize::try_from(field.descriptor().size()).unwrap());
        expected.replace(&field, whole.descriptor().ptr(), &all);
        stream.with(|| fill(&field, &element)).unwrap();
        prop_assert_eq!(Image::of(&whole), expected);
    });
}

#[test]
fn fresh_fields_hold_what_was_asked_for() {
    let Some(_cuda) = on_cuda() else { return };
    for device in PLACES {
        let spec = Spec::new(&[5, 7], DType::C128).alignment_size(256).with_device(device);
        let nan = [f64::NAN.to_ne_bytes(), (-0.0f64).to_ne_bytes()].concat();
        assert_eq!(elements(&Tensor::full_bytes(&spec, &nan).unwrap()), nan.repeat(35), "{device}");
        let zeros = Tensor::zeros(&spec).unwrap();
        assert_eq!(elements(&zeros), [0; 16 * 35]);
        assert!(Tensor::full_bytes(&spec, &[0; 8]).is_err());
    }
}

#[test]
fn elements_at_odd_addresses_are_filled_and_copied_in_pieces() {
    let Some(_cuda) = on_cuda() else { return };
    let device = GPU;
    let bytes = Tensor::empty(&Spec::new(&[200], DType::U8).with_device(device)).unwrap();
    let layouts: [(&[i64], &[i64]); 2] = [(&[3, 3], &[1, 4]), (&[9], &[1])];
    for (ahead, (shape, strides)) in
        [1usize, 2, 4, 8].into_iter().flat_map(|ahead| layouts.map(|layout| (ahead, layout)))
    {
        let start = bytes.descriptor().ptr().wrapping_add(ahead);
        let odd = dlfield::Descriptor::new(start, device, DType::C128, false, shape, strides).unwrap();
        // SAFETY: at most 12 elements from byte 8 on, inside the 200 bytes.
        let odd = unsafe { Tensor::from_parts(odd, dlfield::Owner::foreign(bytes.clone())) };
        for period in [1, 2, 4, 8, 16] {
            put(&bytes, &numbers(&bytes, 1));
            let mut expected = Image::of(&bytes);
            let element: Vec<u8> = (1..=period).cycle().take(16).collect();
            expected.replace(&odd, bytes.descriptor().ptr(), &element.repeat(9));
            fill(&odd, &element).unwrap();
            assert_eq!(Image::of(&bytes), expected);
            let copy = Tensor::copy_of(&Spec::new(shape, DType::C128).with_device(device), &odd).unwrap();
            assert_eq!(elements(&copy), element.repeat(9));
        }
    }
}
