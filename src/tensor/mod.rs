//! Fields with their owners: descriptor, memory, and the promises of the allocation.

mod alloc;
mod block;
mod broadcast;
mod bytes;
#[cfg(feature = "cuda")]
mod cudarc;
mod default_metadata;
pub(crate) mod device;
mod device_access;
mod device_work;
#[cfg(feature = "ndarray")]
mod dispatch;
mod element;
mod given_memory;
pub(crate) mod index;
pub(crate) mod managed;
#[cfg(feature = "ndarray")]
pub(crate) mod ndarray;
mod owner;
#[cfg(feature = "ndarray")]
mod read;
mod reshape;
mod shared;
mod spec;
mod view;

pub use bytes::Placement;
#[cfg(feature = "cuda")]
pub use cudarc::CudaView;
pub(crate) use device::refuse_brief_memory;
pub use element::Element;
pub use index::Index;
pub(crate) use managed::in_order;
pub(crate) use managed::{consume_managed, owner_in};
pub use owner::Owner;
pub use owner::{BlockInfo, report as memory_report};
#[cfg(feature = "ndarray")]
pub use read::ReadGuard;
pub use shared::SharedBlock;

use crate::descriptor::Descriptor;
use crate::dims::Dims;
use crate::layout::{Extents, Layout, MAX_NDIM, Metadata, Padding, Promise};

/// A field: the address of its elements, the meaning of its dimensions, and an owner of its memory.
///
/// Views share the owner. The memory is freed when the last of them, here or in another library, is dropped.
///
/// # Example
/// ```
/// use dlfield::{DType, Index, Spec, Tensor};
/// let field = Tensor::zeros(&Spec::new(&[10, 8], DType::F32).halo(&[(1, 1), (0, 0)])).unwrap();
/// let row = field.view(&[Index::At(3)]).unwrap();
/// assert_eq!(row.dims().to_string(), "J");
/// assert_eq!(field.domain_view().descriptor().shape(), [8, 8]);
/// assert!(format!("{row:?}").contains("dims: Dims(J), origin: [0], halo: [(0, 0)]"));
/// ```
#[derive(Clone)]
pub struct Tensor {
    descriptor: Descriptor,
    owner: Owner,
    promise: Promise,
    /// Whether these are all elements of the owner's block, so that the rest of it is padding.
    is_whole: bool,
}

impl Tensor {
    /// Joins a descriptor of existing memory with the owner of that memory.
    ///
    /// The layout follows from the strides; no alignment is promised.
    ///
    /// # Safety
    /// - Every element of `descriptor` stays readable for as long as `owner` lives, and writable unless the
    ///   descriptor is read-only.
    /// - Its bytes have been written before a function reads them, or came from the system or another language: those of a
    ///   fresh `MaybeUninit` are not readable as elements.
    /// - No other code writes while a safe function, such as [`Tensor::copy`], reads the elements. Callers that cannot ensure
    ///   this use [`Tensor::copy_of_shared`] instead.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Descriptor, Device, Owner, Tensor};
    /// let mut memory = vec![1.0f64, 2.0];
    /// let start = memory.as_mut_ptr().cast();
    /// let descriptor = Descriptor::new(start, Device::CPU, DType::F64, false, &[2], &[1]).unwrap();
    /// // SAFETY: the vector stays where it is while the owner keeps it.
    /// let field = unsafe { Tensor::from_parts(descriptor, Owner::foreign(memory)) };
    /// assert_eq!(field.descriptor().ptr(), start);
    /// ```
    #[allow(unsafe_code, reason = "the promise about the memory is the caller's")]
    pub unsafe fn from_parts(descriptor: Descriptor, owner: Owner) -> Tensor {
        Tensor { descriptor, owner, promise: Promise::NONE, is_whole: false }
    }

    /// No field, to be filled in place.
    #[allow(clippy::declare_interior_mutable_const, reason = "each use is a tensor of its own")]
    pub(crate) const BLANK: Tensor =
        Tensor { descriptor: Descriptor::BLANK, owner: Owner::NONE, promise: Promise::NONE, is_whole: false };

    /// Drops everything in place. The rest is [`Tensor::BLANK`], except for numbers that mean nothing without an address.
    pub(crate) fn clear(&mut self) {
        self.owner = Owner::NONE;
        self.promise = Promise::NONE;
        self.is_whole = false;
        self.descriptor.clear();
    }

    /// Returns the descriptor and the owner, to be filled in place.
    ///
    /// # Safety
    /// - Their new values satisfy the contract of [`Tensor::from_parts`].
    #[allow(unsafe_code, reason = "the promise about the memory is the caller's")]
    pub(crate) unsafe fn parts_mut(&mut self) -> (&mut Descriptor, &mut Owner) {
        (&mut self.descriptor, &mut self.owner)
    }

    /// Returns what the allocation promised about the memory.
    pub(crate) fn promise(&self) -> &Promise {
        &self.promise
    }

    /// Takes over a promised layout and padding if the address has the promised alignment. Returns whether it has.
    pub(crate) fn adopt_promise(&mut self, promise: Promise) -> bool {
        let zeros = Extents::from_elem(0, self.descriptor.ndim());
        let index = promise.aligned_index.as_deref().unwrap_or(&zeros);
        let steps = index.iter().zip(self.descriptor.byte_strides());
        let start = i128::try_from(self.descriptor.ptr().addr()).unwrap_or(i128::MAX);
        let place = steps.fold(start, |sum, (index, step)| sum.saturating_add(i128::from(*index) * i128::from(step)));
        let inside = |(at, extent): (&i64, &i64)| (0..=*extent).contains(at);
        let within = index.len() == zeros.len() && index.iter().zip(self.descriptor.shape()).all(inside);
        let possible = promise.alignment_size > 0 && within;
        let fits = possible && (place % i128::from(promise.alignment_size) == 0 || self.descriptor.size() == 0);
        if fits {
            self.promise = promise;
        }
        fits
    }

    /// Returns the descriptor, and the owner of its memory.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let (descriptor, owner) = field.into_parts();
    /// assert_eq!(descriptor.shape(), [4, 5]);
    /// drop(owner);
    /// ```
    pub fn into_parts(self) -> (Descriptor, Owner) {
        (self.descriptor, self.owner)
    }

    /// Returns address, device, element type, shape and strides.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// assert_eq!(field.descriptor().strides(), [5, 1]);
    /// ```
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Returns the owner of the memory.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// assert_eq!(format!("{:?}", field.owner()), "Owner(block)");
    /// ```
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Returns the labels; the standard ones if none were set.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// assert_eq!(field.dims().to_string(), "I, J");
    /// ```
    pub fn dims(&self) -> Dims {
        self.descriptor.dims().cloned().unwrap_or_else(|| Dims::standard(self.descriptor.ndim()))
    }

    /// Returns the first compute point; the lower halo if no origin was set.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 2), (0, 1)])).unwrap();
    /// assert_eq!(field.origin(), [1, 0]);
    /// ```
    pub fn origin(&self) -> Vec<i64> {
        self.inline_origin().into_vec()
    }

    /// As [`Tensor::origin`], without an allocation for the usual numbers of dimensions.
    pub(crate) fn inline_origin(&self) -> Extents {
        match self.descriptor.origin() {
            Some(origin) => Extents::from_slice(origin),
            None => self.halo().iter().map(|(lower, _)| *lower).collect(),
        }
    }

    /// Returns the halo, in points (lower, upper) per dimension; zeros if none was set.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 2), (0, 1)])).unwrap();
    /// assert_eq!(field.halo(), [(1, 2), (0, 1)]);
    /// ```
    pub fn halo(&self) -> &[(i64, i64)] {
        static NO_HALO: [(i64, i64); MAX_NDIM] = [(0, 0); MAX_NDIM];
        self.descriptor.halo().unwrap_or(&NO_HALO[..self.descriptor.ndim()])
    }

    /// Returns the order of the strides.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// assert_eq!(field.layout().to_vec(), [0, 1]);
    /// ```
    pub fn layout(&self) -> Layout {
        self.promise.layout.clone().unwrap_or_else(|| self.descriptor.layout())
    }

    /// Returns the padding between rows.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// assert_eq!(field.padding(), dlfield::Padding::None);
    /// ```
    pub fn padding(&self) -> Padding {
        self.promise.padding
    }

    /// Returns the alignment in bytes of the element at [`Tensor::aligned_index`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).alignment_size(32)).unwrap();
    /// assert_eq!(field.alignment_size(), 32);
    /// ```
    pub fn alignment_size(&self) -> i64 {
        self.promise.alignment_size
    }

    /// Returns the index of the aligned element.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 2), (0, 1)])).unwrap();
    /// assert_eq!(field.aligned_index(), [1, 0]);
    /// ```
    pub fn aligned_index(&self) -> &[i64] {
        static FIRST: [i64; MAX_NDIM] = [0; MAX_NDIM];
        self.promise.aligned_index.as_deref().unwrap_or(&FIRST[..self.descriptor.ndim()])
    }

    /// Returns whether the aligned index is not 0.
    pub(crate) fn aligns_elsewhere(&self) -> bool {
        self.promise.aligned_index.is_some()
    }

    /// Replaces dims, origin and halo by those given; the others stay.
    ///
    /// # Errors
    /// [`crate::DimsError`] or [`crate::LayoutError`] if a length or an entry does not fit the shape.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, Metadata, Spec, Tensor};
    /// let mut field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// field.relabel(Metadata::default().with_dims(Dims::parse(["K", "I"]).unwrap())).unwrap();
    /// assert_eq!(field.dims().to_string(), "K, I");
    /// ```
    pub fn relabel(&mut self, metadata: Metadata) -> crate::Result<()> {
        self.descriptor.relabel(metadata)
    }

    /// Sets the halo, also of a tensor that others share. The dims stay, and the origin becomes the lower halo. Memory and
    /// aligned index do not change, nor does the halo of views and clones.
    ///
    /// The tensor keeps each halo that differs from all before it: references to it may exist.
    ///
    /// # Errors
    /// [`crate::LayoutError`] unless each dimension has one entry, whose numbers are 0 or more and in sum at most the extent.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// field.set_halo(&[(1, 2), (0, 1)]).unwrap();
    /// assert_eq!(field.origin(), [1, 0]);
    /// assert_eq!(field.domain_view().descriptor().shape(), [1, 4]);
    /// ```
    pub fn set_halo(&self, halo: &[(i64, i64)]) -> crate::Result<()> {
        Ok(self.descriptor.override_halo(halo.into())?)
    }

    /// Returns the same memory as read-only, also for everything made from this tensor.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// assert!(field.into_readonly().descriptor().is_readonly());
    /// ```
    #[must_use]
    pub fn into_readonly(mut self) -> Tensor {
        self.descriptor = self.descriptor.into_readonly();
        self
    }
}
