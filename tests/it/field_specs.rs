//! What a `FieldSpec` may leave open: dims, element types, extents; and what a preset fills in.

use dlfield::{Access, DType, Descriptor, Device, Dims, FieldSpec, Layout, Preset, Signature, Size, Spec, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::signature::refused;
use crate::strategies::config;

fn zeros(shape: &[i64], dtype: DType) -> Tensor {
    Tensor::zeros(&Spec::new(shape, dtype)).unwrap()
}

#[test]
fn one_of_several_types_is_accepted() {
    let spec = || FieldSpec::new(DType::F32, None).dtypes(&[DType::F32, DType::F64, DType::F32]);
    assert_eq!((spec().declared_dtypes(), spec().dtype()), ([DType::F32, DType::F64].as_slice(), None));
    let said = refused(spec(), zeros(&[2], DType::I8).descriptor());
    assert_eq!(said, "field \"x\": dtype: expected float32 or float64, got int8");
    let any = FieldSpec::new(DType::F32, None).dtypes(&[]);
    let signature = Signature::new([("several", spec()), ("any", any)]).unwrap();
    for (several, any) in [(DType::F32, DType::I8), (DType::F64, DType::C128)] {
        let (several, any) = (zeros(&[2], several), zeros(&[2], any));
        assert!(signature.bind(&[("several", several.descriptor()), ("any", any.descriptor())]).is_ok());
    }
}

#[test]
fn a_copy_has_the_first_type_unless_the_fields_own_is_allowed() {
    let spec = FieldSpec::new(DType::F32, None).dtypes(&[DType::F32, DType::F64]).layout(Layout::f_order(2));
    let signature = Signature::new([("x", spec.access(Access::ReadWrite))]).unwrap();
    for (found, copied) in [(DType::F16, DType::F32), (DType::F64, DType::F64), (DType::F32, DType::F32)] {
        let field = zeros(&[2, 3], found);
        let bound = signature.bind_or_copy(&[("x", &field)]).unwrap();
        let copy = bound.get("x").unwrap();
        assert_eq!((copy.dtype(), copy.strides()), (copied, [1, 2].as_slice()));
    }
    let complex = zeros(&[2, 3], DType::C64);
    let said = signature.bind_or_copy(&[("x", &complex)]).unwrap_err().to_string();
    assert!(said.ends_with("got a cast of complex64 to float32"), "{said}");
}

#[test]
fn a_preset_is_overridden_in_any_order() {
    let gtmc = || Preset::find("gtmc").unwrap();
    let plain = || FieldSpec::new(DType::F64, Dims::standard(3));
    let spec = plain().preset(gtmc());
    assert_eq!(spec.declared_layout(), Some(&Layout::new(&[0, 2, 1], 3).unwrap()));
    assert_eq!((spec.declared_alignment_size(), spec.declared_preset()), (Some(64), Some(&gtmc())));
    let c_order = Layout::c_order(3);
    for spec in [
        plain().preset(gtmc()).layout(c_order.clone()).alignment_size(16),
        plain().layout(c_order.clone()).alignment_size(16).preset(gtmc()),
    ] {
        assert_eq!((spec.declared_layout(), spec.declared_alignment_size()), (Some(&c_order), Some(16)));
    }
    let any = FieldSpec::new(DType::F64, None).dtypes(&[]).preset(gtmc());
    assert!(any.declared_layout().is_none() && any.declared_alignment_size().is_none());
}

#[test]
fn texts_are_short() {
    let spec = FieldSpec::new(DType::F32, Dims::standard(3)).dtypes(&[DType::F32, DType::F64]).access(Access::Write);
    let spec = spec.shape(&[Size::Any, Size::Fixed(5), Size::parse("n - 1").unwrap()]);
    assert_eq!(spec.to_string(), "Field[float32 | float64, I J=5 K=n-1, w]");
    let signature = Signature::new([("a", spec), ("b", FieldSpec::new(DType::I8, None).dtypes(&[]).optional(true))]);
    let text = "(a: Field[float32 | float64, I J=5 K=n-1, cuda:1, w], b: Field[any, ..., cuda:1, optional])";
    assert_eq!(signature.unwrap().with_device(Device::cuda(1)).to_string(), text);
}

#[test]
fn texts_of_sizes_are_checked() {
    for text in ["", " ", "1", "1I", "+1", "I+", "I*2", "I+1+1", "I++1", "I-x", "I J", "I+4294967296", "I+-1"] {
        let said = Size::parse(text).unwrap_err().to_string();
        assert!(said.starts_with("shape: expected None, an integer, or a size's name"), "{said}");
        assert!(said.ends_with(&format!(", got {text:?}")), "{said}");
    }
    for (text, shown) in [("I", "I"), (" n_1 - 02 ", "n_1-2"), ("é+0", "é"), ("_", "_")] {
        assert_eq!(Size::parse(text).unwrap().to_string(), shown);
    }
}

/// An extent as a field states it, and the extent of an argument.
fn extent() -> impl Strategy<Value = (Size, i64)> {
    let name = (select(vec!["I", "J"]), -2i64..=2);
    let size = prop_oneof![
        Just(Size::Any),
        (0i64..=3).prop_map(Size::Fixed),
        name.prop_map(|(name, offset)| Size::Named { name: name.into(), offset }),
    ];
    (size, 0i64..=3)
}

proptest! {
    #![proptest_config(config(4))]

    #[test]
    fn fields_are_accepted_if_some_sizes_fit_them_all(fields in vec(vec(extent(), 0..=3), 1..=4)) {
        let names: Vec<String> = (0..fields.len()).map(|number| format!("f{number}")).collect();
        let specs = names.iter().zip(&fields).map(|(name, field)| {
            let sizes: Vec<Size> = field.iter().map(|(size, _)| size.clone()).collect();
            (name.as_str(), FieldSpec::new(DType::U8, None).shape(&sizes))
        });
        let signature = Signature::new(specs).unwrap();
        let tensors: Vec<Tensor> =
            fields.iter().map(|field| zeros(&field.iter().map(|(_, got)| *got).collect::<Vec<_>>(), DType::U8)).collect();
        let given: Vec<(&str, &Descriptor)> =
            names.iter().map(String::as_str).zip(tensors.iter().map(Tensor::descriptor)).collect();
        // Extents are 0 to 3 and offsets at least -2, so no size is above 5.
        let fits = |i: i64, j: i64| {
            let value = |name: &str| if name == "I" { i } else { j };
            fields.iter().flatten().all(|(size, got)| match size {
                Size::Any => true,
                Size::Fixed(wanted) => wanted == got,
                Size::Named { name, offset } => value(name) + offset == *got,
                other => panic!("{other:?}"),
            })
        };
        let expected = (0..=5).any(|i| (0..=5).any(|j| fits(i, j)));
        prop_assert_eq!(signature.bind(&given).is_ok(), expected);
    }
}
