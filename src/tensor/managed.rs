//! Conversion of tensors from and to DLPack's managed tensors, both ABIs.

#![allow(unsafe_code, reason = "managed tensors are C structs with obligations the compiler cannot see")]

use std::sync::atomic::{AtomicUsize, Ordering};

use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned, DLTensor};
use dlpark::metadata::{Copied, Dynamic};
use dlpark::{DlpackFlags, Managed, ManagedTensorBase, allocation};

use super::{Owner, Tensor};
use crate::descriptor::{Descriptor, read_only, too_many_dims};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{ExchangeError, ExchangeErrorKind, Result};
use crate::memory::cuda::{Stream, StreamUses, current_stream};
use crate::protocol::dlpack;

/// As [`Tensor::from_managed`], in place: fills the descriptor and returns the owner. That is the owner in a struct that was
/// made here, else what `own` makes of the struct. The caller orders the current stream's work on CUDA memory.
///
/// # Safety
/// - As for [`Tensor::from_managed`].
pub(crate) unsafe fn consume_managed<M: ManagedTensorBase>(
    managed: Managed<M>,
    descriptor: &mut Descriptor,
    own: fn(Managed<M>) -> Owner,
) -> Result<Owner> {
    // SAFETY: a `Managed` holds a live struct, whose metadata is readable.
    let (is_legacy, exported) = unsafe {
        let header = &*managed.as_ptr();
        dlpack::read_into(descriptor, header.tensor(), header.version(), header.flags())?;
        (header.version().is_none(), owner_in(header))
    };
    if is_legacy {
        descriptor.set_readonly(true);
    }
    let Some(exported) = exported else { return Ok(own(managed)) };
    // Owning the struct too would make a chain that grows with every round trip.
    drop(managed);
    Ok(Owner::returned(exported))
}

/// Returns the owner in a managed tensor that was made here; `None` for one of another library.
///
/// # Safety
/// - The struct is a live managed tensor.
pub(crate) unsafe fn owner_in<M: ManagedTensorBase>(managed: &M) -> Option<Owner> {
    // SAFETY: a struct that was made here keeps an owner.
    is_own(managed).then(|| unsafe { Owner::clone_raw(managed.manager_ctx()) })
}

/// The deleters of the structs that [`Tensor`] has exported, of the versioned and the legacy ABI; 0 before the first export.
/// They release an [`Owner`], so a struct with one of them has an owner of this copy of the crate.
static DELETERS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

fn deleter<M: ManagedTensorBase>(header: &M) -> usize {
    header.deleter().map_or(0, |deleter| deleter as usize)
}

/// Remembers the deleter of a struct that was made here.
fn remembered<M: ManagedTensorBase>(managed: Managed<M>) -> Managed<M> {
    // SAFETY: a `Managed` holds a live struct.
    let header = unsafe { &*managed.as_ptr() };
    let (known, found) = (&DELETERS[usize::from(header.version().is_none())], deleter(header));
    if known.load(Ordering::Relaxed) != found {
        known.store(found, Ordering::Relaxed);
    }
    managed
}

/// Whether a struct was made by [`Tensor::to_versioned`] or [`Tensor::to_legacy`].
fn is_own<M: ManagedTensorBase>(header: &M) -> bool {
    let known = DELETERS[usize::from(header.version().is_none())].load(Ordering::Relaxed);
    known != 0 && deleter(header) == known
}

/// Makes the owner release CUDA memory after the work of the current stream, too. Without a driver there is no work.
pub(crate) fn in_order(owner: Owner, device: Device) -> Owner {
    let current = current_stream(device);
    if let Some(uses) = owner.stream_uses()
        && uses.record(current.used()).is_ok()
    {
        return owner;
    }
    if !device.is_of_cuda() {
        return owner;
    }
    // A producer that was told no stream orders nothing, but with blocking streams.
    let is_ordered = current.stream() == Stream::LEGACY;
    match StreamUses::of_import(device, current.used(), is_ordered) {
        Ok(uses) => owner.freed_after(uses),
        Err(_) => owner,
    }
}

impl Tensor {
    /// Returns a new managed tensor of the versioned ABI, version 1.3, that shares the memory.
    ///
    /// `copied` states that no other code has this memory; a flag tells the consumer so.
    ///
    /// From now on the safe functions that read elements, such as [`Tensor::copy`], reject the memory, as the consumer may
    /// write to it. This call waits for one that is still reading in another thread. A thread attached to Python must detach
    /// first: the reader may wait for a device, whose callbacks may need the GIL. The conversion of a returned [`Tensor`] to
    /// Python does so.
    ///
    /// # Errors
    /// [`ExchangeError`] if DLPack cannot count the dimensions, and while a guard of `Tensor::read` lives.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let managed = field.to_versioned(false).unwrap();
    /// drop(field);
    /// assert_eq!(managed.validate().unwrap().shape(), [4, 5]);
    /// ```
    ///
    /// For other languages, [`Managed::into_raw`] returns the C struct, whose receiver releases it by its deleter;
    /// [`Tensor::from_managed`] takes over a struct that comes back:
    ///
    /// ```
    /// use dlfield::dlpark::Managed;
    /// use dlfield::dlpark::ffi::DLManagedTensorVersioned;
    /// use dlfield::{DType, Spec, Tensor};
    ///
    /// /// NULL if there is no memory, or `n` is negative.
    /// #[unsafe(no_mangle)]
    /// pub extern "C" fn make_numbers(n: i64) -> *mut DLManagedTensorVersioned {
    ///     let made = Tensor::zeros(&Spec::new(&[n], DType::F64)).and_then(|numbers| numbers.to_versioned(false));
    ///     made.map_or(std::ptr::null_mut(), Managed::into_raw)
    /// }
    ///
    /// assert!(make_numbers(-1).is_null());
    /// // SAFETY: the struct is what the function says it is, and taken over once.
    /// let back = unsafe { Tensor::from_managed(Managed::from_raw(make_numbers(3)).unwrap()) }.unwrap();
    /// assert_eq!(back.descriptor().shape(), [3]);
    /// ```
    ///
    /// In a Python extension, `dlpark::python::from_dlpack` takes a `dlfield.Tensor`. Of a read-only one it takes the capsule that
    /// `tensor.__dlpack__(max_version=(1, 0))` returns: dlpark itself asks the C exchange table, which has no read-only memory.
    pub fn to_versioned(&self, copied: bool) -> Result<Managed<DLManagedTensorVersioned>> {
        let mut flags = DlpackFlags::empty();
        flags.set(DlpackFlags::READ_ONLY, self.descriptor.is_readonly());
        flags.set(DlpackFlags::IS_COPIED, copied);
        flags.set(DlpackFlags::IS_SUBBYTE_TYPE_PADDED, self.descriptor.dtype().is_sub_byte());
        let mut prepared = self.prepare::<DLManagedTensorVersioned>()?;
        prepared.set_version(dlpack::VERSION).map_err(|_| dlpack::unknown_version(dlpack::VERSION))?;
        // SAFETY: the read-only flag is set if the descriptor has it, and the caller vouches for the copy. The owner inside
        // keeps the descriptor's addresses valid.
        Ok(unsafe {
            prepared.set_flags_unchecked(flags);
            remembered(prepared.finish())
        })
    }

    /// Returns a new managed tensor of the legacy ABI that shares the memory, which is exported as by [`Tensor::to_versioned`].
    ///
    /// # Errors
    /// [`ExchangeError`] for read-only memory and padded sub-byte elements, which the legacy struct has no flags for.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// // SAFETY: the struct is what `to_legacy` says it is.
    /// let back = unsafe { Tensor::from_managed(field.to_legacy().unwrap()) }.unwrap();
    /// assert_eq!(back.descriptor().ptr(), field.descriptor().ptr());
    /// assert!(back.descriptor().is_readonly(), "a legacy struct cannot say that it is not");
    /// assert!(field.into_readonly().to_legacy().is_err());
    /// ```
    pub fn to_legacy(&self) -> Result<Managed<DLManagedTensor>> {
        self.check_flagless()?;
        // SAFETY: the owner inside keeps the descriptor's addresses valid.
        Ok(remembered(unsafe { self.prepare::<DLManagedTensor>()?.finish() }))
    }

    /// Rejects what a struct without flags cannot express.
    fn check_flagless(&self) -> Result<()> {
        if self.descriptor.is_readonly() {
            let fix = "a DLPack struct without flags has no read-only flag: take the versioned one, or a copy";
            return Err(read_only("flags", fix).into());
        }
        if self.descriptor.dtype().is_sub_byte() {
            return Err(inexpressible(self.descriptor.dtype(), "a DLPack struct without flags").into());
        }
        Ok(())
    }

    /// Takes over a managed tensor. A legacy one cannot state that it is writable, so the tensor is read-only.
    ///
    /// # Errors
    /// [`crate::Error`] naming the field at fault; the managed tensor is released.
    ///
    /// # Safety
    /// - The struct describes the memory correctly: the elements stay readable until the deleter is called, and writable unless
    ///   it is flagged read-only.
    /// - No other code writes while a safe function reads the elements, as for [`Tensor::from_parts`].
    /// - A struct that keeps an [`Owner`], as those of [`Tensor::to_versioned`], describes memory of that owner.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let managed = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap().to_versioned(false).unwrap();
    /// // SAFETY: the struct is what `to_versioned` says it is.
    /// let field = unsafe { Tensor::from_managed(managed) }.unwrap();
    /// assert_eq!((field.descriptor().shape(), field.descriptor().is_readonly()), (&[4, 5][..], false));
    /// ```
    pub unsafe fn from_managed<M: ManagedTensorBase>(managed: Managed<M>) -> Result<Tensor> {
        let mut descriptor = Descriptor::BLANK;
        // SAFETY: passed on from the caller, whose contract covers what both require.
        unsafe {
            let owner = consume_managed(managed, &mut descriptor, Owner::managed)?;
            let owner = in_order(owner, descriptor.device());
            Ok(Tensor::from_parts(descriptor, owner))
        }
    }

    /// Returns the tensor as a borrowed DLPack struct, valid as long as this value stays where it is.
    ///
    /// # Errors
    /// As for [`Tensor::to_legacy`]: a borrowed struct has no flags either.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let borrowed = field.as_dlpack().unwrap();
    /// assert_eq!((borrowed.ndim, borrowed.data.cast()), (2, field.descriptor().ptr()));
    /// ```
    pub fn as_dlpack(&self) -> Result<DLTensor> {
        self.check_flagless().map(|()| self.as_flagged_dlpack())
    }

    /// As [`Tensor::as_dlpack`], for those who pass on the flags separately.
    pub(crate) fn as_flagged_dlpack(&self) -> DLTensor {
        let descriptor = &self.descriptor;
        let pointer = |numbers: &[i64]| {
            if numbers.is_empty() { std::ptr::null_mut() } else { numbers.as_ptr().cast_mut() }
        };
        DLTensor {
            data: self.data(),
            device: descriptor.device().to_dlpack(),
            // At most MAX_NDIM.
            ndim: i32::try_from(descriptor.ndim()).unwrap_or(i32::MAX),
            dtype: descriptor.dtype().to_dlpack(),
            shape: pointer(descriptor.shape()),
            strides: pointer(descriptor.strides()),
            byte_offset: 0,
        }
    }

    /// Returns the address for DLPack, which is NULL if there are no elements.
    fn data(&self) -> *mut std::ffi::c_void {
        if self.descriptor.size() == 0 { std::ptr::null_mut() } else { self.descriptor.ptr().cast() }
    }

    fn prepare<M: ManagedTensorBase>(&self) -> Result<allocation::dynamic::Initialized<M>> {
        let descriptor = &self.descriptor;
        let metadata = Dynamic::with_storage(Copied(descriptor.shape()), Copied(descriptor.strides()));
        let prepared = metadata.prepare_as::<M>().map_err(|_| too_many_dims(descriptor.ndim()))?;
        let mut prepared = prepared.initialize(self.owner.clone());
        let tensor = prepared.tensor_mut();
        let DLTensor { shape, strides, .. } = *tensor;
        *tensor = DLTensor { shape, strides, ..self.as_flagged_dlpack() };
        if descriptor.ndim() == 0 {
            (tensor.shape, tensor.strides) = (std::ptr::null_mut(), std::ptr::null_mut());
        }
        self.owner.export()?;
        Ok(prepared)
    }
}

/// Returns the error for an element type that a format cannot express.
#[cold]
pub(crate) fn inexpressible(dtype: DType, protocol: &str) -> ExchangeError {
    ExchangeError::new("dtype", &format_args!("a dtype that {protocol} can express"), &dtype)
        .with_fix(&"use another protocol")
        .with_kind(ExchangeErrorKind::Unsupported)
}
