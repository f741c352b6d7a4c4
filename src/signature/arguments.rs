//! Binds the arguments of a call to the fields of a signature: for [`Signature::bind`] in Rust and for `Signature.bind` in Python,
//! each with an [`Argument`] of its own.
//!
//! The caller looks up the place of each argument ([`Signature::find`], [`Arguments::vacant`]), describes it, and has the description
//! fitted ([`Signature::fit`]). When all are there it calls [`Arguments::check`]. Then this is true, which kernels rely on:
//!
//! - An argument stands at the position of its field in the signature. Only optional fields have none.
//! - Its description has the dims, rank and fixed extents of the `FieldSpec`, in the kernel's order, and an origin. A written field has
//!   writable memory, in which no two elements share a byte.
//! - Device, element type and alignment are those of the `FieldSpec`. If the memory's are not, the argument has a temporary copy with
//!   these, in the fast layout; so it may if only its layout is slow. Everything else about the copy is as in the original.
//! - Fields agree on named sizes.
//! - A written field shares no memory with another field, unless the signature allows that. Then those that share memory either have
//!   no copies, or the same elements and one copy together, or nobody writes to them.
//!
//! A copy has no values yet: the caller fills it before the kernel runs, and copies it back after, so that a call that is rejected moves
//! no element. Descriptions are numbers: checks read no memory, which may have moved meanwhile if arguments of Python ran code.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::size::dimension;
use super::writeback::{Fit, Writeback};
use super::{Signature, Size, field_of, missing, twice, unknown};
use crate::descriptor::Descriptor;
use crate::dims::Dim;
use crate::error::{Error, LayoutError, LayoutErrorKind, Result, SignatureError, SignatureErrorKind};
use crate::layout::Extents;

/// The argument for one field of a call.
pub(crate) trait Argument {
    /// Describes the caller's memory, with the dimensions in the kernel's order.
    fn original(&self) -> &Descriptor;

    /// Returns the temporary copy that the kernel gets instead, if it gets one.
    fn copy(&self) -> Option<&Writeback>;

    /// Replaces the temporary copy by that of another argument, for the same elements.
    fn share_copy(&mut self, other: &Self);
}

/// The arguments of a call, by the position of their fields in the signature.
#[derive(Clone, Debug)]
pub(crate) struct Arguments<A>(Vec<Option<A>>);

impl<A> Arguments<A> {
    /// No arguments, for no signature yet.
    pub(crate) const NONE: Arguments<A> = Arguments(Vec::new());

    /// Makes an empty place for each field of a signature.
    #[inline]
    pub(crate) fn prepare(&mut self, signature: &Signature) {
        self.0.clear();
        self.0.resize_with(signature.fields().len(), || None);
    }

    /// Returns the place of a field, to be filled.
    ///
    /// # Errors
    /// [`SignatureError`] if it has its argument already.
    #[inline]
    pub(crate) fn vacant(&mut self, signature: &Signature, place: usize) -> Result<&mut Option<A>, SignatureError> {
        match &mut self.0[place] {
            Some(_) => Err(twice(&signature.fields()[place].0)),
            vacant => Ok(vacant),
        }
    }

    /// Returns the argument for a field; `None` if it was not given.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&A> {
        self.0[place].as_ref()
    }

    /// Returns the arguments that were given, with their positions.
    pub(crate) fn given(&self) -> impl Iterator<Item = (usize, &A)> {
        self.0.iter().enumerate().filter_map(|(place, argument)| Some((place, argument.as_ref()?)))
    }

    /// Takes all arguments out.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = A> {
        self.0.iter_mut().filter_map(Option::take)
    }
}

impl<A: Argument> Arguments<A> {
    /// Checks what concerns several fields, and lets arguments with the same elements share a copy.
    ///
    /// # Errors
    /// [`SignatureError`] for a field that is missing, for sizes that differ and for memory that overlaps; [`LayoutError`] for an extent
    /// below the offset of its size.
    #[inline]
    pub(crate) fn check(&mut self, signature: &Signature) -> Result<()> {
        let mut absent = signature.fields().iter().zip(&self.0).filter(|(_, argument)| argument.is_none());
        if let Some(((name, _), _)) = absent.find(|((_, spec), _)| !spec.is_optional()) {
            return Err(missing(name).into());
        }
        self.check_sizes(signature)?;
        Ok(self.check_overlap(signature)?)
    }

    /// Rejects fields that disagree on a named size.
    #[inline]
    fn check_sizes(&self, signature: &Signature) -> Result<()> {
        if signature.table.named_extents.is_empty() { Ok(()) } else { self.agree(signature) }
    }

    #[inline(never)]
    fn agree(&self, signature: &Signature) -> Result<()> {
        // Each size, with the position of the first field that has it. Offsets may take it out of 64 bits.
        let mut known: SmallVec<[Option<(i128, usize)>; 8]> = SmallVec::new();
        for (place, axis, number) in &signature.table.named_extents {
            let (field_name, spec) = &signature.fields()[*place];
            let (Some(shape), Some(found)) = (spec.declared_shape(), self.original(*place)) else { continue };
            let Size::Named { name, offset } = &shape[*axis] else { continue };
            let extent = found.shape()[*axis];
            let got = i128::from(extent) - i128::from(*offset);
            if got < 0 {
                let (dimension, size) = (dimension(found, *axis), &shape[*axis]);
                let expected = format_args!("{offset} or more points in {dimension}, for {size}");
                let error = LayoutError::new("shape", &expected, &extent).with_kind(LayoutErrorKind::Mismatch);
                return Err(Error::from(error).in_field(field_name));
            }
            if known.len() <= *number {
                known.resize(number + 1, None);
            }
            let (wanted, first) = *known[*number].get_or_insert((got, *place));
            if wanted != got {
                let other = &signature.fields()[first].0;
                let points = if *offset == 0 {
                    String::new()
                } else {
                    format!(", as {extent} {} {}", if extent == 1 { "point is" } else { "points are" }, shape[*axis])
                };
                let expected = format_args!("{name} = {wanted}, as in field {other:?}");
                return Err(SignatureError::new(&field_of(field_name), &expected, &format_args!("{got}{points}"))
                    .with_kind(SignatureErrorKind::Sizes)
                    .into());
            }
        }
        Ok(())
    }

    /// Returns the caller's memory for a field.
    #[inline]
    pub(super) fn original(&self, place: usize) -> Option<&Descriptor> {
        self.get(place).map(A::original)
    }

    #[inline]
    pub(super) fn is_copied(&self, place: usize) -> bool {
        self.get(place).is_some_and(|argument| argument.copy().is_some())
    }

    /// Gives the argument at `place` the copy of an earlier one.
    pub(super) fn share_copy(&mut self, place: usize, earlier: usize) {
        let (before, after) = self.0.split_at_mut(place);
        if let (Some(argument), Some(earlier)) = (&mut after[0], &before[earlier]) {
            argument.share_copy(earlier);
        }
    }

    /// Returns the places of two fields with the same dims and extents, of which the second begins its domain at a later point.
    pub(crate) fn differing_origins(&self) -> Option<(usize, usize)> {
        let mut first = HashMap::new();
        self.given().find_map(|(place, argument)| {
            let field = argument.original();
            let key = (field.shape(), field.dims().map(|dims| dims.to_string()));
            let (earlier, origin) = *first.entry(key).or_insert((place, field.origin()));
            match origin.cmp(&field.origin()) {
                std::cmp::Ordering::Less => Some((earlier, place)),
                std::cmp::Ordering::Equal => None,
                std::cmp::Ordering::Greater => Some((place, earlier)),
            }
        })
    }

    /// Returns the largest domain that all fields cover, by label: see [`BoundCall::domain`](super::BoundCall::domain).
    pub(crate) fn domain(&self, signature: &Signature) -> Vec<(Dim, i64)> {
        let mut standard: [Option<i64>; 3] = [None; 3];
        // Labels of users in order of appearance, and the position of each there.
        let mut labels: Vec<(Dim, i64)> = Vec::new();
        let mut places: HashMap<Dim, usize> = HashMap::new();
        for (place, argument) in self.given() {
            let (field, boundary) = (argument.original(), signature.fields()[place].1.declared_boundary());
            let Some(dims) = field.dims() else { continue };
            let none = || Extents::from_elem(0, field.ndim());
            let origin = field.origin().map_or_else(none, Extents::from_slice);
            for (axis, dim) in dims.iter().enumerate() {
                let above = |widths: &[(i64, i64)]| widths[axis].1;
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
}

impl Signature {
    /// Returns the position of a field by name. Tries `guess` first: callers tend to name fields in the signature's order.
    #[inline]
    pub(crate) fn place(&self, name: &str, guess: usize) -> Option<usize> {
        if self.fields().get(guess).is_some_and(|(known, _)| **known == *name) {
            return Some(guess);
        }
        self.table.places.get(name).copied()
    }

    /// As [`Signature::place`]; [`SignatureError`] for a name that no field has.
    pub(crate) fn find(&self, name: &str, guess: usize) -> Result<usize, SignatureError> {
        self.place(name, guess).ok_or_else(|| unknown(name, self.fields()))
    }

    /// Permutes the dimensions of an argument's description into the kernel's order, sets its origin and dims, and checks it. With
    /// `copies`, a copy may stand in for memory that does not fit.
    ///
    /// # Errors
    /// Those of device, element type, dims, extents, alignment and access, with the field's name.
    #[inline(always)]
    pub(crate) fn fit(&self, place: usize, field: &mut Descriptor, copies: bool) -> Result<Fit> {
        let (name, spec) = &self.fields()[place];
        let fitted = spec.orient(field).and_then(|()| spec.fit(field, self.device(), copies));
        fitted.map_err(|error| error.in_field(name))
    }
}
