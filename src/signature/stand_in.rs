//! Copies that stand in for fields that do not fit.

#![allow(unsafe_code, reason = "copies reach memory by its address")]

use super::FieldSpec;
use crate::copy::can_cast;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::{DType, DTypeError};
use crate::error::{Error, Result};
use crate::layout::{Layout, Spec};
use crate::memory::cuda::is_available;
use crate::tensor::{Tensor, refuse_brief_memory};

/// A copy of the kind that is wanted, and the field that it stands in for.
#[derive(Clone, Debug)]
pub(crate) struct StandIn {
    ours: Tensor,
    theirs: Tensor,
}

impl StandIn {
    /// Allocates a copy, and fills it with nothing yet.
    pub(crate) fn of(spec: &FieldSpec, theirs: Tensor, device: Device) -> Result<StandIn> {
        refuse_brief_memory(device)?;
        refuse_brief_memory(theirs.descriptor().device())?;
        Ok(StandIn { ours: Tensor::empty(&spec.stand_in(theirs.descriptor(), device))?, theirs })
    }

    /// A copy of a tensor, of which `oriented` is the description in the wanted order of dimensions, with its elements.
    ///
    /// # Errors
    /// [`ExchangeError::Lent`](crate::ExchangeError::Lent) if another library was given the memory, and as for
    /// [`Tensor::assign`].
    pub(super) fn filled(spec: &FieldSpec, tensor: &Tensor, oriented: Descriptor, device: Device) -> Result<StandIn> {
        // Before memory is had for what is refused.
        tensor.owner().check_not_exported()?;
        let copy = StandIn::of_tensor(spec, tensor, oriented, device)?;
        // SAFETY: nobody has the memory who could write to it in safe code, and nobody knows the copy yet.
        tensor.owner().read(|| unsafe { copy.fill() })??;
        Ok(copy)
    }

    /// As [`StandIn::filled`], of memory that others have too.
    ///
    /// # Safety
    /// - Nobody writes to the tensor's memory meanwhile.
    pub(super) unsafe fn filled_shared(
        spec: &FieldSpec,
        tensor: &Tensor,
        oriented: Descriptor,
        device: Device,
    ) -> Result<StandIn> {
        let copy = StandIn::of_tensor(spec, tensor, oriented, device)?;
        // SAFETY: passed on from the caller, and nobody knows the copy yet.
        unsafe { copy.fill() }?;
        Ok(copy)
    }

    fn of_tensor(spec: &FieldSpec, tensor: &Tensor, oriented: Descriptor, device: Device) -> Result<StandIn> {
        // SAFETY: the same elements, kept by the same owner.
        StandIn::of(spec, unsafe { Tensor::from_parts(oriented, tensor.owner().clone()) }, device)
    }

    /// The copy.
    pub(crate) fn tensor(&self) -> &Tensor {
        &self.ours
    }

    /// Copies the field's elements, to begin with.
    ///
    /// # Safety
    /// - Nobody writes the field, or uses the copy, meanwhile.
    pub(crate) unsafe fn fill(&self) -> Result<()> {
        // SAFETY: our own memory, which nobody uses by the caller's word.
        unsafe { self.ours.assign(&self.theirs) }
    }

    /// Copies the elements back.
    ///
    /// # Safety
    /// - The field may be written, and nobody else uses it, or writes the copy, meanwhile.
    pub(crate) unsafe fn copy_back(&self) -> Result<()> {
        // SAFETY: passed on from the caller.
        unsafe { self.theirs.assign(&self.ours) }
    }
}

impl FieldSpec {
    /// Whether a copy could stand in for the field, and be copied back if it is written.
    pub(crate) fn is_copyable(&self, field: &Descriptor, device: Device) -> bool {
        let read = field.device().is_host_readable() || field.device().is_cuda() && is_available();
        let had = device == Device::CPU || device.is_of_cuda() && is_available();
        // Elements are converted by the host.
        let converted = field.dtype() == self.dtype || field.device().is_host_readable() || device.is_host_readable();
        read && had && converted && self.uncopyable(field).is_none()
    }

    /// Why a copy could not stand in for the field, if that is because of the element types.
    pub(crate) fn uncopyable(&self, field: &Descriptor) -> Option<Error> {
        let refused = |from: DType, to: DType| {
            (!can_cast(from, to)).then(|| DTypeError::Cast { from: from.name(), to: to.name() }.into())
        };
        let back = || self.access.writes().then(|| refused(self.dtype, field.dtype())).flatten();
        refused(field.dtype(), self.dtype).or_else(back)
    }

    /// What to allocate to stand in for a field.
    fn stand_in(&self, field: &Descriptor, device: Device) -> Spec {
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
