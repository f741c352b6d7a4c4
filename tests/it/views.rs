//! Views compared with index arithmetic one position at a time.

#![allow(unsafe_code, reason = "views of memory that does not exist are made to see that they don't panic")]

use dlfield::testing::{Extents, Halo};
use dlfield::{DType, Descriptor, Device, Dims, Index, Metadata, Owner, Spec, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::elements::number_all;
use crate::managed::check_exports;
use crate::model::Model;
use crate::runner::{alignment_statement_is_true, check_memory};
use crate::strategies::{config, edgy, spec};

/// Raw numbers that [`entry`] turns into an index once the shape is known.
type Raw = (u8, u16, u16, i64);

#[derive(Clone, Debug)]
enum Op {
    View(Vec<Raw>),
    Transpose(Vec<u8>),
    Domain,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => vec((0u8..5, any::<u16>(), any::<u16>(), -3i64..=3), 0..5).prop_map(Op::View),
        1 => vec(any::<u8>(), 4).prop_map(Op::Transpose),
        1 => Just(Op::Domain),
    ]
}

/// A legal entry for a dimension.
fn entry((kind, first, second, step): Raw, extent: i64) -> Index {
    let (first, second) = (i64::from(first), i64::from(second));
    match kind {
        0 => Index::All,
        _ if extent == 0 => Index::Range { start: first, len: 0, step: if step == 0 { 1 } else { step } },
        1 => Index::At(first % (2 * extent) - extent),
        _ => {
            let step = if step == 0 || kind == 2 { 1 } else { step };
            let start = first % extent;
            let room = if step > 0 { (extent - 1 - start) / step } else { start / -step } + 1;
            Index::Range { start, len: second % (room + 1), step }
        }
    }
}

fn apply(op: &Op, tensor: &Tensor, model: &Model) -> (Tensor, Model) {
    match op {
        Op::Domain => (tensor.domain_view(), model.domain()),
        Op::View(raw) => {
            let index: Vec<Index> = raw.iter().zip(&model.shape).map(|(raw, extent)| entry(*raw, *extent)).collect();
            (tensor.view(&index).unwrap(), model.view(&index).unwrap())
        }
        Op::Transpose(keys) => {
            let mut axes: Vec<usize> = (0..model.shape.len()).collect();
            axes.sort_by_key(|axis| keys[*axis]);
            (tensor.transpose(&axes).unwrap(), model.transpose(&axes))
        }
    }
}

fn wild() -> impl Strategy<Value = Index> {
    prop_oneof![
        Just(Index::All),
        edgy().prop_map(Index::At),
        (edgy(), edgy(), edgy()).prop_map(|(start, len, step)| Index::Range { start, len, step }),
        (edgy(), edgy()).prop_map(|(start, step)| Index::Range { start, len: 0, step }),
        (0i64..4, edgy()).prop_map(|(start, step)| Index::Range { start, len: 1, step }),
    ]
}

proptest! {
    #![proptest_config(config(6))]

    #[test]
    fn views_of_views_are_index_arithmetic(spec in spec(Just(DType::U32)), ops in vec(op(), 1..5)) {
        let mut tensor = check_memory(&spec);
        number_all(&tensor);
        let mut model = Model::of(&tensor);
        for op in &ops {
            (tensor, model) = apply(op, &tensor, &model);
            model.check(&tensor);
        }
        let copy = tensor.copy().unwrap();
        model.check(&copy);
        prop_assert_eq!(copy.padding(), tensor.padding());
        prop_assert_eq!(copy.layout(), tensor.layout());
        check_exports(&tensor);
    }

    #[test]
    fn any_index_is_a_view_or_an_error(spec in spec(Just(DType::U16)), index in vec(wild(), 0..6)) {
        let tensor = check_memory(&spec);
        number_all(&tensor);
        let model = Model::of(&tensor).view(&index);
        let view = tensor.view(&index);
        prop_assert_eq!(view.is_ok(), model.is_some(), "{:?}", index);
        if let (Ok(view), Some(model)) = (view, model) {
            model.check(&view);
        }
    }

    /// Strides of empty fields may be anything: no access uses them, but calculations do.
    #[test]
    fn views_of_what_others_made_do_not_panic(
        shape in vec(prop_oneof![Just(0i64), Just(1), Just(2), edgy()], 0..4),
        strides in vec(edgy(), 4),
        index in vec(wild(), 0..4),
    ) {
        let strides = Extents::from_slice(&strides[..shape.len()]);
        let start = std::ptr::without_provenance_mut(1 << 40);
        let field = Descriptor::new(start, Device::CPU, DType::F64, false, &shape, &strides);
        if let Ok(field) = field {
            // SAFETY: no element is ever accessed here.
            let tensor = unsafe { Tensor::from_parts(field, Owner::foreign(())) };
            if let Ok(view) = tensor.view(&index) {
                alignment_statement_is_true(&view);
            }
        }
    }
}

#[test]
fn lists_that_are_no_permutation_are_no_axes() {
    let tensor = Tensor::zeros(&Spec::new(&[2, 3, 4], DType::F64)).unwrap();
    for axes in [&[0, 1][..], &[0, 1, 1], &[0, 1, 3], &[0, 1, 2, 2], &[]] {
        assert!(tensor.transpose(axes).is_err(), "{axes:?}");
    }
    assert_eq!(tensor.axis("K").unwrap(), 2);
    assert!(tensor.axis("0").is_err() && tensor.axis("").is_err());
}

#[test]
fn labels_and_halos_can_be_replaced() {
    let tensor = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    let (dims, halo) = (Dims::parse(["K", "cell"]).unwrap(), Halo::from_slice(&[(1, 1), (0, 2)]));
    let mut other = tensor.clone();
    other.relabel(Metadata::default().with_dims(dims.clone()).with_halo(halo.as_slice())).unwrap();
    assert_eq!((other.dims(), other.halo(), other.origin().to_vec()), (dims, halo.as_slice(), vec![1, 0]));
    assert_eq!(other.domain_view().descriptor().shape(), [2, 3]);
    assert_eq!(other.domain_view().dims().to_string(), "K, cell");
    assert!(tensor.clone().relabel(Metadata::default().with_dims(Dims::standard(3))).is_err());
    assert!(tensor.clone().relabel(Metadata::default().with_origin([5, 0])).is_err());
    assert!(tensor.clone().relabel(Metadata::default().with_halo([(3, 2), (0, 0)])).is_err());
}

#[test]
fn a_halo_is_overridden() {
    let stated = Spec::new(&[4, 5], DType::F64).dims(Dims::parse(["K", "I"]).unwrap()).halo(&[(1, 0), (0, 1)]);
    let field = Tensor::zeros(&stated.origin(&[2, 2])).unwrap();
    let (view, clone, before) = (field.domain_view(), field.clone(), field.descriptor().halo().unwrap());
    for lower in 0..40 {
        field.set_halo(&[(lower % 4, 1), (0, lower % 3)]).unwrap();
        assert_eq!(field.halo(), [(lower % 4, 1), (0, lower % 3)]);
        assert_eq!(field.descriptor().origin(), None);
        assert_eq!(field.origin(), [lower % 4, 0]);
        assert_eq!(field.clone().halo(), field.halo());
    }
    // Views and clones keep theirs.
    assert_eq!(before, [(1, 0), (0, 1)]);
    assert_eq!((view.origin().as_slice(), clone.origin().as_slice()), (&[1, 2][..], &[2, 2][..]));
    assert_eq!((field.dims().to_string(), field.aligned_index()), ("K, I".to_owned(), &[1, 0][..]));
    for wrong in [&[(1, 1)][..], &[(3, 2), (0, 0)], &[(-1, 0), (0, 0)]] {
        let known = field.halo();
        assert!(field.set_halo(wrong).is_err());
        assert_eq!(field.halo(), known);
    }
    // Labels that are set by the only owner start from this state.
    let mut field = field;
    field.relabel(Metadata::default().with_dims(Dims::parse(["I", "J"]).unwrap())).unwrap();
    assert_eq!((field.dims().to_string(), field.halo()), ("I, J".to_owned(), &[(3, 1), (0, 0)][..]));
}

#[test]
fn a_halo_is_overridden_by_many_threads() {
    let field = Tensor::zeros(&Spec::new(&[40], DType::U8)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let field = &field;
            scope.spawn(move || {
                for width in 0..40 {
                    field.set_halo(&[((width + thread) % 20, thread)]).unwrap();
                    let held = field.descriptor().halo().unwrap();
                    let [(lower, upper)] = *held else { panic!("{held:?}") };
                    assert!(lower < 20 && upper < 4);
                    field.set_halo(&[(width % 7, 0)]).unwrap();
                    assert_eq!(held, [(lower, upper)]);
                }
            });
        }
    });
}
