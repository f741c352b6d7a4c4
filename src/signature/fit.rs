//! Checks of one field against its specification.

use smallvec::SmallVec;

use super::FieldSpec;
use crate::descriptor::Descriptor;
use crate::device::{Device, DeviceError};
use crate::dims::{Dim, DimsError};
use crate::dtype::DTypeError;
use crate::error::Result;
use crate::layout::LayoutError;

impl FieldSpec {
    /// As [`FieldSpec::orient`], on a copy of the descriptor.
    pub(super) fn oriented(&self, field: &Descriptor) -> Result<Descriptor> {
        let mut field = field.clone();
        self.orient(&mut field)?;
        Ok(field)
    }

    /// Permutes the dimensions into the wanted order, and sets dims and origin. A copy of the field cannot fix the errors here.
    #[doc(hidden)]
    pub fn orient(&self, field: &mut Descriptor) -> Result<()> {
        if field.ndim() != self.dims.len() || !field.set_default_metadata(&self.default_metadata) {
            self.orient_labelled(field)?;
        }
        if let Some(wanted) = &self.shape {
            self.check_shape(wanted, field.shape())?;
        }
        if self.access.writes() {
            field.check_writable("access")?;
        }
        Ok(())
    }

    fn orient_labelled(&self, field: &mut Descriptor) -> Result<()> {
        let unlike = |found: String| DimsError::Unlike { found, wanted: format!("({})", self.dims) };
        match field.dims() {
            Some(dims) if *dims != self.dims => {
                let found: SmallVec<[Dim; 6]> = dims.iter().collect();
                let axes = self.dims.iter().map(|wanted| found.iter().position(|dim| *dim == wanted));
                let axes: Option<SmallVec<[usize; 6]>> = axes.collect();
                let axes = axes.filter(|axes| axes.len() == found.len());
                field.permute(&axes.ok_or_else(|| unlike(format!("({dims})")))?);
            }
            Some(_) => {}
            None if field.ndim() != self.dims.len() => {
                return Err(unlike(format!("{} dimensions without labels", field.ndim())).into());
            }
            None => field.set_dims(self.dims.clone())?,
        }
        if field.origin().is_none() {
            let lower = field.halo().map(|halo| halo.iter().map(|(lower, _)| *lower).collect());
            field.set_origin(lower.unwrap_or_else(|| vec![0; field.ndim()].into()))?;
        }
        Ok(())
    }

    fn check_shape(&self, wanted: &[Option<i64>], found: &[i64]) -> Result<(), LayoutError> {
        for ((wanted, got), label) in wanted.iter().zip(found).zip(self.dims.iter()) {
            if let Some(wanted) = wanted
                && wanted != got
            {
                return Err(LayoutError::Extent { label: label.to_string(), got: *got, wanted: *wanted });
            }
        }
        Ok(())
    }

    /// Checks what a copy could fix: device, element type and alignment.
    pub(super) fn check_memory(&self, field: &Descriptor, device: Device) -> Result<()> {
        if !device.can_access(field.device()) {
            return Err(DeviceError::Mismatch { found: field.device(), wanted: device }.into());
        }
        if field.dtype() != self.dtype {
            return Err(DTypeError::Unlike { found: field.dtype().name(), wanted: self.dtype.name() }.into());
        }
        if self.alignment_size > 1 && field.size() > 0 {
            let start = first_address(field);
            if !usize::try_from(self.alignment_size).is_ok_and(|size| start.is_multiple_of(size)) {
                return Err(LayoutError::Alignment { address: start, wanted: self.alignment_size }.into());
            }
        }
        Ok(())
    }

    /// Returns whether the strides are in another order than the fast one. Dimensions that fetch nothing more, with an extent
    /// of 1 or a stride of 0, may be anywhere.
    pub(super) fn is_slow(&self, field: &Descriptor) -> bool {
        let Some(layout) = &self.layout else { return false };
        let step = |axis: usize| {
            let stride = field.strides()[axis].unsigned_abs();
            (field.shape()[axis] != 1 && stride != 0).then_some(stride)
        };
        !field.shape().contains(&0) && !layout.axes().into_iter().filter_map(step).is_sorted_by(|one, next| one >= next)
    }
}

/// Returns the address of the first compute point.
fn first_address(field: &Descriptor) -> usize {
    let origin = field.origin().unwrap_or_default();
    let bytes = origin.iter().zip(field.byte_strides()).map(|(index, stride)| index.wrapping_mul(stride));
    let bytes = bytes.fold(0i64, i64::wrapping_add);
    field.ptr().addr().wrapping_add_signed(isize::try_from(bytes).unwrap_or(0))
}
