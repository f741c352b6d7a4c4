//! Calls of a signature that borrow their tensors.

use dlfield::ndarray::{Ix1, Ix2};
use dlfield::{Access, Signature};

use crate::signature::{field, wanted};

#[test]
fn a_call_that_borrows_lends_each_field_for_one_use() {
    let signature = Signature::new([("inp", wanted("IJ")), ("out", wanted("IJ").access(Access::ReadWrite))]).unwrap();
    let (inp, mut out) = (field(&[3, 2], "JI"), field(&[2, 3], "IJ"));
    let mut call = signature.borrow(&[("inp", &inp)], [("out", &mut out)]).unwrap();
    let error = |result: dlfield::Result<()>| result.unwrap_err().to_string();
    assert_eq!(error(call.read::<f64, Ix2>("out").map(drop)), "field \"out\": its tensor is lent to write; use write");
    assert_eq!(error(call.write::<f64, Ix2>("inp").map(drop)), "field \"inp\": its tensor is lent to read; use read");
    assert_eq!(error(call.write::<f32, Ix2>("out").map(drop)), "field \"out\": dtype: expected float32, got float64");
    assert_eq!(
        error(call.read::<f64, Ix1>("inp").map(drop)),
        "field \"inp\": ndim: expected 1 dimension, got 2 of shape (2, 3)"
    );
    assert!(error(call.read::<f64, Ix2>("x").map(drop)).starts_with("field \"x\": "));
    let (guard, mut view) = (call.read::<f64, Ix2>("inp").unwrap(), call.write::<f64, Ix2>("out").unwrap());
    assert_eq!(
        error(call.write::<f64, Ix2>("out").map(drop)),
        "field \"out\": its view was taken; take it once, and reborrow it"
    );
    // Guards and views outlive the call.
    drop(call);
    assert_eq!(guard.dim(), (2, 3));
    assert!(inp.to_versioned(false).is_err(), "while a guard lives");
    view[[1, 2]] = 7.0;
    assert_eq!(out.to_vec::<f64>().unwrap(), [0.0, 0.0, 0.0, 0.0, 0.0, 7.0]);
}

#[test]
fn a_call_borrows_only_what_nobody_else_writes() {
    let signature = Signature::new([("inp", wanted("I")), ("out", wanted("I").access(Access::Write))]).unwrap();
    let (inp, mut out) = (field(&[3], "I"), field(&[3], "I"));
    let clone = out.clone();
    let error = signature.borrow(&[("inp", &inp)], [("out", &mut out)]).unwrap_err().to_string();
    assert!(error.starts_with("field \"out\": owner: expected a tensor that is the only owner"), "{error}");
    drop(clone);
    let error = signature.borrow(&[("inp", &inp), ("out", &out)], []).unwrap_err().to_string();
    assert_eq!(
        error,
        "field \"out\": it is written, but its tensor is lent to read; pass `&mut` of it in the second list"
    );
    // A tensor that is only read may be lent to write: to a kernel, the signature says what it does.
    let mut other = field(&[3], "I");
    assert!(signature.borrow(&[], [("out", &mut out), ("inp", &mut other)]).is_ok());
    assert!(signature.borrow(&[("inp", &inp)], []).is_err());
    let mut readonly = field(&[3], "I").into_readonly();
    assert!(signature.borrow(&[("inp", &inp)], [("out", &mut readonly)]).is_err());
}

#[test]
fn a_tensor_without_other_owners_is_filled() {
    let mut field = field(&[2, 3], "IJ");
    field.fill(1.5).unwrap();
    assert_eq!(field.to_vec::<f64>().unwrap(), [1.5; 6]);
    assert_eq!(field.fill(1.5f32).unwrap_err().to_string(), "dtype: expected float64, got float32");
    let exported = field.to_versioned(false).unwrap();
    assert!(field.fill(2.0).is_err());
    drop(exported);
    field.fill(2.0).unwrap();
    assert_eq!(field.to_vec::<f64>().unwrap(), [2.0; 6], "it may be read again");
    assert!(field.into_readonly().fill(3.0).is_err());
}
