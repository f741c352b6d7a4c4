//! A field with its owner: descriptor, memory and what the allocation promised about it.

mod alloc;
mod broadcast;
#[cfg(feature = "cuda")]
mod cudarc;
mod device;
mod element;
mod index;
mod managed;
#[cfg(feature = "ndarray")]
pub(crate) mod ndarray;
mod owner;
mod view;
mod work;

#[cfg(feature = "cuda")]
pub use cudarc::CudaView;
pub(crate) use device::refuse_brief_memory;
pub use element::Element;
pub use index::{Index, IndexError};
#[cfg(feature = "python")]
pub(crate) use managed::consume_managed;
pub use owner::Owner;

use crate::descriptor::Descriptor;
use crate::dims::Dims;
use crate::layout::{Extents, Halo, Layout, Padding};

/// A field: where its elements are, what its dimensions mean, and an owner that keeps the memory.
///
/// Views share the owner. The memory is freed when the last of them, here or in another library, is gone.
///
/// # Example
/// ```
/// use dlfield::{DType, Index, Spec, Tensor};
/// let field = Tensor::zeros(&Spec::new(&[10, 8], DType::F32).halo(&[(1, 1), (0, 0)])).unwrap();
/// let row = field.view(&[Index::At(3)]).unwrap();
/// assert_eq!(row.dims().to_string(), "J");
/// assert_eq!(field.domain_view().descriptor().shape(), [8, 8]);
/// ```
#[derive(Clone, Debug)]
pub struct Tensor {
    descriptor: Descriptor,
    owner: Owner,
    /// Absent where it is read off the strides.
    layout: Option<Layout>,
    padding: Padding,
    alignment_size: i64,
    /// Absent for all zeros.
    aligned_index: Option<Box<[i64]>>,
}

/// What an allocation says of its memory beyond the description.
#[cfg(feature = "python")]
pub(crate) struct Promise {
    pub(crate) layout: Option<Layout>,
    pub(crate) padding: Padding,
    pub(crate) alignment_size: i64,
    pub(crate) aligned_index: Option<Box<[i64]>>,
}

impl Tensor {
    /// Joins memory that somebody else laid out with its owner.
    ///
    /// Layout is read off the strides; no alignment is promised.
    ///
    /// # Safety
    /// - Every element of `descriptor` stays readable for as long as `owner` lives, and writable unless the
    ///   descriptor is read-only.
    /// - Nobody else writes while a safe function reads the elements, such as [`Tensor::copy`]. Who cannot say that uses
    ///   [`Tensor::copy_of_shared`] instead.
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
        Tensor { descriptor, owner, layout: None, padding: Padding::None, alignment_size: 1, aligned_index: None }
    }

    /// No field: what a binding fills in place.
    #[cfg(feature = "python")]
    #[allow(clippy::declare_interior_mutable_const, reason = "each use is a tensor of its own")]
    pub(crate) const BLANK: Tensor = Tensor {
        descriptor: Descriptor::BLANK,
        owner: Owner::NOBODY,
        layout: None,
        padding: Padding::None,
        alignment_size: 1,
        aligned_index: None,
    };

    /// Lets go of everything: in place what [`Tensor::BLANK`] is, but for numbers that mean nothing without an address.
    #[cfg(feature = "python")]
    pub(crate) fn clear(&mut self) {
        self.owner = Owner::NOBODY;
        (self.layout, self.aligned_index) = (None, None);
        (self.padding, self.alignment_size) = (Padding::None, 1);
        self.descriptor.clear();
    }

    /// The description and the owner, to be filled in place.
    ///
    /// # Safety
    /// - What they become holds as for [`Tensor::from_parts`].
    #[cfg(feature = "python")]
    #[allow(unsafe_code, reason = "the promise about the memory is the caller's")]
    pub(crate) unsafe fn parts_mut(&mut self) -> (&mut Descriptor, &mut Owner) {
        (&mut self.descriptor, &mut self.owner)
    }

    /// What the allocation said of the memory.
    #[cfg(feature = "python")]
    pub(crate) fn promise(&self) -> Promise {
        let (layout, aligned_index) = (self.layout.clone(), self.aligned_index.clone());
        Promise { layout, padding: self.padding, alignment_size: self.alignment_size, aligned_index }
    }

    /// Takes somebody's word for the layout and padding of the memory, if the alignment is as said.
    #[cfg(feature = "python")]
    pub(crate) fn promised(&mut self, promise: Promise) -> bool {
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
            (self.layout, self.padding) = (promise.layout, promise.padding);
            (self.alignment_size, self.aligned_index) = (promise.alignment_size, promise.aligned_index);
        }
        fits
    }

    /// The description and the owner, which keeps what it describes.
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

    /// Address, device, element type, shape and strides.
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

    /// What keeps the memory.
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

    /// Labels; the standard ones if nobody stated others.
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

    /// First compute point; the lower halo if nobody stated another.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 2), (0, 1)])).unwrap();
    /// assert_eq!(field.origin().as_slice(), [1, 0]);
    /// ```
    pub fn origin(&self) -> Extents {
        match self.descriptor.origin() {
            Some(origin) => Extents::from_slice(origin),
            None => self.halo().iter().map(|(lower, _)| *lower).collect(),
        }
    }

    /// Ghost widths; none if nobody stated them.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 2), (0, 1)])).unwrap();
    /// assert_eq!(field.halo().as_slice(), [(1, 2), (0, 1)]);
    /// ```
    pub fn halo(&self) -> Halo {
        match self.descriptor.halo() {
            Some(halo) => Halo::from_slice(halo),
            None => Halo::from_elem((0, 0), self.descriptor.ndim()),
        }
    }

    /// StreamUses of the strides.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// assert_eq!(field.layout().to_vec(), [0, 1]);
    /// ```
    pub fn layout(&self) -> Layout {
        self.layout.clone().unwrap_or_else(|| self.descriptor.layout())
    }

    /// What lies between rows.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// assert_eq!(field.padding(), dlfield::Padding::None);
    /// ```
    pub fn padding(&self) -> Padding {
        self.padding
    }

    /// Bytes that the address of the element at [`Tensor::aligned_index`] is a multiple of.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).alignment_size(32)).unwrap();
    /// assert_eq!(field.alignment_size(), 32);
    /// ```
    pub fn alignment_size(&self) -> i64 {
        self.alignment_size
    }

    /// The index that is aligned.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 2), (0, 1)])).unwrap();
    /// assert_eq!(field.aligned_index().as_slice(), [1, 0]);
    /// ```
    pub fn aligned_index(&self) -> Extents {
        match &self.aligned_index {
            Some(index) => Extents::from_slice(index),
            None => Extents::from_elem(0, self.descriptor.ndim()),
        }
    }

    /// Whether it is another index than 0 that is aligned.
    pub(crate) fn aligns_elsewhere(&self) -> bool {
        self.aligned_index.is_some()
    }

    /// Replaces the labels, origin and ghost widths by those given.
    ///
    /// # Errors
    /// [`crate::DimsError`] or [`crate::LayoutError`] if a length or an entry does not fit the shape.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, Spec, Tensor};
    /// let mut field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// field.relabel(Some(Dims::parse(["K", "I"]).unwrap()), None, None).unwrap();
    /// assert_eq!(field.dims().to_string(), "K, I");
    /// ```
    pub fn relabel(&mut self, dims: Option<Dims>, origin: Option<Extents>, halo: Option<Halo>) -> crate::Result<()> {
        if let Some(dims) = dims {
            self.descriptor.set_dims(dims)?;
        }
        if let Some(halo) = halo {
            self.descriptor.set_halo(halo.as_slice().into())?;
        }
        if let Some(origin) = origin {
            self.descriptor.set_origin(origin.as_slice().into())?;
        }
        Ok(())
    }

    /// States the ghost widths, also of a tensor that others have: the dims stay, and the origin is the lower width from now
    /// on. The memory stays as it is, and with it the aligned index; so do the widths of views and clones.
    ///
    /// # Errors
    /// [`crate::LayoutError`] if there is not one entry per dimension, or one is negative or together wider than the extent.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// field.set_halo(&[(1, 2), (0, 1)]).unwrap();
    /// assert_eq!(field.origin().as_slice(), [1, 0]);
    /// assert_eq!(field.domain_view().descriptor().shape(), [1, 4]);
    /// ```
    pub fn set_halo(&self, halo: &[(i64, i64)]) -> crate::Result<()> {
        Ok(self.descriptor.restate_halo(halo.into())?)
    }

    /// The same memory, not to be written through this tensor or anything made from it.
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
