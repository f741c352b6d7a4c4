//! `Signature::bind_or_copy`: temporaries that replace fields that do not fit.

#![allow(unsafe_code, reason = "elements are reached through their address")]

use dlfield::{Access, DType, Descriptor, Device, Dims, FieldSpec, Index, Layout, Owner, Signature, Spec, Tensor};

use crate::elements::all;

fn wanted(dtype: DType, access: Access) -> FieldSpec {
    FieldSpec::new(dtype, Dims::standard(2)).access(access).layout(Layout::f_order(2))
}

/// Returns 2 by 3 elements with consecutive numbers in index order.
fn counted(dtype: DType, layout: &[i64]) -> Tensor {
    let field = Tensor::zeros(&Spec::new(&[2, 3], DType::F64)).unwrap();
    for at in 0..6u8 {
        // SAFETY: six elements in C order, in memory that nobody else has.
        unsafe { field.descriptor().ptr().cast::<f64>().add(at.into()).write(at.into()) };
    }
    Tensor::copy_of(&Spec::new(&[2, 3], dtype).layout(Layout::new(layout, 2).unwrap()), &field).unwrap()
}

/// Returns all elements in index order, as float64.
fn elements(field: &Tensor) -> Vec<f64> {
    let plain = Tensor::copy_of(&Spec::new(field.descriptor().shape(), DType::F64), field).unwrap();
    all(&plain).into_iter().map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

/// Adds 10 to each of six float64 elements in F order.
fn add_ten(field: &Descriptor) {
    assert_eq!((field.dtype(), field.strides()), (DType::F64, [1, 2].as_slice()));
    for at in 0..6 {
        // SAFETY: six compact elements.
        unsafe { *field.ptr().cast::<f64>().add(at) += 10.0 };
    }
}

#[test]
fn only_written_fields_are_copied_back() {
    let signature = Signature::new([
        ("inp", wanted(DType::F64, Access::Read)),
        ("out", wanted(DType::F64, Access::Write)),
        ("fits", wanted(DType::F64, Access::ReadWrite)),
    ])
    .unwrap();
    let (inp, out, fits) = (counted(DType::F32, &[0, 1]), counted(DType::F32, &[0, 1]), counted(DType::F64, &[1, 0]));
    let before = elements(&inp);
    let bound = signature.bind_or_copy(&[("inp", &inp), ("out", &out), ("fits", &fits)]).unwrap();
    assert_eq!(bound.copied().collect::<Vec<_>>(), ["inp", "out"]);
    assert_eq!(bound.get("fits").unwrap().ptr(), fits.descriptor().ptr());
    for name in ["inp", "out", "fits"] {
        add_ten(bound.get(name).unwrap());
    }
    assert_eq!(elements(&out), before, "not before it is said");
    // SAFETY: nobody else has these fields.
    unsafe { bound.copy_back() }.unwrap();
    let after: Vec<f64> = before.iter().map(|element| element + 10.0).collect();
    assert_eq!((elements(&inp), elements(&out), elements(&fits)), (before, after.clone(), after));
}

#[test]
fn dimensions_in_another_order_are_copied_to_their_places() {
    let signature = Signature::new([("x", wanted(DType::F64, Access::ReadWrite))]).unwrap();
    let field = counted(DType::F32, &[0, 1]).transpose(&[1, 0]).unwrap();
    assert_eq!(field.dims().to_string(), "J, I");
    let bound = signature.bind_or_copy(&[("x", &field)]).unwrap();
    assert_eq!(bound.get("x").unwrap().shape(), [2, 3]);
    add_ten(bound.get("x").unwrap());
    // SAFETY: nobody else has the field.
    unsafe { bound.copy_back() }.unwrap();
    assert_eq!(elements(&field), [10.0, 13.0, 11.0, 14.0, 12.0, 15.0]);
}

#[test]
fn what_cannot_be_copied_is_refused_or_slow() {
    let signature = Signature::new([("x", wanted(DType::I32, Access::Read))]).unwrap();
    let refused = signature.bind_or_copy(&[("x", &counted(DType::F64, &[0, 1]))]).unwrap_err();
    assert!(
        refused.to_string().starts_with("field \"x\": dtype: expected a cast")
            && refused.to_string().ends_with("got a cast of float64 to int32"),
        "{refused}"
    );
    let signature = Signature::new([("x", wanted(DType::F64, Access::Write))]).unwrap();
    let readonly = counted(DType::F64, &[0, 1]).into_readonly();
    let refused = signature.bind_or_copy(&[("x", &readonly)]).unwrap_err();
    assert!(refused.to_string().contains("the memory is read-only"), "{refused}");

    // Pinned memory in a slow order: there is no driver to allocate a temporary, and the field works as it is.
    let pinned: Device = "cuda_host".parse().unwrap();
    let signature = signature.with_device(pinned);
    let field = counted(DType::F64, &[0, 1]);
    let found = field.descriptor();
    let described = Descriptor::new(found.ptr(), pinned, found.dtype(), false, found.shape(), found.strides()).unwrap();
    // SAFETY: the memory of `field`, which outlives this tensor.
    let tensor = unsafe { Tensor::from_parts(described, Owner::foreign(())) };
    let bound = signature.bind_or_copy(&[("x", &tensor)]).unwrap();
    assert_eq!((bound.copied().count(), bound.slow()), (0, ["x".into()].as_slice()));
}

#[test]
fn a_view_with_gaps_is_copied_back_into_its_own_elements() {
    let signature = Signature::new([("x", wanted(DType::F64, Access::ReadWrite))]).unwrap();
    let whole = Tensor::zeros(&Spec::new(&[4, 6], DType::F32)).unwrap();
    let every_other = |len| Index::Range { start: 1, len, step: 2 };
    let field = whole.view(&[every_other(2), every_other(3)]).unwrap();
    let bound = signature.bind_or_copy(&[("x", &field)]).unwrap();
    add_ten(bound.get("x").unwrap());
    // SAFETY: nobody else has the field.
    unsafe { bound.copy_back() }.unwrap();
    let ones = [0.0, 10.0, 0.0, 10.0, 0.0, 10.0];
    let wanted = [[0.0; 6], ones, [0.0; 6], ones].concat();
    assert_eq!(elements(&whole), wanted);
}

#[test]
fn the_same_elements_share_a_temporary_if_overlap_is_allowed() {
    let field = || wanted(DType::F64, Access::ReadWrite);
    let signature = Signature::new([("x", field()), ("y", field())]).unwrap();
    let tensor = counted(DType::F32, &[0, 1]);
    assert!(signature.bind_or_copy(&[("x", &tensor), ("y", &tensor)]).is_err());
    let signature = signature.allow_overlap(true);
    let bound = signature.bind_or_copy(&[("x", &tensor), ("y", &tensor)]).unwrap();
    add_ten(bound.get("x").unwrap());
    add_ten(bound.get("y").unwrap());
    // SAFETY: nobody else has the field.
    unsafe { bound.copy_back() }.unwrap();
    assert_eq!(elements(&tensor), [20.0, 21.0, 22.0, 23.0, 24.0, 25.0]);
    let mirrored =
        tensor.view(&[Index::Range { start: 1, len: 2, step: -1 }, Index::Range { start: 0, len: 3, step: 1 }]);
    let error = signature.bind_or_copy(&[("x", &tensor), ("y", &mirrored.unwrap())]).unwrap_err();
    assert!(error.to_string().starts_with("field \"y\": it shares memory with field \"x\", and a temporary copy"));
}
