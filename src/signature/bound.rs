//! The arguments of one call, checked.

use std::marker::PhantomData;

use super::{Signature, SignatureError};
use crate::descriptor::Descriptor;
use crate::dims::Dim;
use crate::error::Result;
use crate::layout::Extents;

/// The fields of one call in the order of dimensions that the kernel was written for, while the arrays are borrowed.
#[derive(Clone, Debug)]
pub struct Bound<'a> {
    fields: Vec<(Box<str>, Option<Descriptor>)>,
    slow: Vec<Box<str>>,
    /// The memory that the descriptors are of.
    borrowed: PhantomData<&'a Descriptor>,
}

impl<'a> Bound<'a> {
    pub(super) fn new(signature: &Signature, given: &[(&str, &'a Descriptor)]) -> Result<Bound<'a>> {
        let known = signature.fields();
        for (position, (field, _)) in given.iter().enumerate() {
            let field = *field;
            if !known.iter().any(|(name, _)| **name == *field) {
                let allowed: Vec<&str> = known.iter().map(|(name, _)| &**name).collect();
                return Err(SignatureError::Unknown { field: field.into(), allowed: allowed.join(", ") }.into());
            }
            if given[..position].iter().any(|(other, _)| *other == field) {
                return Err(SignatureError::Twice { field: field.into() }.into());
            }
        }
        let mut bound = Bound { fields: Vec::with_capacity(known.len()), slow: Vec::new(), borrowed: PhantomData };
        for (name, spec) in known {
            let Some((_, found)) = given.iter().find(|(given, _)| *given == &**name) else {
                if !spec.is_optional() {
                    return Err(SignatureError::Missing { field: name.clone() }.into());
                }
                bound.fields.push((name.clone(), None));
                continue;
            };
            let mut field = (*found).clone();
            let fits = spec.orient(&mut field).and_then(|()| spec.check_memory(&field, signature.stated_device()));
            fits.map_err(|error| SignatureError::of(name, error))?;
            if spec.is_slow(&field) {
                bound.slow.push(name.clone());
            }
            bound.fields.push((name.clone(), Some(field)));
        }
        check_overlap(signature, |position| bound.fields[position].1.as_ref())?;
        Ok(bound)
    }

    /// A field, if it was given.
    pub fn get(&self, name: &str) -> Option<&Descriptor> {
        self.fields.iter().find(|(known, _)| **known == *name)?.1.as_ref()
    }

    /// The names of fields whose layout is slow.
    pub fn slow(&self) -> &[Box<str>] {
        &self.slow
    }

    /// The labels and extents of the largest domain that all fields have points for, from each one's origin to its upper
    /// halo: I, J and K first, then users' labels as they come. Data dimensions belong to no domain.
    ///
    /// Source: `StencilObject._get_max_domain` of GT4Py 1.1.
    pub fn domain(&self) -> (Vec<Dim>, Vec<i64>) {
        common_domain(self.fields.iter().filter_map(|(_, field)| field.as_ref())).into_iter().unzip()
    }
}

/// Refuses written fields that share memory with another one. `field` gives those that are there, in the signature's
/// order.
pub(crate) fn check_overlap<'a>(
    signature: &Signature,
    field: impl Fn(usize) -> Option<&'a Descriptor>,
) -> Result<(), SignatureError> {
    let fields = signature.fields();
    for (position, (name, spec)) in fields.iter().enumerate() {
        let Some(written) = field(position).filter(|_| spec.stated_access().writes()) else { continue };
        for (other, (other_name, other_spec)) in fields.iter().enumerate() {
            // Two written fields are looked at once.
            let again = other == position || (other < position && other_spec.stated_access().writes());
            if !again && field(other).is_some_and(|other| written.overlaps(other)) {
                return Err(SignatureError::Overlap { field: name.clone(), other: other_name.clone() });
            }
        }
    }
    Ok(())
}

/// The largest domain that all fields have points for, by label.
pub(crate) fn common_domain<'a>(fields: impl Iterator<Item = &'a Descriptor>) -> Vec<(Dim, i64)> {
    let mut domain: Vec<(Dim, i64)> = Vec::new();
    for field in fields {
        let Some(dims) = field.dims() else { continue };
        let none = || Extents::from_elem(0, field.ndim());
        let origin = field.origin().map_or_else(none, Extents::from_slice);
        for (axis, dim) in dims.iter().enumerate() {
            if matches!(dim, Dim::Data(_)) {
                continue;
            }
            let upper = field.halo().map_or(0, |halo| halo[axis].1);
            let points = (field.shape()[axis] - origin[axis]).saturating_sub(upper).max(0);
            match domain.iter_mut().find(|(known, _)| *known == dim) {
                Some((_, extent)) => *extent = points.min(*extent),
                None => domain.push((dim, points)),
            }
        }
    }
    let place = |dim: &Dim| match dim {
        Dim::I => 0,
        Dim::J => 1,
        Dim::K => 2,
        Dim::Data(_) | Dim::Label(_) => 3,
    };
    domain.sort_by_key(|(dim, _)| place(dim));
    domain
}
