//! Temporary copies of fields that do not fit, which are written back: NumPy's `WRITEBACKIFCOPY`.

#![allow(unsafe_code, reason = "copies reach memory by its address")]

use std::borrow::Cow;

use super::FieldSpec;
use super::alignment::WantedAlignment;
use crate::copy::can_cast;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::{DType, no_cast};
use crate::error::{Error, Result};
use crate::layout::{Layout, Spec};
use crate::memory::cuda::is_available;
use crate::tensor::{Owner, Tensor, refuse_brief_memory};

/// A temporary field of the expected kind, and the original that it replaces for a call.
#[derive(Clone, Debug)]
pub(crate) struct Writeback {
    temporary: Tensor,
    original: Tensor,
}

impl Writeback {
    /// Allocates the temporary, without values yet, for the memory that a descriptor and its owner say: with [`Owner::NONE`], the
    /// caller keeps it.
    pub(crate) fn of(spec: &FieldSpec, original: Descriptor, owner: Owner, device: Device) -> Result<Writeback> {
        refuse_brief_memory(device)?;
        refuse_brief_memory(original.device())?;
        let temporary = Tensor::empty(&spec.temporary_spec(&original, device))?;
        // SAFETY: only `fill` and `copy_back` use the elements, whose callers promise that the memory is there.
        let original = unsafe { Tensor::from_parts(original, owner) };
        Ok(Writeback { temporary, original })
    }

    /// The temporary.
    pub(crate) fn tensor(&self) -> &Tensor {
        &self.temporary
    }

    /// Copies the original's elements to the temporary.
    ///
    /// # Safety
    /// - The original's memory is there. No other code writes to it, or uses the temporary, meanwhile.
    pub(crate) unsafe fn fill(&self) -> Result<()> {
        // SAFETY: the temporary is this crate's own memory; by this function's contract, the original is there and nobody interferes.
        unsafe { self.temporary.assign(&self.original) }
    }

    /// Copies the original's elements to the temporary, which no other code has yet. The original's owner keeps its memory.
    ///
    /// # Errors
    /// [`ExchangeError`](crate::ExchangeError) if another library was given the original's memory, and as for
    /// [`Tensor::assign`].
    pub(super) fn fill_unexported(&self) -> Result<()> {
        // SAFETY: the owner keeps the memory, which is not exported, so safe code cannot write to it. No other code has the copy yet.
        self.original.owner().read(|| unsafe { self.fill() })?
    }

    /// Copies the elements back to the original.
    ///
    /// # Safety
    /// - The original's memory is there and may be written to. No other code uses it, or writes to the temporary, meanwhile.
    pub(crate) unsafe fn copy_back(&self) -> Result<()> {
        // SAFETY: by this function's contract, the original may be written to and nobody interferes.
        unsafe { self.original.assign(&self.temporary) }
    }
}

/// What the kernel gets for a field.
#[derive(Debug)]
pub(crate) enum Fit {
    /// The field's memory.
    Direct,
    /// The same, although its layout is slow.
    Slow,
    /// A temporary copy: because of this error, else because the layout is slow.
    Copied(Option<Box<Error>>),
}

impl FieldSpec {
    /// Checks what a copy could fix, and decides about a copy; `copies` allows it.
    ///
    /// # Errors
    /// That of device, element type or alignment; for a field that cannot be copied because of its element type, that of the cast.
    #[inline(always)]
    pub(super) fn fit(&self, field: &Descriptor, device: Device, copies: bool) -> Result<Fit> {
        match self.check_memory(field, device) {
            Ok(()) if !self.is_slow(field) => Ok(Fit::Direct),
            checked => self.fit_otherwise(field, device, copies, checked.err()),
        }
    }

    #[cold]
    fn fit_otherwise(&self, field: &Descriptor, device: Device, copies: bool, error: Option<Error>) -> Result<Fit> {
        if copies && self.is_copyable(field, device) {
            return Ok(Fit::Copied(error.map(Box::new)));
        }
        match error {
            None => Ok(Fit::Slow),
            Some(error) if copies => Err(self.uncopyable(field).unwrap_or(error)),
            Some(error) => Err(error),
        }
    }

    /// Whether the field can be copied to a temporary, and back if it is written.
    fn is_copyable(&self, field: &Descriptor, device: Device) -> bool {
        let read = field.device().is_host_readable() || field.device().is_cuda() && is_available();
        let had = device == Device::CPU || device.is_of_cuda() && is_available();
        // Elements are converted by the host.
        let converted = self.accepts(field.dtype()) || field.device().is_host_readable() || device.is_host_readable();
        read && had && converted && self.uncopyable(field).is_none()
    }

    /// Why it cannot, if that is because of the element types.
    fn uncopyable(&self, field: &Descriptor) -> Option<Error> {
        let refused = |from: DType, to: DType| (!can_cast(from, to)).then(|| no_cast(from, to).into());
        let (original, copy) = (field.dtype(), self.dtype_of_copy(field.dtype()));
        let back = || self.access.writes().then(|| refused(copy, original)).flatten();
        refused(original, copy).or_else(back)
    }

    /// Whether the temporary of a field is also one for the same elements under the other specification.
    pub(super) fn has_same_temporary(&self, field: &Descriptor, other: &FieldSpec, other_field: &Descriptor) -> bool {
        let kind = |spec: &FieldSpec, field: &Descriptor| {
            let layout = spec.fast_layout(field).map(Cow::into_owned);
            let preset = spec.declared_preset().cloned();
            (spec.dtype_of_copy(field.dtype()), field.dims().cloned(), layout, preset, spec.alignment)
        };
        kind(self, field) == kind(other, other_field)
    }

    /// What to allocate as the temporary for a field.
    fn temporary_spec(&self, field: &Descriptor, device: Device) -> Spec {
        let layout = self.fast_layout(field).map(Cow::into_owned);
        let layout = layout.unwrap_or_else(|| Layout::of_strides(field.shape(), field.strides()));
        let mut spec = Spec::new(field.shape(), self.dtype_of_copy(field.dtype())).layout(layout).with_device(device);
        if let Some(preset) = self.declared_preset() {
            spec = spec.preset(preset.clone());
        }
        if let (_, Some(bytes)) = self.explicit() {
            spec = spec.alignment_size(bytes);
        }
        if let Some(dims) = field.dims() {
            spec = spec.dims(dims.clone());
        }
        if let Some(halo) = field.halo() {
            spec = spec.halo(halo);
        }
        let Some(origin) = field.origin() else { return spec };
        let of_base = matches!(self.alignment, WantedAlignment::BaseBytes(_));
        if of_base { spec.origin(origin) } else { spec.origin(origin).aligned_index(origin) }
    }
}
