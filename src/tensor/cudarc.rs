//! Conversion of tensors from and to slices of the crate `cudarc`, and views of tensors for its kernels.

#![allow(unsafe_code, reason = "device memory is passed on by address")]

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut};

use super::owner::{ExclusiveOwner, shared};
use super::{Element, Owner, Tensor};
use crate::descriptor::Descriptor;
use crate::device::{self, Device};
use crate::dtype::{self, DType};
use crate::error::{DeviceError, DeviceErrorKind, LayoutError, LayoutErrorKind, Result, Tuple};
use crate::layout::{Spec, is_unshared};
use crate::memory::cuda::{StreamUses, enter, is_primary, of_cudarc};
use crate::protocol::array_interface::outside_buffer;

/// A slice that is dropped with its device current, as `cudarc` requires.
struct OwnedSlice<T> {
    slice: Option<CudaSlice<T>>,
    device: Device,
}

impl<T> Drop for OwnedSlice<T> {
    fn drop(&mut self) {
        let Some(slice) = self.slice.take() else { return };
        // Without its context the memory is already freed.
        let Ok(_entered) = enter(self.device) else { return std::mem::forget(slice) };
        let context = slice.context().clone();
        let before = context.check_err();
        drop(slice);
        // `cudarc` would report the error to an unrelated caller: only earlier errors stay recorded.
        let _ = context.check_err();
        context.record_err(before);
    }
}

impl Tensor {
    /// Takes over a slice as a field of this shape, with strides in elements or in C order; nothing is copied. The slice's
    /// stream orders the work on the memory, and frees it at the end.
    ///
    /// # Errors
    /// [`ExchangeError`](crate::ExchangeError) if the field exceeds the slice, and as for [`Descriptor::new`]. The slice is dropped.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Tensor, cuda};
    /// use dlfield::cudarc::driver::CudaContext;
    /// if cuda::is_available() {
    ///     let stream = CudaContext::new(0).unwrap().default_stream();
    ///     let slice = stream.alloc_zeros::<f64>(24).unwrap();
    ///     // Three rows of five, of which each has room for eight.
    ///     let field = Tensor::from_cuda_slice(slice, &[3, 5], Some(&[8, 1])).unwrap();
    ///     assert_eq!(field.descriptor().device().to_string(), "cuda:0");
    /// }
    /// ```
    pub fn from_cuda_slice<T: Element>(
        mut slice: CudaSlice<T>,
        shape: &[i64],
        strides: Option<&[i64]>,
    ) -> Result<Tensor> {
        let stream = slice.stream().clone();
        let device = device_of(&stream)?;
        let bytes = slice.num_bytes();
        let entered = enter(device)?;
        // The stream waits for the work of other streams on the slice, as far as `cudarc` knows of it.
        let (address, known) = slice.device_ptr_mut(&stream);
        drop(known);
        stream.context().check_err().map_err(|error| of_cudarc(device, "cuStreamWaitEvent", error))?;
        let start = std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0));
        drop(entered);
        let owner = Owner::elements_freed_after(
            OwnedSlice { slice: Some(slice), device },
            StreamUses::of_slice(device, &stream),
        );
        let strides = match strides {
            Some(strides) => Cow::Borrowed(strides),
            None => Cow::Owned(Spec::new(shape, T::DTYPE).place()?.strides),
        };
        let descriptor = Descriptor::new(start, device, T::DTYPE, false, shape, &strides)?;
        if let Some((low, high)) = descriptor.byte_span()
            && (low < 0 || high > i128::try_from(bytes).unwrap_or(i128::MAX))
        {
            return Err(outside_buffer("slice", low, high, bytes).into());
        }
        // SAFETY: the field lies inside the slice, which the owner keeps.
        Ok(unsafe { Tensor::from_parts(descriptor, owner) })
    }

    /// Returns the elements as a slice of `cudarc`, in memory order; nothing is copied. A field made from a slice returns that
    /// slice. An allocation of this crate is freed in the order of `stream` from then on, which waits for the other streams
    /// that use it.
    ///
    /// Fields of bools, also those made from slices of bools, become slices of `u8`: values in device memory cannot be checked
    /// to be 0 or 1.
    ///
    /// # Errors
    /// [`ExchangeError`](crate::ExchangeError) if the memory has other owners, is neither a slice's nor an allocation of this crate, or came back from
    /// DLPack during a graph capture, through a library that names its own stream, or while the driver failed; [`DeviceError`]
    /// if it is not on the stream's device, during a graph capture, or if the driver fails; [`DTypeError`](crate::DTypeError) for another element
    /// type; [`LayoutError`] if there are gaps between the elements, or before the first, as an alignment beyond 256 bytes may
    /// leave them. The tensor is dropped.
    ///
    /// # Example
    /// ```
    /// use dlfield::cudarc::driver::CudaContext;
    /// use dlfield::{DType, Device, Spec, Tensor, cuda};
    /// if cuda::is_available() {
    ///     let stream = CudaContext::new(0).unwrap().default_stream();
    ///     let field = Tensor::zeros(&Spec::new(&[3, 5], DType::F32).with_device(Device::cuda(0))).unwrap();
    ///     let slice = field.into_cuda_slice::<f32>(&stream).unwrap();
    ///     assert_eq!(slice.len(), 15);
    /// }
    /// ```
    pub fn into_cuda_slice<T: Element>(self, stream: &Arc<CudaStream>) -> Result<CudaSlice<T>> {
        let (descriptor, device) = (&self.descriptor, device_of(stream)?);
        let (found, wanted) = (descriptor.dtype(), T::DTYPE);
        if wanted == DType::BOOL || wanted != found && (wanted, found) != (DType::U8, DType::BOOL) {
            return Err(dtype::mismatch(found, &wanted).into());
        }
        check_device(descriptor, device)?;
        let count = usize::try_from(descriptor.size()).unwrap_or(0);
        let (shape, strides) = (descriptor.shape().to_vec(), descriptor.strides().to_vec());
        let is_packed = is_unshared(&shape, &strides)
            && descriptor.byte_span().is_none_or(|span| span == (0, i128::from(descriptor.nbytes())));
        let gaps = || {
            let got = format_args!("strides of {} elements for shape {}", Tuple(&strides), Tuple(&shape));
            LayoutError::new("strides", &"a compact field that covers its allocation", &got)
                .with_fix(&"take a view, or a compact copy")
                .with_kind(LayoutErrorKind::NeedsCopy)
        };
        if !is_packed {
            return Err(gaps().into());
        }
        let (start, mut owner) = (descriptor.ptr().addr(), self.owner);
        owner.check_exclusive()?;
        if let Some(uses) = owner.stream_uses() {
            // On an error the owner is dropped after the work of its streams.
            uses.wait_before_free()?;
            uses.precede(device, (&**stream).into())?;
        }
        let (exclusive, uses) = owner.into_exclusive().ok_or_else(shared)?;
        match exclusive {
            ExclusiveOwner::Elements(elements) => match elements.downcast::<OwnedSlice<T>>() {
                Ok(mut elements) if elements.slice.as_ref().is_some_and(|slice| slice.len() == count) => {
                    elements.slice.take().ok_or_else(|| gaps().into())
                }
                Ok(elements) => {
                    drop(Owner::from_exclusive(ExclusiveOwner::Elements(elements), uses));
                    Err(gaps().into())
                }
                Err(other) => match other.downcast::<OwnedSlice<bool>>() {
                    Ok(mut bools)
                        if wanted == DType::U8 && bools.slice.as_ref().is_some_and(|slice| slice.len() == count) =>
                    {
                        let _entered = enter(device)?;
                        let slice = bools.slice.take().ok_or_else(gaps)?;
                        bytes_of(slice, device)
                    }
                    Ok(bools) => {
                        drop(Owner::from_exclusive(ExclusiveOwner::Elements(bools), uses));
                        Err(gaps().into())
                    }
                    Err(other) => {
                        drop(Owner::from_exclusive(ExclusiveOwner::Elements(other), uses));
                        let of_slice = "the element type of the slice that the field was made of";
                        Err(dtype::mismatch(wanted, &of_slice).into())
                    }
                },
            },
            ExclusiveOwner::Block(block) if block.cuda_base() == Some(start) => {
                let _entered = enter(device)?;
                check_events(stream, device)?;
                block.forget();
                // SAFETY: a driver allocation of so many elements, of the kind that a slice of this device frees; no other code
                // has it.
                Ok(unsafe { stream.upgrade_device_ptr(start as u64, count) })
            }
            ExclusiveOwner::Block(block) => {
                drop(Owner::from_exclusive(ExclusiveOwner::Block(block), uses));
                Err(gaps().into())
            }
        }
    }

    /// Returns a view of the elements for kernels launched on `stream`. The stream waits for the allocation, and is kept alive
    /// until the memory is freed after its work.
    ///
    /// # Errors
    /// [`DeviceError`] if the memory is not on the stream's device or the driver fails, [`DTypeError`](crate::DTypeError) for another element type.
    ///
    /// # Example
    /// ```
    /// use dlfield::cudarc::driver::CudaContext;
    /// use dlfield::{Preset, Spec, DType, Tensor, cuda};
    /// if cuda::is_available() {
    ///     let stream = CudaContext::new(0).unwrap().default_stream();
    ///     let spec = Spec::new(&[10, 8, 4], DType::F64).preset(Preset::find("gt:gpu").unwrap());
    ///     let field = Tensor::zeros(&spec).unwrap();
    ///     let view = field.cuda_view::<f64>(&stream).unwrap();
    ///     // Arguments of a launch: `.arg(&view.device_ptr()).arg(&view.strides()[0])`
    ///     assert_eq!(view.strides(), [1, 32, 256]);
    /// }
    /// ```
    pub fn cuda_view<T: Element>(&self, stream: &Arc<CudaStream>) -> Result<CudaView<'_, T>> {
        let device = device_of(stream)?;
        if self.descriptor.dtype() != T::DTYPE {
            return Err(dtype::mismatch(self.descriptor.dtype(), &T::DTYPE).into());
        }
        check_device(&self.descriptor, device)?;
        if let Some(uses) = self.owner.stream_uses() {
            uses.record_owned(device, (&**stream).into(), stream.clone())?;
        }
        Ok(CudaView { tensor: self, elements: PhantomData })
    }
}

/// Makes a slice of bytes of a slice of bools, in the order of its own stream. The device is current.
fn bytes_of<T: Element>(bools: CudaSlice<bool>, device: Device) -> Result<CudaSlice<T>> {
    let (stream, len) = (bools.stream().clone(), bools.len());
    // The stream's context may be another object than that of the caller's stream.
    if let Err(error) = check_events(&stream, device) {
        drop(OwnedSlice { slice: Some(bools), device });
        return Err(error);
    }
    let address = bools.leak();
    // `cudarc` records an error of the waits in `leak`, and would report it in a function that panics on it.
    let waited = stream.context().check_err();
    // SAFETY: the memory of a slice of as many bools, which are bytes; nothing else has it now.
    let bytes = unsafe { stream.upgrade_device_ptr(address, len) };
    match waited {
        Ok(()) => Ok(bytes),
        Err(error) => {
            drop(OwnedSlice { slice: Some(bytes), device });
            Err(of_cudarc(device, "cuStreamWaitEvent", error).into())
        }
    }
}

/// Rejects a device on which no two events can be created now. `cudarc` creates as many for a slice, and panics if it cannot.
fn check_events(stream: &Arc<CudaStream>, device: Device) -> Result<()> {
    // Both exist at once.
    for event in [stream.context().new_event(None), stream.context().new_event(None)] {
        event.map_err(|error| of_cudarc(device, "cuEventCreate", error))?;
    }
    Ok(())
}

/// Takes over a slice as a tensor of one dimension; nothing is copied.
///
/// # Errors
/// As for [`Tensor::from_cuda_slice`].
impl<T: Element> TryFrom<CudaSlice<T>> for Tensor {
    type Error = crate::Error;

    fn try_from(slice: CudaSlice<T>) -> Result<Tensor> {
        let len = i64::try_from(slice.len()).unwrap_or(i64::MAX);
        Tensor::from_cuda_slice(slice, &[len], None)
    }
}

/// A field in device memory, padded or not, as kernel arguments; see [`Tensor::cuda_view`].
///
/// The launch, which is unsafe, answers for what a kernel does with the address.
///
/// # Example
/// ```
/// use dlfield::cudarc::driver::CudaContext;
/// use dlfield::{DType, Preset, Spec, Tensor, cuda};
/// if cuda::is_available() {
///     let stream = CudaContext::new(0).unwrap().default_stream();
///     let field = Tensor::zeros(&Spec::new(&[8, 4], DType::F64).preset(Preset::find("gt:gpu").unwrap())).unwrap();
///     let view = field.cuda_view::<f64>(&stream).unwrap();
///     assert_eq!((view.shape(), view.strides()), (&[8, 4][..], &[1, 32][..]));
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CudaView<'t, T> {
    tensor: &'t Tensor,
    elements: PhantomData<T>,
}

impl<T> CudaView<'_, T> {
    /// Returns the address of the element at index 0, as kernels take it.
    ///
    /// # Example
    /// ```
    /// use dlfield::cudarc::driver::CudaContext;
    /// use dlfield::{DType, Preset, Spec, Tensor, cuda};
    /// if cuda::is_available() {
    ///     let stream = CudaContext::new(0).unwrap().default_stream();
    ///     let field = Tensor::zeros(&Spec::new(&[8, 4], DType::F64).preset(Preset::find("gt:gpu").unwrap())).unwrap();
    ///     let view = field.cuda_view::<f64>(&stream).unwrap();
    ///     assert_eq!(view.device_ptr(), field.descriptor().ptr().addr() as u64);
    /// }
    /// ```
    pub fn device_ptr(&self) -> u64 {
        self.tensor.descriptor.ptr().addr() as u64
    }

    /// Returns the extents, in index order.
    ///
    /// # Example
    /// ```
    /// use dlfield::cudarc::driver::CudaContext;
    /// use dlfield::{DType, Preset, Spec, Tensor, cuda};
    /// if cuda::is_available() {
    ///     let stream = CudaContext::new(0).unwrap().default_stream();
    ///     let field = Tensor::zeros(&Spec::new(&[8, 4], DType::F64).preset(Preset::find("gt:gpu").unwrap())).unwrap();
    ///     let view = field.cuda_view::<f64>(&stream).unwrap();
    ///     assert_eq!(view.shape(), [8, 4]);
    /// }
    /// ```
    pub fn shape(&self) -> &[i64] {
        self.tensor.descriptor.shape()
    }

    /// Returns the strides in elements, in index order.
    ///
    /// # Example
    /// ```
    /// use dlfield::cudarc::driver::CudaContext;
    /// use dlfield::{DType, Preset, Spec, Tensor, cuda};
    /// if cuda::is_available() {
    ///     let stream = CudaContext::new(0).unwrap().default_stream();
    ///     let field = Tensor::zeros(&Spec::new(&[8, 4], DType::F64).preset(Preset::find("gt:gpu").unwrap())).unwrap();
    ///     let view = field.cuda_view::<f64>(&stream).unwrap();
    ///     assert_eq!(view.strides(), [1, 32]); // rows of 32 elements
    /// }
    /// ```
    pub fn strides(&self) -> &[i64] {
        self.tensor.descriptor.strides()
    }
}

/// Rejects memory of another device.
fn check_device(field: &Descriptor, wanted: Device) -> Result<()> {
    let found = field.device();
    if found == wanted { Ok(()) } else { Err(device::mismatch(found, wanted).into()) }
}

/// Returns the device that a stream belongs to.
///
/// # Errors
/// [`DeviceError`] if it does not belong to the device's primary context, which all libraries share.
fn device_of(stream: &CudaStream) -> Result<Device> {
    let device = Device::cuda(u16::try_from(stream.context().ordinal()).unwrap_or(u16::MAX));
    if is_primary(device, stream.context().cu_ctx())? {
        Ok(device)
    } else {
        let expected = format_args!("a stream of the primary context of {device}");
        Err(DeviceError::new("stream", &expected, &"one of another context")
            .with_fix(&"use `CudaContext::new`")
            .with_kind(DeviceErrorKind::Stream)
            .into())
    }
}
