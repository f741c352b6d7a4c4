//! The contents of new tensors: zeros, fills and copies.

use dlfield::{DType, DTypeErrorKind, Device, Dims, Error, Layout, LayoutErrorKind, Padding, Preset, Spec, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::elements::{all, number_all, numbered, numbers, read, write};
use crate::naive::indices;
use crate::runner::{alignment_statement_is_true, check_memory};
use crate::strategies::{config, dtype, permutation, spec};

/// Two specs of the same shape and element type.
fn pair() -> impl Strategy<Value = (Spec, Spec)> {
    (spec(dtype()), 1i64..=256, any::<bool>()).prop_flat_map(|(first, alignment, row)| {
        let place = first.place().unwrap();
        permutation(place.shape.len()).prop_map(move |ranks| {
            let second = Spec::new(&place.shape, place.dtype)
                .layout(Layout::new(&ranks, ranks.len()).unwrap())
                .alignment_size(alignment)
                .padding(if row { Padding::Row } else { Padding::None });
            (first.clone(), second)
        })
    })
}

proptest! {
    #![proptest_config(config(2))]

    #[test]
    fn full_writes_every_element(spec in spec(dtype()), bytes in vec(any::<u8>(), 16)) {
        let element = &bytes[..spec.dtype().itemsize()];
        let tensor = Tensor::full_bytes(&spec, element).unwrap();
        prop_assert!(all(&tensor).iter().all(|found| found == element));
    }

    #[test]
    fn copies_between_layouts_keep_every_element((from, to) in pair()) {
        let source = check_memory(&from);
        number_all(&source);
        let copy = Tensor::copy_of(&to, &source).unwrap();
        prop_assert_eq!(all(&copy), numbers(&source));
        let back = Tensor::copy_of(&from, &copy).unwrap();
        prop_assert_eq!(all(&back), numbers(&source));
        prop_assert_eq!(back.descriptor().strides(), source.descriptor().strides());
    }

    #[test]
    fn a_copy_is_alike_and_apart(spec in spec(dtype())) {
        let source = check_memory(&spec);
        number_all(&source);
        let copy = source.clone().into_readonly().copy().unwrap();
        prop_assert!(!copy.descriptor().is_readonly());
        let parts = |tensor: &Tensor| {
            let field = tensor.descriptor();
            (field.strides().to_vec(), tensor.dims(), tensor.origin(), tensor.halo().to_vec(), tensor.layout())
        };
        prop_assert_eq!(parts(&copy), parts(&source));
        prop_assert_eq!((copy.padding(), copy.alignment_size()), (source.padding(), source.alignment_size()));
        prop_assert_eq!(copy.aligned_index(), source.aligned_index());
        alignment_statement_is_true(&copy);
        for index in indices(copy.descriptor().shape()) {
            write(&copy, &index, &numbered(250, copy.descriptor().itemsize()));
        }
        prop_assert_eq!(all(&source), numbers(&source));
    }

    #[test]
    fn spec_round_trips(spec in spec(dtype())) {
        let again = Tensor::empty(&spec).unwrap().spec();
        let (place, again) = (spec.place().unwrap(), again.place().unwrap());
        // An aligned index of zeros is the same as none.
        let index = |place: &dlfield::AllocationLayout| {
            place.aligned_index.as_deref().filter(|index| index.iter().any(|at| *at != 0)).map(<[i64]>::to_vec)
        };
        prop_assert_eq!(index(&place), index(&again));
        let plain = |mut place: dlfield::AllocationLayout| {
            place.aligned_index = None;
            format!("{place:?}")
        };
        prop_assert_eq!(plain(place), plain(again));
    }
}

/// Large blocks come from mappings, small ones from the allocator.
#[test]
fn large_fields_are_zero_aligned_and_filled() {
    let spec = Spec::new(&[64, 65, 66], DType::C128).layout(Layout::f_order(3)).alignment_size(256);
    let tensor = check_memory(&spec.clone().halo(&[(3, 3), (0, 0), (1, 1)]));
    assert!(tensor.descriptor().nbytes() > 4 << 20);
    let ones = Tensor::full_bytes(&spec, &numbered(1, 16)).unwrap();
    let corners = [[0, 0, 0], [63, 64, 65], [63, 0, 65], [32, 33, 1]];
    assert!(corners.iter().all(|index| read(&ones, index) == numbered(1, 16)));
    let odd = check_memory(&spec.alignment_size(3 << 12).padding(Padding::None));
    assert_eq!(odd.descriptor().ptr().addr() % (3 << 12), 0);
}

#[test]
fn what_does_not_fit_is_refused() {
    let spec = Spec::new(&[2, 3], DType::F64);
    for bytes in [&[][..], &[0; 4], &[0; 16]] {
        let message = format!("element: expected 8 bytes for dtype float64, got {}", bytes.len());
        assert_eq!(Tensor::full_bytes(&spec, bytes).unwrap_err().to_string(), message);
    }
    let tensor = Tensor::zeros(&spec).unwrap();
    let shapes = Tensor::copy_of(&Spec::new(&[3, 2], DType::F64), &tensor);
    assert!(matches!(&shapes, Err(Error::Layout(error)) if error.kind() == LayoutErrorKind::Mismatch), "{shapes:?}");
    let dtypes = Tensor::copy_of(&Spec::new(&[2, 3], DType::I64), &tensor);
    assert!(matches!(&dtypes, Err(Error::DType(error)) if error.kind() == DTypeErrorKind::Cast), "{dtypes:?}");
    let device = Tensor::zeros(&Spec::new(&[2], DType::F64).with_device(dlfield::Device::cuda(0)));
    assert!(matches!(device, Err(Error::Device(_))), "{device:?}");
    let dims = Tensor::zeros(&Spec::new(&[2], DType::F64).dims(Dims::standard(2)));
    assert!(matches!(dims, Err(Error::Dims(_))), "{dims:?}");
}

#[test]
fn a_preset_replaces_only_what_a_spec_has_from_another_field() {
    let made = Spec::new(&[3, 5], DType::F64).layout(Layout::f_order(2)).alignment_size(64);
    let field = Tensor::zeros(&made.halo(&[(1, 1), (0, 0)])).unwrap();
    let (c, f) = (|| Preset::find("C").unwrap(), || Preset::find("F").unwrap());
    let strides = |spec: Spec| Tensor::zeros(&spec).unwrap().descriptor().strides().to_vec();
    assert_eq!(strides(field.spec()), [1, 8]);
    assert_eq!(strides(field.spec().preset(c())), [5, 1]);
    // In either order, an explicit value stays, and the others are the preset's.
    for spec in
        [field.spec().layout(Layout::f_order(2)).preset(c()), field.spec().preset(c()).layout(Layout::f_order(2))]
    {
        assert_eq!(strides(spec), [1, 3]);
    }
    for spec in [field.spec().alignment_size(32).preset(c()), field.spec().preset(c()).alignment_size(32)] {
        assert_eq!(strides(spec), [8, 1]);
    }
    assert_eq!(strides(field.spec().with_device(Device::CPU).preset(c())), [5, 1]);
    assert_eq!(Tensor::zeros(&field.spec().preset(f())).unwrap().halo(), field.halo());
}
