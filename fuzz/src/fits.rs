//! Which arguments fit a signature, the slow and obvious way.

use dlfield::{Access, Descriptor, Device, FieldSpec, Signature, Size};

use crate::naive::{bytes, indices, offset, wide};

type Given<'a> = [(&'a str, &'a Descriptor)];

/// Binds arguments, and compares the result with the rules.
pub fn check(signature: &Signature, given: &Given<'_>, allows_overlap: bool) {
    let bound = signature.bind(given);
    let wanted = fits(signature, given, allows_overlap);
    assert_eq!(bound.is_ok(), wanted, "{bound:?}");
    assert!(bound.as_ref().err().is_none_or(|error| error.to_string().starts_with("field \"")));
    let Ok(bound) = bound else { return };
    let mut fields = Vec::new();
    for (name, spec) in signature.fields() {
        let found = given.iter().find(|(known, _)| *known == &**name).map(|(_, field)| *field);
        let kept = bound.get(name);
        assert_eq!(kept.is_some(), found.is_some());
        let (Some(kept), Some(found)) = (kept, found) else { continue };
        same_elements(spec, kept, found);
        assert_eq!(bound.slow().contains(name), is_slow(spec, kept), "{spec:?} {kept:?}");
        fields.push(kept);
    }
    let (labels, extents) = bound.domain();
    let mut domain: Vec<_> = labels.iter().map(ToString::to_string).zip(extents).collect();
    domain.sort();
    assert_eq!(domain, counted(&fields));
}

fn fits(signature: &Signature, given: &Given<'_>, allows_overlap: bool) -> bool {
    let names = || given.iter().map(|(name, _)| *name);
    let known = names().all(|name| signature.fields().iter().any(|(other, _)| **other == *name));
    let once = names().all(|name| names().filter(|other| *other == name).count() == 1);
    if !known || !once {
        return false;
    }
    let (mut sizes, mut fields) = (Vec::new(), Vec::new());
    for (name, spec) in signature.fields() {
        let Some((_, field)) = given.iter().find(|(known, _)| *known == &**name) else {
            if spec.is_optional() {
                continue;
            }
            return false;
        };
        let Some(axes) = axes(spec, field) else { return false };
        let writes = spec.declared_access() != Access::Read;
        if (writes && (field.is_readonly() || !are_nested(field)))
            || !reaches(signature.device(), field.device())
            || !(spec.declared_dtypes().is_empty() || spec.declared_dtypes().contains(&field.dtype()))
            || !is_aligned(spec, field)
        {
            return false;
        }
        for (axis, size) in axes.iter().zip(spec.declared_shape().unwrap_or_default()) {
            let extent = i128::from(field.shape()[*axis]);
            match size {
                Size::Fixed(wanted) if i128::from(*wanted) != extent => return false,
                Size::Named { name, offset } => sizes.push((name.clone(), extent - i128::from(*offset))),
                _ => {}
            }
        }
        fields.push((writes, *field));
    }
    let agree = sizes.iter().all(|(name, size)| {
        *size >= 0 && sizes.iter().filter(|(other, _)| other == name).all(|(_, other)| other == size)
    });
    let meet = |one: &Descriptor, other: &Descriptor| !bytes(one).is_disjoint(&bytes(other));
    let apart = || {
        let pairs =
            fields.iter().enumerate().flat_map(|(place, one)| fields[..place].iter().map(move |two| (one, two)));
        pairs.into_iter().all(|((writes, one), (other_writes, other))| !(*writes || *other_writes) || !meet(one, other))
    };
    agree && (allows_overlap || apart())
}

/// The field's axes in the expected order; `None` if it has other dimensions.
fn axes(spec: &FieldSpec, field: &Descriptor) -> Option<Vec<usize>> {
    let by_index = (0..field.ndim()).collect();
    match (spec.dims(), field.dims()) {
        (Some(wanted), Some(found)) => {
            let place = |label: String| found.iter().position(|dim| dim.to_string() == label);
            let axes: Option<Vec<usize>> = wanted.iter().map(|dim| place(dim.to_string())).collect();
            axes.filter(|axes| axes.len() == field.ndim())
        }
        (Some(wanted), None) => (wanted.len() == field.ndim()).then_some(by_index),
        (None, _) => {
            let lists = [spec.declared_shape().map(<[_]>::len), spec.declared_layout().map(|layout| layout.len())];
            lists.into_iter().flatten().all(|len| len == field.ndim()).then_some(by_index)
        }
    }
}

/// Whether every stride reaches past all elements of the smaller ones.
fn are_nested(field: &Descriptor) -> bool {
    let steps = field.shape().iter().zip(field.strides()).filter(|(extent, _)| **extent > 1);
    let mut steps: Vec<(i64, i64)> = steps.map(|(extent, stride)| (stride.abs(), *extent)).collect();
    steps.sort_unstable();
    let past = |place: usize| 1 + steps[..place].iter().map(|(step, extent)| step * (extent - 1)).sum::<i64>();
    field.shape().contains(&0) || (0..steps.len()).all(|place| steps[place].0 >= past(place))
}

fn reaches(user: Device, memory: Device) -> bool {
    match (user.to_string().as_str(), memory.to_string().as_str()) {
        ("cpu", memory) => ["cpu", "cuda_host", "cuda_managed", "rocm_host"].contains(&memory),
        (user, memory) if user.starts_with("cuda:") => [user, "cuda_host", "cuda_managed"].contains(&memory),
        (user, memory) => user == memory,
    }
}

/// Whether the element at the origin, by default at the lower halo, else the first, is at the expected multiple.
fn is_aligned(spec: &FieldSpec, field: &Descriptor) -> bool {
    let lower = field.halo().map(|halo| halo.iter().map(|(lower, _)| *lower).collect());
    let origin = field.origin().map(<[_]>::to_vec).or(lower).unwrap_or_else(|| vec![0; field.ndim()]);
    let address = wide(field.ptr().addr()) + offset(&origin, field.strides(), field.itemsize());
    field.shape().contains(&0) || address % i128::from(spec.declared_alignment_size().unwrap_or(1)) == 0
}

/// Checks that an index by labels has the same address in both.
fn same_elements(spec: &FieldSpec, kept: &Descriptor, found: &Descriptor) {
    let axes = axes(spec, found).expect("the field fits");
    assert_eq!((kept.dtype(), kept.device(), kept.is_readonly()), (found.dtype(), found.device(), found.is_readonly()));
    assert_eq!(kept.dims().map(ToString::to_string), spec.dims().or(found.dims()).map(ToString::to_string));
    for index in indices(kept.shape()) {
        let mut before = vec![0; index.len()];
        index.iter().zip(&axes).for_each(|(at, axis)| before[*axis] = *at);
        let place = |field: &Descriptor, index: &[i64]| {
            wide(field.ptr().addr()) + offset(index, field.strides(), field.itemsize())
        };
        assert_eq!(place(kept, &index), place(found, &before));
    }
    let pick = |all: &[i64]| axes.iter().map(|axis| all[*axis]).collect::<Vec<_>>();
    let lower = |field: &Descriptor| field.halo().map(|halo| halo.iter().map(|(lower, _)| *lower).collect::<Vec<_>>());
    let origin = found.origin().map(<[_]>::to_vec).or(lower(found)).unwrap_or_else(|| vec![0; found.ndim()]);
    assert_eq!((kept.shape(), kept.origin()), (&pick(found.shape())[..], Some(&pick(&origin)[..])));
    assert_eq!(lower(kept), lower(found).map(|lower| pick(&lower)));
}

/// Whether a dimension that should have the larger stride has the smaller one.
fn is_slow(spec: &FieldSpec, field: &Descriptor) -> bool {
    let Some(layout) = spec.declared_layout() else { return false };
    let ranks = layout.to_vec();
    let steps = || (0..field.ndim()).filter(|axis| field.shape()[*axis] != 1 && field.strides()[*axis] != 0);
    let wrong = |outer: usize, inner: usize| {
        ranks[outer] < ranks[inner] && field.strides()[outer].abs() < field.strides()[inner].abs()
    };
    !field.shape().contains(&0) && steps().any(|outer| steps().any(|inner| wrong(outer, inner)))
}

/// The points of each dimension that all fields have, from the origin to the upper halo, counted one by one, by label.
fn counted(fields: &[&Descriptor]) -> Vec<(String, i64)> {
    let mut all: Vec<(String, i64)> = Vec::new();
    for field in fields {
        let labels = field.dims().into_iter().flat_map(|dims| dims.iter()).map(|dim| dim.to_string());
        for (axis, label) in labels.enumerate().filter(|(_, label)| label.parse::<u32>().is_err()) {
            let (first, upper) = (field.origin().map_or(0, |at| at[axis]), field.halo().map_or(0, |halo| halo[axis].1));
            let points =
                (0..field.shape()[axis]).filter(|at| *at >= first && *at < field.shape()[axis] - upper).count();
            match all.iter_mut().find(|(known, _)| *known == label) {
                Some((_, least)) => *least = (points as i64).min(*least),
                None => all.push((label, points as i64)),
            }
        }
    }
    all.sort();
    all
}
