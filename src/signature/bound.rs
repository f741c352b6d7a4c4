//! The validated arguments of one call.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use smallvec::SmallVec;

use super::overlap::{check_overlap, shared_copies};
use super::size::check_sizes;
use super::writeback::{Fit, Writeback};
use super::{FieldSpec, Places, Signature, SignatureError};
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
    /// The position of each field in the signature, by name.
    places: Arc<Places>,
    /// How far outside of the domain the kernel reads each field.
    boundaries: Arc<[Option<Box<Boundary>>]>,
    slow: Vec<Box<str>>,
    copies: Vec<Copied>,
    /// The memory that the descriptors describe.
    borrowed: PhantomData<&'a Descriptor>,
}

/// Makes a temporary for the field at this position of the signature, from its oriented description.
type MakeCopy<'c> = &'c dyn Fn(usize, &FieldSpec, &Descriptor) -> Result<Writeback>;

/// A field that a temporary replaces.
#[derive(Clone, Debug)]
struct Copied {
    /// Position in the signature; those of all copies ascend.
    place: usize,
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
        for (place, ((name, spec), (_, field))) in signature.fields().iter().zip(&mut bound.fields).enumerate() {
            let Some(found) = field else { continue };
            let named = |error: crate::Error| SignatureError::of(name, error);
            match (spec.fit(found, signature.device(), copy.is_some()).map_err(named)?, copy) {
                (Fit::Direct, _) => {}
                (Fit::Copied(_), Some(copy)) => {
                    let copy = copy(place, spec, found).map_err(named)?;
                    *field = Some(copy.tensor().descriptor().clone());
                    let written = spec.declared_access().writes();
                    bound.copies.push(Copied { place, field: name.clone(), written, copy });
                }
                (Fit::Slow | Fit::Copied(_), _) => bound.slow.push(name.clone()),
            }
        }
        let copy_of = |copies: &[Copied], place: usize| copies.binary_search_by_key(&place, |copied| copied.place).ok();
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
        let positions = positions(signature, &descriptors)?;
        let copy = |place: usize, spec: &FieldSpec, oriented: &Descriptor| {
            let missing = || SignatureError::Missing { field: signature.fields()[place].0.clone() };
            let (_, tensor) = positions[place].map(|position| given[position]).ok_or_else(missing)?;
            filled(spec, tensor, oriented.clone(), signature.device())
        };
        let bound = BoundCall::new(signature, &descriptors, Some(&copy))?;
        let mut is_copied = vec![false; given.len()];
        bound
            .copies
            .iter()
            .filter_map(|copied| positions[copied.place])
            .for_each(|position| is_copied[position] = true);
        for ((name, tensor), is_copied) in given.iter().zip(is_copied) {
            if tensor.descriptor().device() != signature.device() && !is_copied {
                let ordered = tensor.order_use_on(signature.device());
                ordered.map_err(|error| SignatureError::of(name, error))?;
            }
        }
        Ok(bound)
    }

    /// Orients the arguments without checking what a copy could fix.
    fn oriented(signature: &Signature, given: &[(&str, &'a Descriptor)]) -> Result<BoundCall<'a>> {
        let positions = positions(signature, given)?;
        let mut fields = Vec::with_capacity(positions.len());
        for ((name, spec), position) in signature.fields().iter().zip(positions) {
            let field = position.map(|position| spec.oriented(given[position].1)).transpose();
            fields.push((name.clone(), field.map_err(|error| SignatureError::of(name, error))?));
            if position.is_none() && !spec.is_optional() {
                return Err(SignatureError::Missing { field: name.clone() }.into());
            }
        }
        check_sizes(signature, |position| fields[position].1.as_ref())?;
        check_overlap(signature, |position| fields[position].1.as_ref())?;
        let (places, boundaries) = (Arc::clone(&signature.places), Arc::clone(&signature.boundaries));
        Ok(BoundCall { fields, places, boundaries, slow: Vec::new(), copies: Vec::new(), borrowed: PhantomData })
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
        self.fields[*self.places.get(name)?].1.as_ref()
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

    /// Returns the labels and extents of the largest domain that all fields cover, from each origin to its upper halo, or to the points
    /// that the kernel reads above it ([`FieldSpec::boundary`]): I, J and K first, then users' labels in order of appearance. Data
    /// dimensions belong to no domain.
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
        let fields = self.fields.iter().zip(&*self.boundaries);
        let given = fields.filter_map(|((_, field), boundary)| Some((field.as_ref()?, boundary.as_deref())));
        common_domain(given).into_iter().unzip()
    }
}

/// Returns the position in `given` of each field of the signature.
fn positions<T>(signature: &Signature, given: &[(&str, T)]) -> Result<SmallVec<[Option<usize>; 16]>, SignatureError> {
    let known = signature.fields();
    let mut positions: SmallVec<[Option<usize>; 16]> = SmallVec::from_elem(None, known.len());
    for (position, (field, _)) in given.iter().enumerate() {
        let Some(place) = signature.place(field, position) else {
            let allowed: Vec<&str> = known.iter().map(|(name, _)| &**name).collect();
            return Err(SignatureError::Unknown { field: (*field).into(), allowed: allowed.join(", ") });
        };
        if positions[place].replace(position).is_some() {
            return Err(SignatureError::Twice { field: (*field).into() });
        }
    }
    Ok(positions)
}

/// How many points below and above the domain a kernel reads of a field, per dimension.
pub(super) type Boundary = [(i64, i64)];

/// Returns the largest domain that all fields cover, by label.
pub(crate) fn common_domain<'a>(
    fields: impl Iterator<Item = (&'a Descriptor, Option<&'a Boundary>)>,
) -> Vec<(Dim, i64)> {
    let mut standard: [Option<i64>; 3] = [None; 3];
    // Labels of users in order of appearance, and the position of each there.
    let mut labels: Vec<(Dim, i64)> = Vec::new();
    let mut places: HashMap<Dim, usize> = HashMap::new();
    for (field, boundary) in fields {
        let Some(dims) = field.dims() else { continue };
        let none = || Extents::from_elem(0, field.ndim());
        let origin = field.origin().map_or_else(none, Extents::from_slice);
        for (axis, dim) in dims.iter().enumerate() {
            let above = |widths: &Boundary| widths[axis].1;
            let upper = field.halo().map_or(0, above).max(boundary.map_or(0, above));
            let points = (field.shape()[axis] - origin[axis]).saturating_sub(upper).max(0);
            let extent = match dim {
                Dim::I => standard[0].get_or_insert(points),
                Dim::J => standard[1].get_or_insert(points),
                Dim::K => standard[2].get_or_insert(points),
                Dim::Data(_) => continue,
                Dim::Label(_) => {
                    let place = *places.entry(dim.clone()).or_insert(labels.len());
                    if place == labels.len() {
                        labels.push((dim, points));
                    }
                    &mut labels[place].1
                }
            };
            *extent = points.min(*extent);
        }
    }
    let standard = [Dim::I, Dim::J, Dim::K].into_iter().zip(standard);
    standard.filter_map(|(dim, extent)| Some((dim, extent?))).chain(labels).collect()
}
