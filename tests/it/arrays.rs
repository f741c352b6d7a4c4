//! Conversion of `ndarray` arrays to tensors and back, and views of tensors.

#![allow(unsafe_code, reason = "views are taken on the test's word")]

use dlfield::ndarray::{Array, Array1, Array2, Array3, ArrayD, Axis, Ix0, Ix1, Ix2, Ix3, IxDyn, s};
use dlfield::{DType, DTypeErrorKind, Error, ExchangeErrorKind, Index, LayoutErrorKind, Preset, Spec, Tensor};
use proptest::prelude::*;

use crate::elements::all;
use crate::strategies::config;

fn count(shape: [usize; 3]) -> Array3<f64> {
    let mut next = -1.0;
    Array::from_shape_simple_fn(shape, || {
        next += 1.0;
        next
    })
}

/// Returns the elements in index order, read by the descriptor alone.
fn by_address(field: &Tensor) -> Vec<f64> {
    all(field).into_iter().map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

proptest! {
    #![proptest_config(config(1))]
    /// Any permutation, inversion or slice keeps elements and addresses, in both directions.
    #[test]
    fn arrays_of_any_layout_go_in_and_out(
        shape in [0usize..4, 1usize..5, 1usize..4],
        axes in Just([0usize, 1, 2]).prop_shuffle(),
        turned in any::<[bool; 3]>(),
        cut in 0usize..3,
    ) {
        let mut array = count(shape).permuted_axes(axes);
        for (axis, turn) in turned.into_iter().enumerate() {
            if turn {
                array.invert_axis(Axis(axis));
            }
        }
        let cut = cut.min(array.len_of(Axis(1)).saturating_sub(1));
        let array = array.slice_move(s![.., cut.., ..]);
        let (expected, start) = (array.clone(), array.as_ptr());
        let field = Tensor::from_array(array).unwrap();
        let elements: Vec<f64> = expected.iter().copied().collect();
        prop_assert_eq!((by_address(&field), field.to_vec::<f64>().unwrap()), (elements.clone(), elements));
        if !expected.is_empty() {
            prop_assert_eq!(field.descriptor().ptr().cast_const().cast(), start);
        }
        // SAFETY: nobody writes.
        let view = unsafe { field.array_view::<f64, Ix3>() }.unwrap();
        prop_assert_eq!(view, expected.view());
        // SAFETY: nobody writes.
        let view = unsafe { field.array_view::<f64, IxDyn>() }.unwrap();
        prop_assert_eq!(view, expected.view().into_dyn());
        prop_assert_eq!(field.read::<f64, Ix3>().unwrap().to_owned(), expected.clone());
        let copy: Array3<f64> = field.clone().into_array().unwrap();
        prop_assert_eq!(&copy, &expected);
        let back: Array3<f64> = field.into_array().unwrap();
        prop_assert!(cut > 0 || expected.is_empty() || back.as_ptr() == start, "a whole array is not copied");
        prop_assert_eq!(back, expected);
    }

    /// Views of allocated fields in any layout with padding, and of views of these.
    #[test]
    fn views_of_fields_are_what_the_addresses_say(
        preset in prop::sample::select(vec!["C", "F", "gt:cpu_ifirst", "gtmc", "dace:cpu"]),
        step in prop::sample::select(vec![-2i64, -1, 1, 2]),
    ) {
        let spec = Spec::new(&[4, 5, 6], DType::F64).preset(Preset::find(preset).unwrap());
        let mut field = Tensor::zeros(&spec).unwrap();
        field.array_view_mut::<f64, Ix3>().unwrap().assign(&count([4, 5, 6]));
        let start = if step < 0 { 4 } else { 0 };
        let len = 5 / step.abs();
        let part = field.view(&[Index::At(2), Index::Range { start, len, step }]).unwrap();
        // SAFETY: nobody writes.
        let view = unsafe { part.array_view::<f64, Ix2>() }.unwrap();
        prop_assert_eq!(view.iter().copied().collect::<Vec<_>>(), by_address(&part));
        prop_assert_eq!(view[[0, 3]], 60.0 + 6.0 * f64::from(i32::try_from(start).unwrap()) + 3.0);
    }
}

#[test]
fn shared_memory_is_copied() {
    let field = Tensor::from(vec![1.0f64, 2.0]);
    let clone = field.clone();
    let mut copy: Array1<f64> = field.into_array().unwrap();
    copy[0] = 5.0;
    assert_eq!(by_address(&clone), [1.0, 2.0]);
    // A block is freed by its own allocator, so it cannot become a vector.
    let array: Array2<f64> = Tensor::zeros(&Spec::new(&[2, 2], DType::F64)).unwrap().into_array().unwrap();
    assert_eq!(array, Array2::<f64>::zeros((2, 2)));
}

#[test]
fn wrong_views_are_refused() {
    let mut field = Tensor::zeros(&Spec::new(&[3, 4], DType::F64)).unwrap();
    assert!(
        matches!(field.array_view_mut::<f32, Ix2>(), Err(Error::DType(error)) if error.kind() == DTypeErrorKind::Mismatch)
    );
    assert!(matches!(
        field.array_view_mut::<f64, Ix3>(),
        Err(Error::Layout(error)) if error.kind() == LayoutErrorKind::Mismatch
    ));
    let mut readonly = Tensor::from(vec![1.0f64]).into_readonly();
    assert!(
        matches!(readonly.array_view_mut::<f64, Ix1>(), Err(Error::Exchange(error)) if error.kind() == ExchangeErrorKind::ReadOnly)
    );
    // SAFETY: nobody writes.
    assert_eq!(unsafe { readonly.array_view::<f64, Ix1>() }.unwrap()[0], 1.0);
}

#[test]
fn bools_are_looked_at() {
    let mut good = Tensor::zeros(&Spec::new(&[4], DType::BOOL)).unwrap();
    good.array_view_mut::<bool, Ix1>().unwrap()[2] = true;
    assert_eq!(good.into_array::<bool, Ix1>().unwrap(), dlfield::ndarray::arr1(&[false, false, true, false]));
    let bad = Tensor::full_bytes(&Spec::new(&[4], DType::BOOL), &[2]).unwrap();
    assert!(
        matches!(bad.into_array::<bool, Ix1>(), Err(Error::DType(error)) if error.kind() == DTypeErrorKind::Invalid)
    );
}

#[test]
fn unaligned_elements_are_refused() {
    let bytes = Tensor::zeros(&Spec::new(&[17], DType::U8)).unwrap();
    let (whole, owner) = bytes.into_parts();
    let start = whole.ptr().wrapping_add(1);
    let odd = dlfield::Descriptor::new(start, dlfield::Device::CPU, DType::F64, false, &[2], &[1]).unwrap();
    // SAFETY: inside the allocation.
    let odd = unsafe { Tensor::from_parts(odd, owner) };
    assert!(
        matches!(odd.into_array::<f64, Ix1>(), Err(Error::Layout(error)) if error.kind() == LayoutErrorKind::NeedsCopy)
    );
}

#[test]
fn no_elements_and_no_dimensions() {
    for shape in [vec![0usize, 3], vec![2, 0, 5], vec![]] {
        let array = ArrayD::<f32>::zeros(shape.clone());
        let mut field = Tensor::from_array(array.clone()).unwrap();
        assert_eq!(field.array_view_mut::<f32, IxDyn>().unwrap(), array);
        assert_eq!(field.into_array::<f32, IxDyn>().unwrap(), array);
    }
    let one: Array<f32, Ix0> = Tensor::from_array(Array::from_elem((), 3.5f32)).unwrap().into_array().unwrap();
    assert_eq!(one.into_scalar(), 3.5);
    let mut empty = Tensor::empty(&Spec::new(&[0, 2], DType::F64)).unwrap();
    assert_eq!(empty.array_view_mut::<f64, Ix2>().unwrap().dim(), (0, 2));
    assert!(Tensor::from_array(ArrayD::<u8>::zeros(vec![1; 65])).is_err());
}

/// Miri fails here if any of these reads memory that nothing has written.
#[test]
fn elements_that_nobody_has_written_are_numbers_too() {
    for size in [1, 8, 40] {
        let spec = Spec::new(&[size, 20], DType::F32).alignment_size(64);
        let field = Tensor::empty(&spec).unwrap();
        let bits = |field: &Tensor| field.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let turned = Tensor::copy_of(&spec.clone().preset(Preset::find("F").unwrap()), &field).unwrap();
        assert_eq!(bits(&turned), bits(&field));
        let every_other = field.view(&[Index::All, Index::Range { start: 0, len: 10, step: 2 }]).unwrap();
        assert_eq!(bits(&every_other.copy().unwrap()).len(), bits(&field).len() / 2);
        for dtype in [DType::F16, DType::F64, DType::BF16, DType::C128] {
            assert_eq!(Tensor::copy_of(&spec.clone().with_dtype(dtype), &field).unwrap().descriptor().dtype(), dtype);
        }
    }
    let flags = Tensor::empty(&Spec::new(&[3, 50], DType::BOOL)).unwrap();
    let ones = Tensor::copy_of(&flags.spec().with_dtype(DType::U8), &flags).unwrap();
    assert!(ones.to_vec::<u8>().unwrap().into_iter().all(|one| one < 2));
    assert_eq!(flags.to_vec::<bool>().unwrap(), [false; 150]);
}

#[test]
fn new_bools_are_false_in_memory_that_had_other_bytes() {
    for size in [40, 5000, 3 << 20] {
        for _ in 0..4 {
            drop(Tensor::full(&Spec::new(&[size], DType::U8), 7u8).unwrap());
            let mut flags = Tensor::empty(&Spec::new(&[size], DType::BOOL)).unwrap();
            assert!(flags.array_view_mut::<bool, Ix1>().unwrap().iter().all(|flag| !flag));
        }
    }
}

#[test]
#[rustfmt::skip]
fn the_lines_of_the_readme_fill_a_field() -> dlfield::Result<()> {
    use dlfield::{DType, Preset, Spec, Tensor, ndarray::Ix3};

    let spec = Spec::new(&[66, 66, 40], DType::F64).preset(Preset::find("gt:cpu_ifirst")?).halo(&[(1, 1), (1, 1), (0, 0)]);
    let mut field = Tensor::zeros(&spec)?;
    field.array_view_mut::<f64, Ix3>()?.fill(2.0);

    assert_eq!(field.descriptor().strides(), [1, 66, 66 * 66]);
    assert!(field.into_array::<f64, Ix3>()?.iter().all(|element| *element == 2.0));
    Ok(())
}
