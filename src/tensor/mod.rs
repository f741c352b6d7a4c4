//! A field with its owner: descriptor, memory and what the allocation promised about it.

mod alloc;
mod managed;
mod owner;
mod view;

pub use owner::Owner;
pub use view::{Index, IndexError};

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
    layout: Layout,
    padding: Padding,
    alignment_size: i64,
    /// Absent for all zeros.
    aligned_index: Option<Box<[i64]>>,
}

impl Tensor {
    /// Joins memory that somebody else laid out with its owner.
    ///
    /// Layout is read off the strides; no alignment is promised.
    ///
    /// # Safety
    /// - Every element of `descriptor` stays readable for as long as `owner` lives, and writable unless the
    ///   descriptor is read-only.
    #[allow(unsafe_code, reason = "the promise about the memory is the caller's")]
    pub unsafe fn from_parts(descriptor: Descriptor, owner: Owner) -> Tensor {
        Tensor {
            layout: descriptor.layout(),
            padding: Padding::None,
            alignment_size: 1,
            aligned_index: None,
            descriptor,
            owner,
        }
    }

    /// Address, device, element type, shape and strides.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// What keeps the memory.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Labels; the standard ones if nobody stated others.
    pub fn dims(&self) -> Dims {
        self.descriptor.dims().cloned().unwrap_or_else(|| Dims::standard(self.descriptor.ndim()))
    }

    /// First compute point; the lower halo if nobody stated another.
    pub fn origin(&self) -> Extents {
        match self.descriptor.origin() {
            Some(origin) => Extents::from_slice(origin),
            None => self.halo().iter().map(|(lower, _)| *lower).collect(),
        }
    }

    /// Ghost widths; none if nobody stated them.
    pub fn halo(&self) -> Halo {
        match self.descriptor.halo() {
            Some(halo) => Halo::from_slice(halo),
            None => Halo::from_elem((0, 0), self.descriptor.ndim()),
        }
    }

    /// Order of the strides.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What lies between rows.
    pub fn padding(&self) -> Padding {
        self.padding
    }

    /// Bytes that the address of the element at [`Tensor::aligned_index`] is a multiple of.
    pub fn alignment_size(&self) -> i64 {
        self.alignment_size
    }

    /// The index that is aligned.
    pub fn aligned_index(&self) -> Extents {
        match &self.aligned_index {
            Some(index) => Extents::from_slice(index),
            None => Extents::from_elem(0, self.descriptor.ndim()),
        }
    }

    /// The same tensor with its labels, origin and ghost widths replaced by those given.
    ///
    /// # Errors
    /// [`crate::DimsError`] or [`crate::LayoutError`] if a length or an entry does not fit the shape.
    pub fn relabelled(
        mut self,
        dims: Option<Dims>,
        origin: Option<Extents>,
        halo: Option<Halo>,
    ) -> crate::Result<Tensor> {
        if let Some(dims) = dims {
            self.descriptor = self.descriptor.with_dims(dims)?;
        }
        if let Some(halo) = halo {
            self.descriptor = self.descriptor.with_halo(halo.as_slice().into())?;
        }
        if let Some(origin) = origin {
            self.descriptor = self.descriptor.with_origin(origin.as_slice().into())?;
        }
        Ok(self)
    }

    /// The same memory, not to be written through this tensor or anything made from it.
    #[must_use]
    pub fn into_readonly(mut self) -> Tensor {
        self.descriptor = self.descriptor.into_readonly();
        self
    }
}
