//! Copies that stand in for fields that do not fit.

use super::FieldSpec;
use crate::copy::can_cast;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::layout::{Layout, Spec};

impl FieldSpec {
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
