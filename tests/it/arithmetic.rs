//! LabelledShape results compared with a naive oracle: one dimension and one element at a time.

use std::collections::HashMap;

use dlfield::arithmetic::{LabelledShape, check_halos};
use dlfield::{DType, Dim, Dims, Index, Spec, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::model::texts;
use crate::naive::indices;
use crate::runner::alignment_statement_is_true;
use crate::strategies::{config, permutation, spec};

const LABELS: [&str; 7] = ["I", "J", "K", "cell", "edge", "0", "1"];
const SIZES: [i64; 7] = [2, 3, 4, 2, 3, 2, 5];

/// A field with some of the labels in any order, each with its own extent or 1, in any layout.
fn operand() -> impl Strategy<Value = Tensor> {
    let some = subsequence((0..LABELS.len()).collect::<Vec<_>>(), 0..=4).prop_shuffle();
    some.prop_flat_map(|labels| {
        let ndim = labels.len();
        (Just(labels), vec(any::<bool>(), ndim), permutation(ndim), 0u32..8)
    })
    .prop_map(|(labels, ones, layout, bits)| {
        let sizes: Vec<i64> = labels.iter().zip(ones).map(|(label, one)| if one { 1 } else { SIZES[*label] }).collect();
        let dims = Dims::parse(labels.iter().map(|label| LABELS[*label])).unwrap();
        let layout = dlfield::Layout::new(&layout, sizes.len()).unwrap();
        Tensor::zeros(&Spec::new(&sizes, DType::F32).dims(dims).layout(layout).alignment_size(1 << bits)).unwrap()
    })
}

/// A small field with any metadata, or a slice of one.
fn field_or_slice() -> impl Strategy<Value = Tensor> {
    (spec(Just(DType::U8)), vec((0i64..2, 0i64..2), 4), any::<bool>()).prop_map(|(spec, cuts, slices)| {
        let field = Tensor::zeros(&spec).unwrap();
        let range = |(extent, (below, above)): (&i64, &(i64, i64))| match extent - below - above {
            len if slices && len > 0 => Index::Range { start: *below, len, step: 1 },
            _ => Index::All,
        };
        let index: Vec<Index> = field.descriptor().shape().iter().zip(&cuts).map(range).collect();
        field.view(&index).unwrap()
    })
}

/// Returns whether a field has a halo or an origin that no slice has cut.
fn states_domain(field: &Tensor) -> bool {
    let descriptor = field.descriptor();
    (descriptor.halo().is_some() || descriptor.origin().is_some()) && !descriptor.halo_is_cut()
}

/// Returns whether two fields have halos or origins that differ along a dimension that they share.
fn domains_differ(left: &Tensor, right: &Tensor) -> bool {
    let (of_left, of_right) = (texts(&left.dims()), texts(&right.dims()));
    let differ = |(axis, label): (usize, &String)| {
        let Some(other) = of_right.iter().position(|known| known == label) else { return false };
        let extent = left.descriptor().shape()[axis];
        let have_halos = left.descriptor().halo().is_some() && right.descriptor().halo().is_some();
        extent != 1
            && extent == right.descriptor().shape()[other]
            && (left.origin()[axis] != right.origin()[other] || have_halos && left.halo()[axis] != right.halo()[other])
    };
    states_domain(left) && states_domain(right) && of_left.iter().enumerate().any(differ)
}

/// Returns the labels of a tensor by decreasing stride.
fn by_stride(tensor: &Tensor) -> Vec<String> {
    let labels = texts(&tensor.dims());
    tensor.layout().axes().map(|axis| labels[axis].clone()).collect()
}

/// Returns whether the labels of `some` have the same order in `all`.
fn keeps_order(some: &[String], all: &[String]) -> bool {
    let kept: Vec<&String> = all.iter().filter(|label| some.contains(label)).collect();
    kept.into_iter().eq(some)
}

fn standard_rank(label: &str) -> usize {
    // The two users' labels have equal rank.
    [0, 1, 2, 3, 3, 4, 5][LABELS.iter().position(|known| *known == label).unwrap()]
}

proptest! {
    #![proptest_config(config(2))]

    #[test]
    fn results_have_every_label_once_in_its_place(operands in vec(operand(), 1..4)) {
        let labelled: Vec<LabelledShape> = operands.iter().map(LabelledShape::of).collect();
        let result = LabelledShape::broadcast(&labelled).unwrap();
        let mut sizes = HashMap::new();
        for one in &labelled {
            for (label, size) in one.dims().iter().zip(one.shape()) {
                let known = sizes.entry(label.to_string()).or_insert(*size);
                *known = (*known).max(*size);
            }
        }
        let found = texts(result.dims());
        prop_assert_eq!(found.len(), sizes.len());
        prop_assert!(found.iter().zip(result.shape()).all(|(label, size)| sizes[label] == *size));
        let first = labelled.iter().map(|one| texts(one.dims())).find(|labels| !labels.is_empty()).unwrap_or_default();
        prop_assert!(keeps_order(&first, &found));
        // An added label precedes all labels of the first operand that come later in the standard order, as far as it can.
        for (at, label) in found.iter().enumerate().filter(|(_, label)| !first.contains(label)) {
            let before = found[..at].iter().filter(|other| first.contains(other));
            let after = first.iter().position(|other| standard_rank(other) > standard_rank(label));
            prop_assert_eq!(before.count(), after.unwrap_or(first.len()));
        }
    }

    #[test]
    fn results_are_laid_out_as_the_largest_input(operands in vec(operand(), 1..4)) {
        let labelled: Vec<LabelledShape> = operands.iter().map(LabelledShape::of).collect();
        let result = LabelledShape::broadcast(&labelled).unwrap();
        let inputs: Vec<&Tensor> = operands.iter().collect();
        let made = Tensor::zeros(&result.spec(DType::F64, &inputs).unwrap()).unwrap();
        prop_assert_eq!(made.descriptor().shape(), result.shape());
        prop_assert_eq!(&made.dims(), result.dims());
        // The first one of the largest, of which each element is its own here.
        let with_dims = operands.iter().rev().filter(|one| one.descriptor().ndim() > 0);
        let largest = with_dims.max_by_key(|one| one.descriptor().size()).unwrap_or(&operands[0]);
        prop_assert!(keeps_order(&by_stride(largest), &by_stride(&made)));
        for input in &operands {
            prop_assert_eq!(made.alignment_size() % input.alignment_size(), 0);
        }
        alignment_statement_is_true(&made);
    }

    #[test]
    fn margins_are_the_largest_that_are_stated_and_always_allowed(left in field_or_slice(), right in field_or_slice()) {
        let Ok(result) = LabelledShape::broadcast(&[LabelledShape::of(&left), LabelledShape::of(&right)]) else { return Ok(()) };
        let spec = result.spec(DType::U8, &[&left, &right]);
        prop_assert_eq!(check_halos(&[&left, &right]).is_err(), domains_differ(&left, &right));
        if domains_differ(&left, &right) {
            let refused = spec.is_err_and(|error| error.argument() != "shape");
            prop_assert!(refused);
            return Ok(());
        }
        let made = Tensor::zeros(&spec.unwrap()).unwrap();
        let cut = [&left, &right].iter().any(|input| input.descriptor().halo_is_cut());
        let mut all_stated = true;
        for (at, label) in made.dims().iter().enumerate() {
            let extent = made.descriptor().shape()[at];
            let mut largest = (0, 0, 0);
            let having = [&left, &right].into_iter().filter_map(|input| {
                let axis = input.dims().iter().position(|known| known == label)?;
                (input.descriptor().shape()[axis] == extent).then_some((input, axis))
            });
            let stated = having.clone().any(|(input, _)| states_domain(input));
            for (input, axis) in having {
                if !stated || !input.descriptor().halo_is_cut() {
                    largest.0 = largest.0.max(input.halo()[axis].0);
                    largest.1 = largest.1.max(input.origin()[axis]);
                }
                largest.2 = largest.2.max(input.aligned_index()[axis]);
            }
            prop_assert_eq!((made.halo()[at].0, made.origin()[at], made.aligned_index()[at]), largest);
            all_stated &= stated;
        }
        prop_assert_eq!(made.descriptor().halo_is_cut(), cut && !all_stated);
    }

    #[test]
    fn broadcast_views_have_the_element_of_their_labels(field in operand(), turn in permutation(7), size in 1i64..4) {
        let dims = Dims::parse(turn.iter().map(|at| LABELS[usize::try_from(*at).unwrap()])).unwrap();
        let own = texts(&field.dims());
        let wanted: Vec<i64> = dims.iter().map(|label| {
            let axis = own.iter().position(|known| *known == label.to_string());
            axis.map(|axis| field.descriptor().shape()[axis]).filter(|got| *got != 1).unwrap_or(size)
        }).collect();
        let wide = field.broadcast_to(&dims, &wanted).unwrap();
        prop_assert!(wide.descriptor().is_readonly());
        prop_assert_eq!((&wide.dims(), wide.descriptor().shape()), (&dims, &wanted[..]));
        let address = |tensor: &Tensor, index: &[i64]| {
            let steps = index.iter().zip(tensor.descriptor().byte_strides());
            i64::try_from(tensor.descriptor().ptr().addr()).unwrap() + steps.map(|(at, step)| at * step).sum::<i64>()
        };
        for index in indices(&wanted).into_iter().take(200) {
            let of_label = |label: &Dim| {
                let at = dims.iter().position(|known| known == *label).unwrap();
                let axis = own.iter().position(|known| *known == label.to_string()).unwrap();
                if field.descriptor().shape()[axis] == 1 { 0 } else { index[at] }
            };
            let inside: Vec<i64> = field.dims().iter().map(|label| of_label(&label)).collect();
            prop_assert_eq!(address(&wide, &index), address(&field, &inside));
        }
        alignment_statement_is_true(&wide);
    }
}

#[test]
fn sizes_and_labels_that_do_not_fit_are_named() {
    let field = Tensor::zeros(&Spec::new(&[2, 3], DType::F64)).unwrap();
    let other = Tensor::zeros(&Spec::new(&[2, 4], DType::F64)).unwrap();
    let error = LabelledShape::broadcast(&[LabelledShape::of(&field), LabelledShape::of(&other)]).unwrap_err();
    assert!(error.to_string().contains("\"J\", or 1, got 3 points in operand 0 and 4 in operand 1"), "{error}");
    assert!(field.broadcast_to(&Dims::standard(2), &[2, 4]).unwrap_err().to_string().contains("\"J\""));
    assert!(
        field
            .broadcast_to(&Dims::standard(1), &[2])
            .unwrap_err()
            .to_string()
            .contains("expected a field with the labels (I) only, got one with \"J\"")
    );
    assert!(field.broadcast_to(&Dims::standard(2), &[2]).is_err());
    assert!(field.broadcast_to(&Dims::standard(3), &[2, 3, -1]).is_err());
    assert!(field.broadcast_to(&Dims::standard(3), &[2, 3, i64::MAX]).is_err());
    let many = |from: u32| {
        LabelledShape::new(Dims::new((from..from + 40).map(Dim::Data).collect()).unwrap(), &[1; 40]).unwrap()
    };
    assert_eq!(LabelledShape::broadcast(&[many(0), many(40)]).unwrap_err().got(), "65");
}

#[test]
fn halos_that_differ_are_named() {
    let field = |halo: [(i64, i64); 2]| Tensor::zeros(&Spec::new(&[6, 6], DType::F64).halo(&halo)).unwrap();
    let (one, two, plain) =
        (field([(1, 1); 2]), field([(1, 1), (2, 0)]), Tensor::zeros(&Spec::new(&[6, 6], DType::F64)).unwrap());
    let error = check_halos(&[&plain, &one, &one, &two]).unwrap_err();
    let expected = "halo: expected equal halos along \"J\", where the domains differ, got operand 1 with halo ((1, 1), (1, 1)) and \
                    origin (1, 1), and operand 3 with halo ((1, 1), (2, 0)) and origin (1, 2); take the domain_view of \
                    both, or give both the same halo";
    assert_eq!(error.to_string(), expected);
    assert!(check_halos(&[&one.domain_view(), &field([(0, 2); 2]).domain_view()]).is_ok());
    // A slice is combined by index, and so is a result of slices; a view of the whole field is not a slice.
    let part = |start| [Index::Range { start, len: 5, step: 1 }];
    let (above, below) = (one.view(&part(1)).unwrap(), one.view(&part(0)).unwrap());
    assert!(above.halo() != below.halo() && check_halos(&[&above, &below]).is_ok());
    let sum = Tensor::zeros(&LabelledShape::of(&above).spec(DType::F64, &[&above, &below]).unwrap()).unwrap();
    assert!(sum.descriptor().halo_is_cut() && check_halos(&[&sum, &above, &below.copy().unwrap()]).is_ok());
    let whole = two.view(&[Index::Range { start: 0, len: 6, step: 1 }]).unwrap();
    assert!(check_halos(&[&one, &whole.transpose(&[0, 1]).unwrap()]).is_err());
    // A halo that is set on a slice counts again.
    above.set_halo(&[(1, 1), (1, 1)]).unwrap();
    below.set_halo(&[(2, 1), (1, 1)]).unwrap();
    assert!(check_halos(&[&above, &below]).is_err());
}

#[test]
fn alignments_without_a_common_multiple_are_named() {
    // Three primes above 2**21.
    let fields = [2_097_169, 2_097_211, 2_097_223]
        .map(|bytes| Tensor::empty(&Spec::new(&[0], DType::U8).alignment_size(bytes)).unwrap());
    let result = LabelledShape::of(&fields[0]);
    assert!(result.spec(DType::U8, &[&fields[0], &fields[1]]).is_ok());
    let error = result.spec(DType::U8, &[&fields[0], &fields[1], &fields[2]]).unwrap_err();
    assert!(error.argument() == "alignment_size" && error.got().ends_with("and 2097223 bytes"), "{error}");
}

#[test]
fn kept_dimensions_of_a_reduction_have_no_margins() {
    let field = Tensor::zeros(&Spec::new(&[1, 8], DType::F64).halo(&[(1, 0), (1, 2)])).unwrap();
    let kept = LabelledShape::of(&field).reduced(&[0], true).unwrap();
    let made = Tensor::zeros(&kept.spec(DType::F64, &[&field]).unwrap()).unwrap();
    assert_eq!((made.halo(), made.origin().as_slice()), (&[(0, 0), (1, 2)][..], &[0, 1][..]));
    let left = LabelledShape::of(&field).reduced(&[0], false).unwrap();
    let made = Tensor::zeros(&left.spec(DType::F64, &[&field]).unwrap()).unwrap();
    assert_eq!((made.dims().to_string(), made.halo()), ("J".to_owned(), &[(1, 2)][..]));
    assert!(LabelledShape::of(&field).reduced(&[2], false).is_err());
}
