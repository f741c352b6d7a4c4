//! Allocation of tensors, and copies.

#![allow(unsafe_code, reason = "fresh memory is reached through its address")]

use super::device::refuse_brief_memory;
use super::{Element, Owner, Tensor};
use crate::copy;
use crate::descriptor::Descriptor;
use crate::dtype::{self, DType};
#[cfg(doc)]
use crate::error::ExchangeError;
use crate::error::Result;
use crate::layout::{Extents, Promise, Spec};
use crate::memory::Contents;

impl Tensor {
    /// Allocates a field with undefined elements; bools are false.
    ///
    /// # Errors
    /// As for [`Spec::place`]; [`crate::DeviceError`] for a device without support; [`crate::MemoryError`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::empty(&Spec::new(&[3, 5], DType::F32).alignment_size(32)).unwrap();
    /// assert_eq!(field.descriptor().strides(), [8, 1]);
    /// assert!(field.descriptor().alignment() >= 32);
    /// ```
    pub fn empty(spec: &Spec) -> Result<Tensor> {
        Tensor::allocate(spec, Contents::of_new(spec.dtype()))
    }

    /// Allocates a field of zeros; the padding is zero too.
    ///
    /// # Errors
    /// As for [`Tensor::empty`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Preset, Spec, Tensor};
    /// let spec = Spec::new(&[3, 5], DType::F32).preset(Preset::find("F").unwrap());
    /// assert_eq!(Tensor::zeros(&spec).unwrap().descriptor().strides(), [1, 3]);
    /// ```
    pub fn zeros(spec: &Spec) -> Result<Tensor> {
        Tensor::allocate(spec, Contents::Zeros)
    }

    /// Allocates a field and sets every element to `value`.
    ///
    /// # Errors
    /// As for [`Tensor::empty`], and [`crate::DTypeError`] if the element type of `spec` is not that of `value`.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let spec = Spec::new(&[4], DType::F64);
    /// let field = Tensor::full(&spec, 2.5).unwrap();
    /// assert_eq!(field.descriptor().size(), 4);
    /// assert_eq!(Tensor::full(&spec, 2.5f32).unwrap_err().to_string(), "dtype: expected float64, got float32");
    /// ```
    pub fn full<T: Element>(spec: &Spec, value: T) -> Result<Tensor> {
        check_value::<T>(spec.dtype())?;
        Tensor::full_bytes(spec, bytes_of(&value))
    }

    /// As [`Tensor::full`], with the bytes of one element: for element types that are known at run time only.
    #[doc(hidden)]
    pub fn full_bytes(spec: &Spec, element: &[u8]) -> Result<Tensor> {
        let mut tensor = Tensor::BLANK;
        tensor.allocate_full(spec, element)?;
        Ok(tensor)
    }

    /// Allocates a field and copies the elements of `from`, of the same shape, into it, cast to the field's element type.
    ///
    /// # Errors
    /// As for [`Tensor::empty`], [`crate::LayoutError`] if the shapes differ, [`crate::DTypeError`] if
    /// [`can_cast`](crate::can_cast) forbids the cast, and [`ExchangeError`] if the memory was exported to another
    /// library: [`Tensor::copy_of_shared`] copies that.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Preset, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[3, 5], DType::F32)).unwrap();
    /// let spec = Spec::new(&[3, 5], DType::F64).preset(Preset::find("F").unwrap());
    /// assert_eq!(Tensor::copy_of(&spec, &field).unwrap().descriptor().dtype(), DType::F64);
    /// ```
    pub fn copy_of(spec: &Spec, from: &Tensor) -> Result<Tensor> {
        // Before allocating.
        from.owner.check_not_exported()?;
        let copy = Tensor::allocate(spec, Contents::Undefined)?;
        // SAFETY: the memory is not exported, so safe code cannot write to it, and no other code has the copy yet.
        from.owner.read(|| unsafe { copy.fill_from(from) })??;
        Ok(copy)
    }

    /// As [`Tensor::copy_of`], also for memory that was exported.
    ///
    /// # Errors
    /// As for [`Tensor::copy_of`].
    ///
    /// # Safety
    /// - No other code writes to the memory of `from` meanwhile; on a device, until its current stream has finished the work.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4], DType::F32)).unwrap();
    /// let lent = field.to_versioned(false).unwrap();
    /// assert!(field.copy().is_err());
    /// // SAFETY: what was lent is here, and nothing is done with it.
    /// let copy = unsafe { Tensor::copy_of_shared(&field.spec(), &field) }.unwrap();
    /// assert_eq!(copy.descriptor().shape(), [4]);
    /// drop(lent);
    /// ```
    pub unsafe fn copy_of_shared(spec: &Spec, from: &Tensor) -> Result<Tensor> {
        let copy = Tensor::allocate(spec, Contents::Undefined)?;
        // SAFETY: passed on from the caller: nobody writes to `from`. No other code has the copy yet.
        unsafe { copy.fill_from(from) }?;
        Ok(copy)
    }

    /// Copies the elements of another tensor into this one, as `to[...] = from` does: dimensions of extent 1, and missing
    /// leading ones, are repeated, and elements are cast by the rule of [`can_cast`](crate::can_cast). The two may overlap, and
    /// may be on different devices, whose current streams do the work: see [`crate::cuda`].
    ///
    /// # Errors
    /// [`crate::LayoutError`] or [`crate::DTypeError`] if the two don't fit, [`crate::DeviceError`] if either cannot be
    /// reached, or if the copy would have to wait for a captured stream, [`crate::MemoryError`] if there is no memory for a
    /// temporary.
    ///
    /// # Safety
    /// - This tensor's memory may be written, also if it is marked as read-only. Meanwhile no other code reads or writes it, or
    ///   writes to that of `from`; on a device, until its current stream has finished the work.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let row = Tensor::full(&Spec::new(&[5], DType::F32), 1.5f32).unwrap();
    /// // SAFETY: the field is fresh, and nobody else has it.
    /// unsafe { field.assign(&row) }.unwrap();
    /// // SAFETY: an element of the field.
    /// assert_eq!(unsafe { *field.descriptor().ptr().cast::<f64>() }, 1.5);
    /// ```
    pub unsafe fn assign(&self, from: &Tensor) -> Result<()> {
        let overlaps = self.descriptor.overlaps(&from.descriptor);
        if !overlaps && self.is_of_host_alone() && from.is_of_host_alone() {
            // SAFETY: passed on from the caller; no device uses either.
            return unsafe { copy::assign(&self.descriptor, &from.descriptor) };
        }
        if overlaps {
            refuse_brief_memory(self.descriptor.device())?;
            refuse_brief_memory(from.descriptor.device())?;
            // SAFETY: passed on from the caller; a copy overlaps nothing.
            return unsafe {
                let copy = Tensor::copy_of_shared(&from.spec(), from)?;
                self.written_from(&copy, copy::assign)
            };
        }
        // SAFETY: passed on from the caller.
        unsafe { self.written_from(from, copy::assign) }
    }

    /// Sets every element to `value`, also on a device. It is safe because no other code has the memory: the tensor must have no clone
    /// or view, here or in another library, and own its memory.
    ///
    /// # Errors
    /// [`ExchangeError`] otherwise; [`crate::LayoutError`] for read-only memory; [`crate::DTypeError`] if the tensor's element type is not
    /// that of `value`; [`crate::DeviceError`] if the memory cannot be reached.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let mut field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// field.fill(2.5).unwrap();
    /// // SAFETY: an element of the field.
    /// assert_eq!(unsafe { *field.descriptor().ptr().cast::<f64>() }, 2.5);
    /// let view = field.clone();
    /// assert!(field.fill(0.0).unwrap_err().to_string().starts_with("owner: expected a tensor that is the only owner"));
    /// drop(view);
    /// ```
    pub fn fill<T: Element>(&mut self, value: T) -> Result<()> {
        check_value::<T>(self.descriptor.dtype())?;
        self.check_sole_writer()?;
        // SAFETY: the tensor keeps its memory, which is writable, and is its only owner.
        unsafe { self.fill_bytes(bytes_of(&value)) }
    }

    /// Rejects memory that other code may use, and read-only memory. What was exported and is back may be read again.
    pub(crate) fn check_sole_writer(&mut self) -> Result<()> {
        self.owner.check_exclusive()?;
        self.owner.clear_exported();
        self.descriptor.check_writable("readonly")
    }

    /// Sets every element to `element`, bit for bit: for element types that are known at run time only.
    ///
    /// # Errors
    /// [`crate::DTypeError`] if `element` has another size than one element, [`crate::DeviceError`] if the memory
    /// cannot be reached.
    ///
    /// # Safety
    /// - This tensor's memory may be written, also if it is marked as read-only, and no other code reads or writes it
    ///   meanwhile; on a device, until its current stream has finished the work.
    #[doc(hidden)]
    pub unsafe fn fill_bytes(&self, element: &[u8]) -> Result<()> {
        self.before_use_by(copy::fill_executor(&self.descriptor)?)?;
        // SAFETY: passed on from the caller.
        unsafe { copy::fill(&self.descriptor, element, false) }
    }

    /// Copies the elements of another tensor into this fresh one.
    ///
    /// # Safety
    /// - No other code has this tensor, and none writes to the memory of `from` meanwhile.
    unsafe fn fill_from(&self, from: &Tensor) -> Result<()> {
        // SAFETY: a tensor's elements are readable while it lives; this one is fresh, so nothing overlaps.
        unsafe { self.written_from(from, copy::copy) }
    }

    /// Copies the field into writable memory of its own, with the same layout, padding, alignment and labels.
    ///
    /// # Errors
    /// As for [`Tensor::empty`], and [`ExchangeError`] if the memory was exported to another library:
    /// [`Tensor::copy_of_shared`] copies that.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[3, 5], DType::F32).alignment_size(64)).unwrap();
    /// assert_eq!(field.copy().unwrap().descriptor().strides(), field.descriptor().strides());
    /// ```
    pub fn copy(&self) -> Result<Tensor> {
        Tensor::copy_of(&self.spec(), self)
    }

    /// Returns the spec of a field like this one: same element type, shape, labels, layout, padding, alignment and device.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Preset, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 2), (0, 1)])).unwrap();
    /// let like = Tensor::zeros(&field.spec().with_dtype(DType::F32)).unwrap();
    /// assert_eq!(like.halo(), field.halo());
    /// // A copy in the layout of a preset, with the same labels.
    /// let turned = Tensor::copy_of(&field.spec().preset(Preset::find("F").unwrap()), &field).unwrap();
    /// assert_eq!(turned.descriptor().strides(), [1, 4]);
    /// ```
    pub fn spec(&self) -> Spec {
        let promise = Promise { layout: Some(self.layout()), ..self.promise.clone() };
        self.descriptor.spec_with(promise)
    }

    fn allocate(spec: &Spec, contents: Contents) -> Result<Tensor> {
        let mut tensor = Tensor::BLANK;
        tensor.allocate_in_place(spec, contents)?;
        Ok(tensor)
    }
}

/// Rejects a value of another element type.
fn check_value<T: Element>(dtype: DType) -> Result<()> {
    if T::DTYPE == dtype { Ok(()) } else { Err(dtype::mismatch(T::DTYPE, &dtype).into()) }
}

/// Returns the bytes of an element.
fn bytes_of<T: Element>(value: &T) -> &[u8] {
    // SAFETY: elements are numbers and bools, without padding, so all bytes are initialized.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Allocation in place, in a blank tensor: for a binding, moving a tensor takes longer than making it.
impl Tensor {
    /// As [`Tensor::empty`] or [`Tensor::zeros`].
    ///
    /// # Errors
    /// As for these. The tensor has no elements then.
    pub(crate) fn allocate_in_place(&mut self, spec: &Spec, contents: Contents) -> Result<()> {
        let mut strides = Extents::new();
        let block = spec.plan(&mut strides, &mut self.promise)?;
        let (owner, start) = Owner::allocate(block.device, block.bytes, block.alignment, contents)?;
        self.owner = owner;
        self.is_whole = true;
        // `Spec::plan` has counted `first_byte` into the block's bytes.
        let start = start.wrapping_add(block.first_byte);
        self.descriptor.set(start, block.device, spec.dtype(), false, spec.shape(), &strides)?;
        if !spec.metadata().is_empty() {
            self.descriptor.relabel(spec.metadata().clone())?;
        }
        self.owner.describe_block(&self.descriptor);
        Ok(())
    }

    /// As [`Tensor::full_bytes`].
    ///
    /// # Errors
    /// As for [`Tensor::full`].
    pub(crate) fn allocate_full(&mut self, spec: &Spec, element: &[u8]) -> Result<()> {
        self.allocate_in_place(spec, Contents::Undefined)?;
        // SAFETY: the memory is fresh, so no other code has it.
        unsafe { copy::fill(&self.descriptor, element, true) }
    }

    /// As [`Tensor::copy_of_shared`], of memory on the host that no device uses, to memory on the host.
    ///
    /// # Errors
    /// As for [`Tensor::copy_of`].
    ///
    /// # Safety
    /// - For the call, all elements of `from` are readable, and no other code writes to them.
    pub(crate) unsafe fn allocate_copy_of(&mut self, spec: &Spec, from: &Descriptor) -> Result<()> {
        self.allocate_in_place(spec, Contents::Undefined)?;
        // SAFETY: passed on from the caller; the memory is fresh, so no other code has it and nothing overlaps.
        unsafe { copy::copy(&self.descriptor, from) }
    }
}
