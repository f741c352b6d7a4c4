//! Checks of one field against its specification.

use smallvec::SmallVec;

use super::alignment::WantedAlignment;
use super::size::dimension;
use super::{FieldSpec, Size};
use crate::descriptor::Descriptor;
use crate::device::{self, Device};
use crate::dims::{Dim, Dims};
use crate::dtype::{self, DType};
use crate::error::{Count, DTypeError, DimsError, DimsErrorKind, LayoutError, LayoutErrorKind, Result, Tuple};
use crate::layout::rank_mismatch;

impl FieldSpec {
    /// Permutes the dimensions into the expected order, and sets dims and origin. A copy of the field cannot fix the errors here.
    pub(super) fn orient(&self, field: &mut Descriptor) -> Result<()> {
        if field.ndim() != self.dims_len || !field.set_default_metadata(&self.default_metadata) {
            match &self.dims {
                Some(dims) => orient_labelled(dims, field)?,
                None => self.check_ndim(field)?,
            }
            set_default_origin(field)?;
        }
        if let Some(wanted) = &self.shape {
            check_shape(wanted, field)?;
        }
        if let Some(boundary) = &self.boundary {
            check_boundary(boundary, field)?;
        }
        if self.access.writes() {
            field.check_writable("access")?;
        }
        Ok(())
    }

    /// Checks the number of dimensions of a field whose labels do not matter.
    fn check_ndim(&self, field: &Descriptor) -> Result<(), LayoutError> {
        match self.ndim() {
            Some(wanted) if wanted != field.ndim() => Err(rank_mismatch(wanted, field.shape())),
            _ => Ok(()),
        }
    }

    /// Checks what a copy could fix: device, element type and alignment.
    pub(super) fn check_memory(&self, field: &Descriptor, device: Device) -> Result<()> {
        if !device.can_access(field.device()) {
            return Err(device::mismatch(field.device(), device).into());
        }
        if field.dtype() != self.usual_dtype && !self.accepts(field.dtype()) {
            return Err(self.unlike(field.dtype()).into());
        }
        if !matches!(self.alignment, WantedAlignment::None) && field.size() > 0 {
            self.alignment.check(field)?;
        }
        Ok(())
    }

    /// The error for another element type.
    #[cold]
    fn unlike(&self, found: DType) -> DTypeError {
        let wanted: Vec<&str> = self.declared_dtypes().iter().map(|dtype| dtype.name()).collect();
        dtype::mismatch(found, &wanted.join(" or "))
    }

    /// Returns whether the strides are in another order than the fast one. Dimensions that fetch nothing more, with an extent
    /// of 1 or a stride of 0, may be anywhere.
    #[inline]
    pub(super) fn is_slow(&self, field: &Descriptor) -> bool {
        !self.any_layout && self.is_out_of_order(field)
    }

    fn is_out_of_order(&self, field: &Descriptor) -> bool {
        let Some(layout) = self.fast_layout(field) else { return false };
        let step = |axis: usize| {
            let stride = field.strides()[axis].unsigned_abs();
            (field.shape()[axis] != 1 && stride != 0).then_some(stride)
        };
        !field.shape().contains(&0) && !layout.axes().filter_map(step).is_sorted_by(|one, next| one >= next)
    }
}

/// Permutes the dimensions of a field with labels into the expected order, and labels one that has none.
///
/// # Errors
/// [`DimsError`] for other labels, and for another number of dimensions.
pub(crate) fn orient_labelled(wanted: &Dims, field: &mut Descriptor) -> Result<()> {
    let unlike = |found: String, order: &str| {
        let expected = format_args!("({wanted}), {order}");
        DimsError::new("dims", &expected, &found).with_kind(DimsErrorKind::Mismatch)
    };
    match field.dims() {
        Some(dims) if dims != wanted => {
            let found: SmallVec<[Dim; 6]> = dims.iter().collect();
            let axes = wanted.iter().map(|wanted| found.iter().position(|dim| *dim == wanted));
            let axes: Option<SmallVec<[usize; 6]>> = axes.collect();
            let axes = axes.filter(|axes| axes.len() == found.len());
            field.permute(&axes.ok_or_else(|| unlike(format!("({dims})"), "in any order"))?);
        }
        Some(_) => {}
        None if field.ndim() != wanted.len() => {
            let found = format!("{} without labels", Count(field.ndim(), "dimension"));
            return Err(unlike(found, "in this order, or labelled in any order").into());
        }
        None => field.set_dims(wanted.clone())?,
    }
    Ok(())
}

/// Sets the origin of a field without one: the lower halo, or zeros.
fn set_default_origin(field: &mut Descriptor) -> Result<(), LayoutError> {
    if field.origin().is_some() {
        return Ok(());
    }
    let lower = field.halo().map(|halo| halo.iter().map(|(lower, _)| *lower).collect());
    field.set_origin(lower.unwrap_or_else(|| vec![0; field.ndim()].into()))
}

/// Checks that a kernel which begins at the origin reads no point before the field.
fn check_boundary(boundary: &[(i64, i64)], field: &Descriptor) -> Result<(), LayoutError> {
    let origin = field.origin().unwrap_or_default();
    if origin.iter().zip(boundary).all(|(origin, (lower, _))| origin >= lower) {
        return Ok(());
    }
    let least: Vec<i64> = origin.iter().zip(boundary).map(|(origin, (lower, _))| *origin.max(lower)).collect();
    let expected = format_args!("{} or more, as the kernel reads points below its domain", Tuple(&least));
    Err(LayoutError::new("origin", &expected, &Tuple(origin))
        .with_fix(&format_args!("pass a field with a halo, or state origin={}", Tuple(&least)))
        .with_kind(LayoutErrorKind::Mismatch))
}

fn check_shape(wanted: &[Size], field: &Descriptor) -> Result<(), LayoutError> {
    for (axis, (wanted, got)) in wanted.iter().zip(field.shape()).enumerate() {
        if let Size::Fixed(wanted) = wanted
            && wanted != got
        {
            let expected = format_args!("{} in {}", Count(*wanted, "point"), dimension(field, axis));
            return Err(LayoutError::new("shape", &expected, got).with_kind(LayoutErrorKind::Mismatch));
        }
    }
    Ok(())
}
