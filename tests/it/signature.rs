//! `Signature` without Python: results, errors, and the common domain.

use dlfield::{
    Access, DType, Descriptor, Device, Dim, Dims, Error, FieldSpec, Index, Layout, Signature, SignatureErrorKind, Size,
    Spec, Tensor,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index as Pick, select};

use crate::model::texts;
use crate::naive::{indices, offset, size};
use crate::strategies::{config, halo_within, permutation};

fn dims(labels: &str) -> Dims {
    Dims::parse(labels.chars().map(String::from)).unwrap()
}

pub(crate) fn wanted(labels: &str) -> FieldSpec {
    FieldSpec::new(DType::F64, dims(labels))
}

pub(crate) fn field(shape: &[i64], labels: &str) -> Tensor {
    Tensor::zeros(&Spec::new(shape, DType::F64).dims(dims(labels))).unwrap()
}

fn one(spec: FieldSpec) -> Signature {
    Signature::new([("x", spec)]).unwrap()
}

/// Returns the error of a call with one field.
pub fn refused(spec: FieldSpec, found: &Descriptor) -> String {
    let error = one(spec).bind(&[("x", found)]).unwrap_err();
    assert!(error.to_string().starts_with("field \"x\": "), "{error:?}");
    error.to_string()
}

#[test]
fn a_signature_says_what_it_was_given() {
    let spec = wanted("KI").access(Access::ReadWrite).alignment_size(32).shape(&[None, Some(4)]).optional(true);
    let spec = spec.layout(Layout::f_order(2));
    let signature = Signature::new([("b", spec), ("a", wanted("I"))]).unwrap().with_device(Device::cuda(1));
    let names: Vec<&str> = signature.fields().iter().map(|(name, _)| &**name).collect();
    assert_eq!((names, signature.device()), (vec!["b", "a"], Device::cuda(1)));
    let (spec, plain) = (&signature.fields()[0].1, &signature.fields()[1].1);
    assert_eq!((spec.dtype(), spec.dims().unwrap().to_string()), (Some(DType::F64), "K, I".to_owned()));
    assert_eq!((spec.declared_access(), spec.declared_alignment_size()), (Access::ReadWrite, Some(32)));
    assert_eq!(spec.declared_shape(), Some([Size::Any, Size::Fixed(4)].as_slice()));
    assert_eq!(spec.declared_layout(), Some(&Layout::f_order(2)));
    assert!(spec.is_optional() && spec.declared_access().writes());
    assert_eq!((plain.declared_access(), plain.declared_alignment_size()), (Access::Read, Some(1)));
    assert!(plain.declared_shape().is_none() && plain.declared_layout().is_none() && !plain.is_optional());
    assert!(!plain.declared_access().writes() && Access::Write.writes());
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let wrong = [
        (wanted("IJ").alignment_size(0), "field \"x\": alignment_size: expected 1 byte or more, got 0"),
        (
            wanted("IJ").alignment_size(i64::MIN),
            "field \"x\": alignment_size: expected 1 byte or more, got -9223372036854775808",
        ),
        (
            wanted("IJ").layout(Layout::c_order(3)),
            "field \"x\": layout: expected one entry for each dimension, got 3 entries for 2",
        ),
        (wanted("IJ").shape(&[None]), "field \"x\": shape: expected one entry for each dimension, got 1 entry for 2"),
        (wanted("IJ").shape(&[None, Some(-1)]), "field \"x\": shape: expected extents of 0 or more, got -1 at axis 1"),
    ];
    for (spec, message) in wrong {
        assert!(spec.check().is_err());
        let error = Signature::new([("x", spec)]).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    let twice = Signature::new([("x", wanted("I")), ("x", wanted("J"))]).unwrap_err();
    assert_eq!(twice.to_string(), "field \"x\": named twice; name each field once");
}

#[test]
fn names_are_checked() {
    let signature = Signature::new([("a", wanted("I")), ("b", wanted("I").optional(true))]).unwrap();
    let x = field(&[3], "I");
    let x = x.descriptor();
    let said = |given: &[(&str, &Descriptor)]| signature.bind(given).unwrap_err().to_string();
    assert_eq!(said(&[]), "field \"a\": missing; a field may be left out if its FieldSpec says optional");
    assert_eq!(said(&[("b", x)]), "field \"a\": missing; a field may be left out if its FieldSpec says optional");
    assert_eq!(said(&[("a", x), ("c", x)]), "field \"c\": unexpected; the fields are a, b");
    assert_eq!(said(&[("a", x), ("b", x), ("a", x)]), "field \"a\": named twice; name each field once");
    let bound = signature.bind(&[("a", x)]).unwrap();
    assert!(bound.get("b").is_none() && bound.get("c").is_none() && bound.slow().is_empty());
    assert_eq!(bound.get("a").unwrap().ptr(), x.ptr());
    let none = Signature::new::<&str>([]).unwrap();
    assert_eq!(none.bind(&[]).unwrap().domain(), (vec![], vec![]));
}

#[test]
fn what_does_not_fit_is_named() {
    let x = field(&[3, 4], "IJ");
    let x = x.descriptor();
    let plain = Descriptor::new(x.ptr(), Device::CPU, DType::F64, false, &[3, 4], &[4, 1]).unwrap();
    let other = FieldSpec::new(DType::F32, dims("IJ"));
    assert_eq!(refused(other, x), "field \"x\": dtype: expected float32, got float64");
    assert_eq!(refused(wanted("IK"), x), "field \"x\": dims: expected (I, K), in any order, got (I, J)");
    assert_eq!(refused(wanted("IJK"), x), "field \"x\": dims: expected (I, J, K), in any order, got (I, J)");
    let unlabelled =
        "field \"x\": dims: expected (I), in this order, or labelled in any order, got 2 dimensions without labels";
    assert_eq!(refused(wanted("I"), &plain), unlabelled);
    let extent = "field \"x\": shape: expected 5 points in dimension \"J\", got 4";
    assert_eq!(refused(wanted("JI").shape(&[Some(5), None]), x), extent);
    let readonly = x.clone().into_readonly();
    assert!(refused(wanted("IJ").access(Access::Write), &readonly).contains("access: the memory is read-only"));
    let shared = Descriptor::new(x.ptr(), Device::CPU, DType::F64, false, &[3, 4], &[1, 1]).unwrap();
    let said = refused(wanted("IJ").access(Access::ReadWrite), &shared);
    assert!(
        said.contains(
            "got strides of (1, 1) elements for shape (3, 4), by which elements may share memory; pass a copy"
        ),
        "{said}"
    );
    assert!(one(wanted("IJ")).bind(&[("x", &shared)]).is_ok());
    let elsewhere = Descriptor::new(x.ptr(), Device::cuda(0), DType::F64, false, &[3, 4], &[4, 1]).unwrap();
    assert!(refused(wanted("IJ"), &elsewhere).contains("cuda:0"));
    let bound = one(wanted("IJ")).with_device(Device::cuda(0));
    assert!(bound.bind(&[("x", &elsewhere)]).is_ok() && bound.bind(&[("x", x)]).is_err());
}

#[test]
fn without_dims_a_field_keeps_its_order() {
    let x = field(&[3, 4], "KI");
    let any = one(FieldSpec::new(DType::F64, None));
    let bound = any.bind(&[("x", x.descriptor())]).unwrap();
    let found = bound.get("x").unwrap();
    assert_eq!((found.shape(), found.origin()), ([3, 4].as_slice(), Some([0, 0].as_slice())));
    assert_eq!(bound.domain(), (vec![Dim::I, Dim::K], vec![4, 3]));
    let plain = Descriptor::new(x.descriptor().ptr(), Device::CPU, DType::F64, false, &[12], &[1]).unwrap();
    let bound = any.bind(&[("x", &plain)]).unwrap();
    assert!(bound.get("x").unwrap().dims().is_none() && bound.domain().0.is_empty());
    let flat = FieldSpec::new(DType::F64, None).layout(Layout::c_order(1));
    assert_eq!(refused(flat, x.descriptor()), "field \"x\": ndim: expected 1 dimension, got 2 of shape (3, 4)");
}

#[test]
fn the_first_compute_point_is_what_is_aligned() {
    let halo = [(0, 0), (1, 1)];
    let spec = Spec::new(&[4, 6], DType::F64).dims(dims("IJ")).halo(&halo).alignment_size(64);
    let inner = Tensor::zeros(&spec).unwrap();
    assert!(!inner.descriptor().ptr().addr().is_multiple_of(64));
    let aligned = one(wanted("JI").alignment_size(64));
    assert!(aligned.bind(&[("x", inner.descriptor())]).is_ok());
    let moved = inner.descriptor().clone().with_origin(Box::new([0, 0])).unwrap();
    let said = refused(wanted("IJ").alignment_size(64), &moved);
    assert!(said.starts_with("field \"x\": ") && said.contains("multiple of 64"), "{said}");
    // Without elements nothing has to be aligned.
    let none = inner.view(&[Index::Range { start: 1, len: 0, step: 1 }]).unwrap();
    assert!(aligned.bind(&[("x", none.descriptor())]).is_ok());
}

#[test]
fn written_fields_share_memory_with_no_other() {
    let access = |a, b| Signature::new([("a", wanted("I").access(a)), ("b", wanted("I").access(b))]).unwrap();
    let all = field(&[10], "I");
    let part = |start, len, step| all.view(&[Index::Range { start, len, step }]).unwrap();
    let (even, odd, low) = (part(0, 5, 2), part(1, 5, 2), part(0, 5, 1));
    let bind = |signature: &Signature, a: &Tensor, b: &Tensor| {
        signature.bind(&[("b", b.descriptor()), ("a", a.descriptor())]).map(|_| ())
    };
    let fine = [(Access::Read, Access::Read, &all, &all), (Access::Write, Access::ReadWrite, &even, &odd)];
    for (a, b, first, second) in fine {
        bind(&access(a, b), first, second).unwrap();
    }
    for (a, b, written, other) in [
        (Access::Read, Access::Write, "b", "a"),
        (Access::ReadWrite, Access::Read, "a", "b"),
        (Access::Write, Access::Write, "a", "b"),
    ] {
        let said = bind(&access(a, b), &even, &low).unwrap_err().to_string();
        let wanted = format!("field {written:?}: it is written, and shares memory with field {other:?}; ");
        assert!(said.starts_with(&wanted), "{said}");
    }
}

#[test]
fn a_slow_layout_is_reported() {
    let signature = Signature::new([
        ("a", wanted("IJ").layout(Layout::f_order(2))),
        ("b", wanted("IJ").layout(Layout::c_order(2))),
        ("c", wanted("IJ")),
    ]);
    let x = field(&[3, 4], "IJ");
    let x = x.descriptor();
    let signature = signature.unwrap();
    let bound = signature.bind(&[("a", x), ("b", x), ("c", x)]).unwrap();
    assert_eq!(bound.slow(), [Box::from("a")]);
    let turned = field(&[4, 3], "JI");
    let bound = signature.bind(&[("a", turned.descriptor()), ("b", turned.descriptor()), ("c", x)]).unwrap();
    assert_eq!(bound.slow(), [Box::from("b")]);
    // These dimensions fetch nothing more.
    for (shape, strides) in [([3, 1], [1, 7]), ([3, 4], [8, 0]), ([3, 4], [0, 8]), ([0, 4], [8, 1])] {
        let flat = Descriptor::new(x.ptr(), Device::CPU, DType::F64, false, &shape, &strides).unwrap();
        assert!(signature.bind(&[("a", &flat), ("b", &flat), ("c", &flat)]).unwrap().slow().is_empty());
    }
}

/// A field with labels, halo and origin, in any order of strides.
fn labelled() -> impl Strategy<Value = Tensor> {
    let labels = Just(vec!["I", "J", "K", "0", "cell"]).prop_shuffle();
    (0usize..=4, labels).prop_flat_map(|(ndim, labels)| {
        let picks = || vec((any::<Pick>(), any::<Pick>()), ndim);
        let layout = permutation(ndim).prop_map(move |ranks| Layout::new(&ranks, ndim).unwrap());
        let shape = vec(prop_oneof![1 => Just(0i64), 9 => 1i64..=5], ndim);
        (shape, layout, picks(), picks()).prop_map(move |(shape, layout, halo, origin)| {
            let origin: Vec<i64> = halo_within(&shape, &origin).iter().map(|(lower, _)| *lower).collect();
            let spec = Spec::new(&shape, DType::F64).dims(Dims::parse(&labels[..shape.len()]).unwrap()).layout(layout);
            Tensor::zeros(&spec.halo(&halo_within(&shape, &halo)).origin(&origin)).unwrap()
        })
    })
}

/// Returns a field's descriptor with all that the field says about its dimensions.
fn stated(field: &Tensor) -> Descriptor {
    let stated = field.descriptor().clone().with_origin(field.origin().as_slice().into()).unwrap();
    stated.with_dims(field.dims()).unwrap().with_halo(field.halo().into()).unwrap()
}

/// Returns the address of an element by the labels of its index, in any order.
fn address(field: &Descriptor, place: &[(String, i64)]) -> i128 {
    let at = |label: String| place.iter().find(|(known, _)| *known == label).unwrap().1;
    let index: Vec<i64> = field.dims().unwrap().iter().map(|dim| at(dim.to_string())).collect();
    i128::try_from(field.ptr().addr()).unwrap() + offset(&index, field.strides(), field.itemsize())
}

fn labels(field: &Descriptor) -> Vec<String> {
    texts(field.dims().unwrap())
}

/// Returns the points of each dimension that all fields have, counted one by one.
fn counted(fields: &[Tensor]) -> Vec<(String, i64)> {
    let mut all: Vec<(String, i64)> = Vec::new();
    for tensor in fields {
        let dims = tensor.dims();
        for (axis, dim) in dims.iter().enumerate().filter(|(_, dim)| dim.to_string().parse::<u32>().is_err()) {
            let extent = tensor.descriptor().shape()[axis];
            let inside = tensor.origin()[axis]..extent - tensor.halo()[axis].1;
            let points = (0..extent).filter(|at| inside.contains(at)).count();
            let (label, points) = (dim.to_string(), i64::try_from(points).unwrap());
            match all.iter_mut().find(|(known, _)| *known == label) {
                Some((_, least)) => *least = points.min(*least),
                None => all.push((label, points)),
            }
        }
    }
    // I, J and K sort before the other labels.
    all.sort();
    all
}

proptest! {
    #![proptest_config(config(4))]

    #[test]
    fn any_order_of_dims_has_the_same_addresses(tensor in labelled(), shuffle in vec(any::<u32>(), 4)) {
        let field = stated(&tensor);
        let mut order: Vec<(u32, String)> = shuffle.into_iter().zip(labels(&field)).collect();
        order.sort();
        let order: Vec<String> = order.into_iter().map(|(_, label)| label).collect();
        let spec = FieldSpec::new(DType::F64, Dims::parse(&order).unwrap()).access(Access::ReadWrite);
        let signature = one(spec);
        let bound = signature.bind(&[("x", &field)]).unwrap();
        let found = bound.get("x").unwrap();
        prop_assert_eq!(labels(found), order);
        for index in indices(field.shape()) {
            let place: Vec<(String, i64)> = labels(&field).into_iter().zip(index).collect();
            prop_assert_eq!(address(found, &place), address(&field, &place));
        }
        let by_label = |field: &Descriptor| {
            let (origin, halo) = (field.origin().unwrap(), field.halo().unwrap());
            let numbers = field.shape().iter().zip(origin).zip(halo).map(|((extent, at), ghost)| (*extent, *at, *ghost));
            let mut all: Vec<(String, _)> = labels(field).into_iter().zip(numbers).collect();
            all.sort();
            all
        };
        prop_assert_eq!(by_label(found), by_label(&field));
    }

    #[test]
    fn the_domain_is_what_all_fields_have_points_for(fields in vec(labelled(), 0..4)) {
        let names: Vec<String> = (0..fields.len()).map(|number| format!("f{number}")).collect();
        let specs = names.iter().zip(&fields).map(|(name, field)| (name.as_str(), FieldSpec::new(DType::F64, field.dims())));
        let signature = Signature::new(specs).unwrap();
        let stated: Vec<Descriptor> = fields.iter().map(stated).collect();
        let given: Vec<(&str, &Descriptor)> = names.iter().map(String::as_str).zip(&stated).collect();
        let bound = signature.bind(&given).unwrap();
        let (dims, extents) = bound.domain();
        let found: Vec<(String, i64)> = dims.iter().map(ToString::to_string).zip(extents).collect();
        prop_assert_eq!(found, counted(&fields));
    }

    /// Fields whose elements share bytes are rejected if written; fields cut from an array never are.
    #[test]
    fn elements_that_share_bytes_are_not_written(
        axes in vec((prop_oneof![1 => Just(0i64), 9 => 1i64..=4], -12i64..=12), 0..=3),
        access in select(vec![Access::Write, Access::ReadWrite]),
    ) {
        let (shape, strides): (Vec<i64>, Vec<i64>) = axes.into_iter().unzip();
        let memory = vec![0f64; 200];
        let middle = memory[100..].as_ptr().cast::<u8>().cast_mut();
        let found = Descriptor::new(middle, Device::CPU, DType::F64, false, &shape, &strides).unwrap();
        let mut places: Vec<i128> = indices(&shape).iter().map(|index| offset(index, &strides, 8)).collect();
        let count = places.len();
        places.sort_unstable();
        places.dedup();
        let apart = places.len() == count;
        let signature = one(FieldSpec::new(DType::F64, Dims::standard(size(shape.len()))).access(access));
        let bound = signature.bind(&[("x", &found)]);
        prop_assert!(apart || bound.is_err());
        // The rule for accepted ones: each stride reaches past all smaller ones.
        let mut steps: Vec<(i64, i64)> = shape.iter().zip(&strides).filter(|(extent, _)| **extent > 1).map(|(extent, step)| (step.abs(), *extent)).collect();
        steps.sort_unstable();
        let mut reach = 1;
        let nested = steps.iter().all(|(step, extent)| {
            let nested = *step >= reach;
            reach += step * (extent - 1);
            nested
        });
        prop_assert_eq!(bound.is_ok(), nested || shape.contains(&0));
    }
}

#[test]
fn memory_fits_a_device_that_can_access_it() {
    let devices = ["cpu", "cuda_host", "cuda_managed", "cuda:0", "cuda:1", "rocm_host", "rocm:0"];
    let fits = |memory: &str, user: &str| match (memory, user) {
        (memory, user) if memory == user => true,
        ("cuda_host" | "cuda_managed", "cpu" | "cuda:0" | "cuda:1") | ("rocm_host", "cpu" | "rocm:0") => true,
        _ => false,
    };
    let mut elements = [0f64; 3];
    for memory in devices {
        let device = memory.parse().unwrap();
        let field = Descriptor::new(elements.as_mut_ptr().cast(), device, DType::F64, false, &[3], &[1]).unwrap();
        for user in devices {
            let signature = one(wanted("I")).with_device(user.parse().unwrap());
            let bound = signature.bind(&[("x", &field)]);
            assert_eq!(bound.is_ok(), fits(memory, user), "{memory} for {user}");
            if let Err(error) = bound {
                let wanted = format!("field \"x\": device: expected memory on {user}, got memory on {memory}");
                assert!(error.to_string().starts_with(&wanted), "{error}");
            }
        }
    }
}

/// The first pair of fields in the signature's order of which the first is written and the other shares its memory, by comparing
/// all pairs. A pair of written fields counts once.
fn first_overlap(fields: &[(Descriptor, bool)]) -> Option<(usize, usize)> {
    let all = || 0..fields.len();
    let pairs = all().filter(|place| fields[*place].1).flat_map(|place| all().map(move |other| (place, other)));
    let mut counted = pairs.filter(|(place, other)| place != other && (place < other || !fields[*other].1));
    counted.find(|(place, other)| fields[*place].0.overlaps(&fields[*other].0))
}

proptest! {
    #![proptest_config(config(1))]

    /// The error names the pair that comparing all pairs finds first, in every order of the fields.
    #[test]
    fn an_overlap_is_found_and_named_as_by_comparing_all_pairs(
        fields in vec((0usize..3000, 0i64..40, select(vec![1i64, 2, -1, -3]), any::<bool>()), 1..40),
        turn in any::<Pick>(),
    ) {
        let field = |(start, extent, stride, written): (usize, i64, i64, bool)| {
            let start = std::ptr::without_provenance_mut((1 << 40) + start);
            (Descriptor::new(start, Device::CPU, DType::U8, false, &[extent], &[stride]).unwrap(), written)
        };
        let fields: Vec<(Descriptor, bool)> = fields.into_iter().map(field).collect();
        let names: Vec<String> = (0..fields.len()).map(|place| format!("f{place}")).collect();
        let specs = fields.iter().zip(&names).map(|((_, written), name)| {
            let access = if *written { Access::ReadWrite } else { Access::Read };
            (name.as_str(), FieldSpec::new(DType::U8, None).access(access))
        });
        let signature = Signature::new(specs).unwrap();
        let mut given: Vec<_> = names.iter().zip(&fields).map(|(name, (field, _))| (name.as_str(), field)).collect();
        given.rotate_left(turn.index(fields.len()));
        let found = match signature.bind(&given) {
            Ok(bound) => {
                prop_assert!(names.iter().all(|name| bound.get(name).is_some()));
                None
            }
            Err(Error::Signature(error)) if error.kind() == SignatureErrorKind::Overlap => Some(error.to_string()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let expected = first_overlap(&fields).map(|(place, other)| {
            let (field, other) = (&names[place], &names[other]);
            let fix = "pass a copy of one, or set allow_overlap";
            format!("field {field:?}: it is written, and shares memory with field {other:?}; {fix}")
        });
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn three_fields_of_the_same_elements_share_one_copy() {
    let x = Tensor::zeros(&Spec::new(&[2], DType::F32)).unwrap();
    let spec = |access| FieldSpec::new(DType::F64, Dims::standard(1)).access(access);
    for written in 0..3 {
        let access = |place| if place == written { Access::ReadWrite } else { Access::Read };
        let signature =
            Signature::new(["a", "b", "c"].into_iter().enumerate().map(|(place, name)| (name, spec(access(place)))));
        let signature = signature.unwrap().allow_overlap(true);
        let bound = signature.bind_or_copy(&[("a", &x), ("b", &x), ("c", &x)]).unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| bound.get(name).unwrap().ptr());
        assert!(a == b && b == c, "{written} is written");
    }
}
