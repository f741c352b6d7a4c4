//! The validated arguments of one call.

use std::marker::PhantomData;

use smallvec::SmallVec;

use super::size::check_sizes;
use super::writeback::{Fit, Writeback};
use super::{FieldSpec, Signature, SignatureError};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dims::Dim;
use crate::error::Result;
use crate::layout::Extents;
use crate::tensor::Tensor;

/// The fields of one call, borrowed, with dimensions in the order that the kernel was written for.
///
/// # Example
/// ```
/// use dlfield::{BoundCall, DType, Dims, FieldSpec, Signature, Spec, Tensor};
///
/// # fn main() -> dlfield::Result<()> {
/// fn points(call: &BoundCall) -> i64 {
///     call.domain().1.iter().product()
/// }
///
/// let signature = Signature::new([("inp", FieldSpec::new(DType::F64, Dims::standard(2)))])?;
/// let inp = Tensor::zeros(&Spec::new(&[4, 3], DType::F64).halo(&[(1, 1), (0, 0)]))?;
/// assert_eq!(points(&signature.bind(&[("inp", inp.descriptor())])?), 6);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BoundCall<'a> {
    fields: Vec<(Box<str>, Option<Descriptor>)>,
    slow: Vec<Box<str>>,
    copies: Vec<Copied>,
    /// The memory that the descriptors describe.
    borrowed: PhantomData<&'a Descriptor>,
}

/// Makes a temporary for a field with this name, from its oriented description.
type MakeCopy<'c> = &'c dyn Fn(&str, &FieldSpec, &Descriptor) -> Result<Writeback>;

/// A field that a temporary replaces.
#[derive(Clone, Debug)]
struct Copied {
    field: Box<str>,
    written: bool,
    copy: Writeback,
}

impl<'a> BoundCall<'a> {
    /// Validates the arguments and orients their dimensions. With `copy`, which makes a temporary, a field whose memory does not
    /// fit gets one.
    pub(super) fn new(
        signature: &Signature,
        given: &[(&str, &'a Descriptor)],
        copy: Option<MakeCopy<'_>>,
    ) -> Result<BoundCall<'a>> {
        let mut bound = BoundCall::oriented(signature, given)?;
        let may_share = signature.allows_overlap() && copy.is_some();
        let originals = if may_share { bound.fields.clone() } else { Vec::new() };
        for ((name, spec), (_, field)) in signature.fields().iter().zip(&mut bound.fields) {
            let Some(found) = field else { continue };
            let named = |error: crate::Error| SignatureError::of(name, error);
            match (spec.fit(found, signature.device(), copy.is_some()).map_err(named)?, copy) {
                (Fit::Direct, _) => {}
                (Fit::Copied(_), Some(copy)) => {
                    let copy = copy(name, spec, found).map_err(named)?;
                    *field = Some(copy.tensor().descriptor().clone());
                    bound.copies.push(Copied { field: name.clone(), written: spec.declared_access().writes(), copy });
                }
                (Fit::Slow | Fit::Copied(_), _) => bound.slow.push(name.clone()),
            }
        }
        let copy_of = |copies: &[Copied], place: usize| {
            copies.iter().position(|copied| copied.field == signature.fields()[place].0)
        };
        let is_copied = |place: usize| copy_of(&bound.copies, place).is_some();
        for (place, first) in shared_copies(signature, |place| originals.get(place)?.1.as_ref(), is_copied)? {
            let [Some(copy), Some(source)] = [place, first].map(|place| copy_of(&bound.copies, place)) else {
                continue;
            };
            bound.copies[copy].copy = bound.copies[source].copy.clone();
            bound.fields[place].1 = bound.fields[first].1.clone();
        }
        Ok(bound)
    }

    /// The same, with a temporary, made by `filled`, for each field that does not fit.
    pub(super) fn with_copies(
        signature: &Signature,
        given: &[(&str, &'a Tensor)],
        filled: impl Fn(&FieldSpec, &Tensor, Descriptor, Device) -> Result<Writeback>,
    ) -> Result<BoundCall<'a>> {
        let descriptors: Vec<_> = given.iter().map(|(name, tensor)| (*name, tensor.descriptor())).collect();
        let copy = |field: &str, spec: &FieldSpec, oriented: &Descriptor| {
            let found = given.iter().find(|(name, _)| *name == field);
            let (_, tensor) = found.ok_or_else(|| SignatureError::Missing { field: field.into() })?;
            filled(spec, tensor, oriented.clone(), signature.device())
        };
        let bound = BoundCall::new(signature, &descriptors, Some(&copy))?;
        for (name, tensor) in given {
            let is_shared = tensor.descriptor().device() != signature.device();
            if is_shared && !bound.copied().any(|copied| copied == *name) {
                let ordered = tensor.order_use_on(signature.device());
                ordered.map_err(|error| SignatureError::of(name, error))?;
            }
        }
        Ok(bound)
    }

    /// Orients the arguments without checking what a copy could fix.
    fn oriented(signature: &Signature, given: &[(&str, &'a Descriptor)]) -> Result<BoundCall<'a>> {
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
        let mut fields = Vec::with_capacity(known.len());
        for (name, spec) in known {
            let found = given.iter().find(|(given, _)| *given == &**name);
            let field = found.map(|(_, found)| spec.oriented(found)).transpose();
            fields.push((name.clone(), field.map_err(|error| SignatureError::of(name, error))?));
            if found.is_none() && !spec.is_optional() {
                return Err(SignatureError::Missing { field: name.clone() }.into());
            }
        }
        check_sizes(signature, |position| fields[position].1.as_ref())?;
        check_overlap(signature, |position| fields[position].1.as_ref())?;
        Ok(BoundCall { fields, slow: Vec::new(), copies: Vec::new(), borrowed: PhantomData })
    }

    /// Returns a field, if it was given.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let signature = Signature::new([("inp", FieldSpec::new(DType::F64, Dims::standard(2)))])?;
    /// let inp = Tensor::zeros(&Spec::new(&[4, 3], DType::F64).halo(&[(1, 1), (0, 0)]))?;
    /// let bound = signature.bind(&[("inp", inp.descriptor())])?;
    /// assert_eq!(bound.get("inp").unwrap().shape(), [4, 3]);
    /// assert!(bound.get("other").is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, name: &str) -> Option<&Descriptor> {
        self.fields.iter().find(|(known, _)| **known == *name)?.1.as_ref()
    }

    /// Returns the names of the fields that temporaries replace.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Access, DType, Dims, FieldSpec, Signature, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(1)).access(Access::ReadWrite);
    /// let signature = Signature::new([("x", spec)])?;
    /// let x = Tensor::from(vec![1.0f32, 2.0]);
    /// let bound = signature.bind_or_copy(&[("x", &x)])?;
    /// assert!(bound.copied().eq(["x"])); // float32 is converted to float64
    /// # Ok(())
    /// # }
    /// ```
    pub fn copied(&self) -> impl Iterator<Item = &str> {
        self.copies.iter().map(|copied| &*copied.field)
    }

    /// Copies the temporaries of the written fields back into the originals.
    ///
    /// # Errors
    /// [`crate::OutOfMemory`].
    ///
    /// # Safety
    /// - The fields' memory may be written, and no other code uses it, or the temporaries, meanwhile.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Access, DType, Dims, FieldSpec, Signature, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(1)).access(Access::ReadWrite);
    /// let signature = Signature::new([("x", spec)])?;
    /// let x = Tensor::from(vec![1.0f32, 2.0]);
    /// let bound = signature.bind_or_copy(&[("x", &x)])?;
    /// // … the kernel runs on `bound.get("x")` …
    /// // SAFETY: this function owns the memory, and nothing else uses it.
    /// unsafe { bound.copy_back()? };
    /// # Ok(())
    /// # }
    /// ```
    #[allow(unsafe_code, reason = "the caller vouches for the memory")]
    pub unsafe fn copy_back(&self) -> Result<()> {
        let mut written = self.copies.iter().filter(|copied| copied.written);
        // SAFETY: passed on from the caller.
        written.try_for_each(|copied| unsafe { copied.copy.copy_back() })
    }

    /// Returns the names of the fields with a slow layout.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Layout, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let signature = Signature::new([("inp", FieldSpec::new(DType::F64, Dims::standard(2)).layout(Layout::f_order(2)))])?;
    /// let inp = Tensor::zeros(&Spec::new(&[4, 3], DType::F64).halo(&[(1, 1), (0, 0)]))?;
    /// let bound = signature.bind(&[("inp", inp.descriptor())])?;
    /// assert_eq!(bound.slow(), ["inp".into()]); // it is in C order
    /// # Ok(())
    /// # }
    /// ```
    pub fn slow(&self) -> &[Box<str>] {
        &self.slow
    }

    /// Returns the labels and extents of the largest domain that all fields cover, from each origin to its upper halo: I, J and
    /// K first, then users' labels in order of appearance. Data dimensions belong to no domain.
    ///
    /// Source: `StencilObject._get_max_domain` of GT4Py 1.1.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dim, Dims, FieldSpec, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let signature = Signature::new([("inp", FieldSpec::new(DType::F64, Dims::standard(2)))])?;
    /// let inp = Tensor::zeros(&Spec::new(&[4, 3], DType::F64).halo(&[(1, 1), (0, 0)]))?;
    /// let bound = signature.bind(&[("inp", inp.descriptor())])?;
    /// assert_eq!(bound.domain(), (vec![Dim::I, Dim::J], vec![2, 3]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn domain(&self) -> (Vec<Dim>, Vec<i64>) {
        common_domain(self.fields.iter().filter_map(|(_, field)| field.as_ref())).into_iter().unzip()
    }
}

/// Rejects written fields that share memory with another field, unless the signature allows that. `field` returns the given ones
/// by position in the signature.
#[doc(hidden)]
pub fn check_overlap<'a>(
    signature: &Signature,
    field: impl Fn(usize) -> Option<&'a Descriptor>,
) -> Result<(), SignatureError> {
    if signature.allows_overlap() {
        return Ok(());
    }
    let fields = signature.fields();
    let written = |place: usize| fields[place].1.declared_access().writes();
    if fields.len() < 2 || !(0..fields.len()).any(written) {
        return Ok(());
    }
    // Most fields are far apart: the address range of each is computed once, not for each pair. That of an absent field is empty.
    let mut reaches: SmallVec<[(usize, usize); 16]> = SmallVec::new();
    reaches.extend((0..fields.len()).map(|place| field(place).map_or((0, 0), Descriptor::reach)));
    for (place, (low, high)) in reaches.iter().enumerate() {
        if !written(place) {
            continue;
        }
        for (other_place, (other_low, other_high)) in reaches.iter().enumerate() {
            // A pair of written fields is compared once.
            let again = other_place == place || (other_place < place && written(other_place));
            if low >= other_high || other_low >= high || again {
                continue;
            }
            let (Some(one), Some(other)) = (field(place), field(other_place)) else { continue };
            if one.overlaps(other) {
                return Err(SignatureError::Overlap {
                    field: fields[place].0.clone(),
                    other: fields[other_place].0.clone(),
                });
            }
        }
    }
    Ok(())
}

/// Returns the copied fields that must use the temporary of an earlier field, with the position of that: both are the same
/// elements, one is written, and the signature allows that. `field` returns the originals by position in the signature.
///
/// # Errors
/// [`SignatureError::CopiedOverlap`] for a copied field that shares memory with another one in any other way. The kernel would
/// not see in one field what it writes to the other, and the last temporary would overwrite the others when it is copied back.
#[doc(hidden)]
pub fn shared_copies<'a>(
    signature: &Signature,
    field: impl Fn(usize) -> Option<&'a Descriptor>,
    is_copied: impl Fn(usize) -> bool,
) -> Result<Vec<(usize, usize)>, SignatureError> {
    let fields = signature.fields();
    let halo = |field: &'a Descriptor| field.halo().filter(|halo| halo.iter().any(|widths| *widths != (0, 0)));
    let mut shared = Vec::new();
    if !signature.allows_overlap() || !(0..fields.len()).any(&is_copied) {
        return Ok(shared);
    }
    for (place, (name, spec)) in fields.iter().enumerate() {
        for (first, (other_name, other_spec)) in fields[..place].iter().enumerate() {
            let written = spec.access.writes() || other_spec.access.writes();
            let copied = [place, first].map(&is_copied);
            let (Some(one), Some(other)) = (field(place), field(first)) else { continue };
            if !written || copied == [false; 2] || !one.overlaps(other) {
                continue;
            }
            let same = (one.ptr(), one.shape(), one.strides(), one.dtype(), one.origin(), halo(one))
                == (other.ptr(), other.shape(), other.strides(), other.dtype(), other.origin(), halo(other));
            if copied != [true; 2] || !same || !spec.has_same_temporary(one, other_spec, other) {
                return Err(SignatureError::CopiedOverlap { field: name.clone(), other: other_name.clone() });
            }
            shared.push((place, first));
        }
    }
    Ok(shared)
}

/// Returns the largest domain that all fields cover, by label.
#[doc(hidden)]
pub fn common_domain<'a>(fields: impl Iterator<Item = &'a Descriptor>) -> Vec<(Dim, i64)> {
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
