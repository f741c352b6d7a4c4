//! Copies that stand in for fields that do not fit.

#![allow(unsafe_code, reason = "copies reach memory by its address")]

use super::FieldSpec;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::Result;
use crate::tensor::Tensor;

/// A copy of the kind that is wanted, and the field that it stands in for.
#[derive(Clone, Debug)]
pub(crate) struct StandIn {
    ours: Tensor,
    theirs: Tensor,
}

impl StandIn {
    /// Allocates a copy, and fills it with nothing yet.
    pub(crate) fn of(spec: &FieldSpec, theirs: Tensor, device: Device) -> Result<StandIn> {
        Ok(StandIn { ours: Tensor::empty(&spec.stand_in(theirs.descriptor(), device))?, theirs })
    }

    /// A copy of a tensor, of which `oriented` is the description in the wanted order of dimensions.
    pub(super) fn filled(spec: &FieldSpec, tensor: &Tensor, oriented: Descriptor, device: Device) -> Result<StandIn> {
        // SAFETY: the same elements, kept by the same owner.
        let theirs = unsafe { Tensor::from_parts(oriented, tensor.owner().clone()) };
        let copy = StandIn::of(spec, theirs, device)?;
        // SAFETY: a tensor's elements are readable while it lives, and nobody knows the copy yet.
        unsafe { copy.fill() }?;
        Ok(copy)
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
