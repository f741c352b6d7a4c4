//! Reading and setting the metadata of a descriptor.

use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::Descriptor;
use super::halo_override::HaloOverride;
use crate::dims::Dims;
use crate::error::{LayoutError, Result};
use crate::layout::{Metadata, check_halo, check_origin};

impl Descriptor {
    /// Sets the dims, one label per dimension.
    ///
    /// # Errors
    /// [`crate::DimsError`] unless there is one label per dimension.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Descriptor, Device, Dims};
    /// let mut memory = [0u8; 6];
    /// let field = Descriptor::new(memory.as_mut_ptr(), Device::CPU, DType::U8, false, &[2, 3], &[3, 1]).unwrap();
    /// let field = field.with_dims(Dims::parse(["K", "I"]).unwrap()).unwrap();
    /// assert_eq!(field.dims().unwrap().to_string(), "K, I");
    /// ```
    pub fn with_dims(mut self, dims: Dims) -> Result<Descriptor, crate::DimsError> {
        self.set_dims(dims)?;
        Ok(self)
    }

    /// Sets the origin: the index of the first compute point.
    ///
    /// # Errors
    /// [`LayoutError`] unless there is one entry per dimension, each from 0 to the extent.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Descriptor, Device};
    /// let mut memory = [0u8; 6];
    /// let field = Descriptor::new(memory.as_mut_ptr(), Device::CPU, DType::U8, false, &[2, 3], &[3, 1]).unwrap();
    /// assert!(field.clone().with_origin([3, 0].into()).is_err());
    /// assert_eq!(field.with_origin([1, 0].into()).unwrap().origin(), Some(&[1, 0][..]));
    /// ```
    pub fn with_origin(mut self, origin: Box<[i64]>) -> Result<Descriptor, LayoutError> {
        self.set_origin(origin)?;
        Ok(self)
    }

    /// Sets the halo: the lower and upper width of each dimension, in elements.
    ///
    /// # Errors
    /// [`LayoutError`] unless there is one pair per dimension, of widths of 0 or more and together at most the extent.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Descriptor, Device};
    /// let mut memory = [0u8; 6];
    /// let field = Descriptor::new(memory.as_mut_ptr(), Device::CPU, DType::U8, false, &[2, 3], &[3, 1]).unwrap();
    /// let field = field.with_halo([(0, 0), (1, 1)].into()).unwrap();
    /// assert_eq!(field.halo(), Some(&[(0, 0), (1, 1)][..]));
    /// ```
    pub fn with_halo(mut self, halo: Box<[(i64, i64)]>) -> Result<Descriptor, LayoutError> {
        check_halo(&halo, self.shape())?;
        let metadata = self.metadata_mut();
        (metadata.halo, metadata.halo_is_cut) = (Some(halo), false);
        Ok(self)
    }

    /// As [`Descriptor::with_dims`], in place.
    pub(crate) fn set_dims(&mut self, dims: Dims) -> Result<(), crate::DimsError> {
        dims.check_len(self.ndim())?;
        self.metadata_mut().dims = Some(dims);
        Ok(())
    }

    /// As [`Descriptor::with_origin`], in place.
    pub(crate) fn set_origin(&mut self, origin: Box<[i64]>) -> Result<(), LayoutError> {
        check_origin(&origin, self.shape())?;
        self.metadata_mut().origin = Some(origin);
        Ok(())
    }

    /// Replaces dims, origin and halo by those given; the others stay.
    #[inline]
    pub(crate) fn relabel(&mut self, metadata: Metadata) -> Result<()> {
        if metadata.is_empty() {
            return Ok(());
        }
        metadata.check(self.shape())?;
        let known = self.metadata_mut();
        *known = metadata.or(std::mem::take(known));
        Ok(())
    }

    /// Sets whether a slice has cut the halo; does nothing if there is neither halo nor origin.
    pub(crate) fn set_halo_is_cut(&mut self, is_cut: bool) {
        if (self.halo().is_some() || self.origin().is_some()) && self.halo_is_cut() != is_cut {
            self.metadata_mut().halo_is_cut = is_cut;
        }
    }

    /// Returns the dims, or `None` if they were not set.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.dims(), None);
    /// ```
    pub fn dims(&self) -> Option<&Dims> {
        self.metadata()?.dims.as_ref()
    }

    /// Returns the origin, or `None` if it was not set.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let field = field.descriptor();
    /// assert_eq!(field.origin(), None);
    /// ```
    pub fn origin(&self) -> Option<&[i64]> {
        self.metadata()?.origin.as_deref()
    }

    /// Returns the halo as `(lower, upper)` widths, or `None` if it was not set.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 2), (0, 1)])).unwrap();
    /// assert_eq!(field.descriptor().halo(), Some(&[(1, 2), (0, 1)][..]));
    /// ```
    pub fn halo(&self) -> Option<&[(i64, i64)]> {
        self.metadata()?.halo.as_deref()
    }

    /// Returns whether a slice has cut the halo that was set, or the points before an origin without a halo. A cut halo marks halo
    /// points, but does not say where the domain of a field begins, nor does such an origin.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Index, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[6], DType::F64).halo(&[(1, 1)])).unwrap();
    /// let later = field.view(&[Index::Range { start: 1, len: 5, step: 1 }]).unwrap();
    /// assert_eq!(later.descriptor().halo(), Some(&[(0, 1)][..]));
    /// assert!(later.descriptor().halo_is_cut());
    /// assert!(!field.domain_view().descriptor().halo_is_cut());
    /// ```
    pub fn halo_is_cut(&self) -> bool {
        self.metadata().is_some_and(|metadata| metadata.halo_is_cut)
    }

    /// Sets the halo through a shared reference: the dims stay, and the origin becomes the lower widths.
    ///
    /// Slices of the earlier metadata stay valid and unchanged.
    pub(crate) fn override_halo(&self, halo: Box<[(i64, i64)]>) -> Result<(), LayoutError> {
        check_halo(&halo, self.shape())?;
        let metadata = Metadata { dims: self.dims().cloned(), halo: Some(halo), ..Metadata::default() };
        // Two threads that get here at once both set their value.
        self.halo_override.get_or_init(|| Box::new(HaloOverride::new(metadata.clone()))).set(metadata);
        Ok(())
    }

    /// Returns the metadata in effect.
    #[inline]
    pub(crate) fn metadata(&self) -> Option<&Metadata> {
        match self.halo_override.get() {
            None => self.metadata.as_deref(),
            Some(halo_override) => halo_override.current(),
        }
    }

    /// Returns the metadata in effect, for another descriptor.
    #[inline]
    pub(super) fn share_metadata(&self) -> Option<Arc<Metadata>> {
        match self.halo_override.get() {
            None => self.metadata.clone(),
            Some(halo_override) => halo_override.current().cloned().map(Arc::new),
        }
    }

    /// Replaces all metadata, an override included.
    #[inline(always)]
    pub(crate) fn set_metadata(&mut self, metadata: Option<Arc<Metadata>>) {
        if self.halo_override.get_mut().is_some() {
            self.remove_override();
        }
        self.metadata = metadata;
    }

    /// Keeps the metadata in effect as the descriptor's own and removes the override.
    #[cold]
    fn remove_override(&mut self) {
        self.metadata = self.share_metadata();
        self.halo_override = OnceLock::new();
    }

    #[inline]
    fn metadata_mut(&mut self) -> &mut Metadata {
        if self.halo_override.get_mut().is_some() {
            self.remove_override();
        }
        Arc::make_mut(self.metadata.get_or_insert_default())
    }

    /// Sets metadata that is known to fit, unless there is some already; returns whether it was set.
    pub(crate) fn set_default_metadata(&mut self, metadata: &Arc<Metadata>) -> bool {
        let is_absent = self.metadata().is_none();
        if is_absent {
            self.set_metadata(Some(Arc::clone(metadata)));
        }
        is_absent
    }

    /// Returns the description of the same memory with the dimensions, and what belongs to each, in reverse order.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Descriptor, Device, Dims};
    /// let mut memory = [0u8; 6];
    /// let field = Descriptor::new(memory.as_mut_ptr(), Device::CPU, DType::U8, false, &[2, 3], &[3, 1]).unwrap();
    /// let turned = field.with_dims(Dims::parse(["J", "I"]).unwrap()).unwrap().reversed();
    /// assert_eq!((turned.shape(), turned.strides()), (&[3, 2][..], &[1, 3][..]));
    /// assert_eq!(turned.dims().unwrap().to_string(), "I, J");
    /// ```
    pub fn reversed(&self) -> Descriptor {
        let mut reversed = self.clone();
        reversed.permute(&(0..self.ndim()).rev().collect::<SmallVec<[usize; 6]>>());
        reversed
    }

    /// Reorders dimensions and metadata; `axes` has each axis once.
    pub(crate) fn permute(&mut self, axes: &[usize]) {
        let pick = |all: &[i64]| -> crate::layout::Extents { axes.iter().map(|axis| all[*axis]).collect() };
        let (shape, strides) = (pick(self.shape()), pick(self.strides()));
        let (new_shape, new_strides) = self.numbers.split_mut();
        new_shape.copy_from_slice(&shape);
        new_strides.copy_from_slice(&strides);
        if self.metadata().is_some() {
            self.metadata_mut().permute(axes);
        }
    }
}
