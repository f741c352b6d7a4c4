//! Holding one field against what is wanted of it.

use smallvec::SmallVec;

use super::FieldSpec;
use crate::copy::can_cast;
use crate::descriptor::Descriptor;
use crate::device::{Device, DeviceError};
use crate::dims::{Dim, DimsError};
use crate::dtype::DTypeError;
use crate::error::Result;
use crate::layout::{Layout, LayoutError, Spec};
use crate::protocol::ExchangeError;

impl FieldSpec {
    /// As [`FieldSpec::orient`], of a field that stays as it is.
    pub(super) fn oriented(&self, field: &Descriptor) -> Result<Descriptor> {
        let mut field = field.clone();
        self.orient(&mut field)?;
        Ok(field)
    }

    /// Brings the dimensions into the wanted order, and sees to it that dims and origin are stated. What is wrong here
    /// no copy can mend.
    pub(crate) fn orient(&self, field: &mut Descriptor) -> Result<()> {
        if field.ndim() != self.dims.len() || !field.label_plain(&self.labels) {
            self.orient_labelled(field)?;
        }
        if let Some(wanted) = &self.shape {
            self.check_shape(wanted, field.shape())?;
        }
        if self.access.writes() {
            check_writable(field)?;
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

    /// Checks what a copy could mend: where the memory is, its element type and alignment.
    pub(crate) fn check_memory(&self, field: &Descriptor, device: Device) -> Result<()> {
        if field.device() != device {
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

    /// Whether the order of strides is another one than is fast.
    pub(crate) fn is_slow(&self, field: &Descriptor) -> bool {
        let Some(layout) = &self.layout else { return false };
        let step = |axis: usize| (field.shape()[axis] != 1).then(|| field.strides()[axis].unsigned_abs());
        !field.shape().contains(&0) && !layout.axes().into_iter().filter_map(step).is_sorted_by(|one, next| one >= next)
    }

    /// Whether a copy could stand in for the field, and be copied back if it is written.
    pub(crate) fn is_copyable(&self, field: &Descriptor, device: Device) -> bool {
        let back = !self.access.writes() || can_cast(self.dtype, field.dtype());
        back && can_cast(field.dtype(), self.dtype) && field.device().is_host_readable() && device == Device::CPU
    }

    /// What to allocate to stand in for a field.
    pub(crate) fn stand_in(&self, field: &Descriptor, device: Device) -> Spec {
        let layout = self.layout.clone().unwrap_or_else(|| Layout::of_strides(field.shape(), field.strides()));
        let mut spec = Spec::new(field.shape(), self.dtype)
            .dims(self.dims.clone())
            .layout(layout)
            .alignment_size(self.alignment_size)
            .device(device);
        if let Some(halo) = field.halo() {
            spec = spec.halo(halo);
        }
        match field.origin() {
            Some(origin) => spec.origin(origin).aligned_index(origin),
            None => spec,
        }
    }
}

/// The address of the first compute point.
fn first_address(field: &Descriptor) -> usize {
    let origin = field.origin().unwrap_or_default();
    let bytes = origin.iter().zip(field.byte_strides()).map(|(index, stride)| index.wrapping_mul(stride));
    let bytes = bytes.fold(0i64, i64::wrapping_add);
    field.ptr().addr().wrapping_add_signed(isize::try_from(bytes).unwrap_or(0))
}

/// Refuses to write memory that is read-only, or whose elements share bytes with each other.
fn check_writable(field: &Descriptor) -> Result<()> {
    if field.is_readonly() {
        let fix = "it is written, so pass an array that may be written";
        return Err(ExchangeError::ReadOnly { field: "access", fix }.into());
    }
    if field.is_c_contiguous() {
        return Ok(());
    }
    let steps = field.shape().iter().zip(field.strides());
    let mut steps: SmallVec<[(u64, u64); 6]> = steps
        .filter(|(extent, _)| **extent != 1)
        .map(|(extent, step)| (step.unsigned_abs(), extent.unsigned_abs()))
        .collect();
    steps.sort_unstable();
    let mut reach = 1u64;
    let apart = steps.iter().all(|(step, extent)| {
        let apart = *step >= reach;
        reach = reach.saturating_add(step.saturating_mul(extent.saturating_sub(1)));
        apart
    });
    if apart || field.shape().contains(&0) {
        return Ok(());
    }
    Err(LayoutError::SharedElements { shape: field.shape().to_vec(), strides: field.strides().to_vec() }.into())
}
