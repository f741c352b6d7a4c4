//! The description of a field to allocate.

use super::{Extents, Layout, Metadata, Padding, Promise};
use crate::device::Device;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::preset::Preset;

/// Describes a field to allocate. Only shape and element type are required; explicit values override the preset.
///
/// # Example
/// ```
/// use dlfield::{DType, Preset, Spec};
/// let spec = Spec::new(&[10, 10, 7], DType::F64).preset(Preset::find("gt:cpu_ifirst").unwrap());
/// assert_eq!(spec.place().unwrap().strides.to_vec(), [1, 10, 100]);
/// ```
#[derive(Clone, Debug)]
pub struct Spec {
    pub(super) shape: Extents,
    pub(super) dtype: DType,
    pub(super) preset: Option<Preset>,
    pub(super) layout: Option<Layout>,
    pub(super) alignment_size: Option<i64>,
    pub(super) aligned_index: Option<Box<[i64]>>,
    pub(super) padding: Option<Padding>,
    pub(super) metadata: Metadata,
    pub(super) device: Option<Device>,
    /// The values that are those of another field, so that a preset replaces them.
    derived: Derived,
}

/// Which values of a [`Spec`] are those of another field.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "one for each value")]
struct Derived {
    layout: bool,
    alignment_size: bool,
    aligned_index: bool,
    padding: bool,
    device: bool,
}

impl Spec {
    /// Describes a field of this shape and element type. The defaults are C order, compact, on the host.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// assert_eq!(Spec::new(&[3, 5], DType::F64).place().unwrap().strides.as_slice(), [5, 1]);
    /// ```
    pub fn new(shape: &[i64], dtype: DType) -> Spec {
        Spec { shape: Extents::from_slice(shape), dtype, ..Spec::blank() }
    }

    /// A spec of no dimensions, of the default element type in Python, to be filled in place.
    #[inline]
    pub(crate) fn blank() -> Spec {
        Spec {
            shape: Extents::new(),
            dtype: DType::F64,
            preset: None,
            layout: None,
            alignment_size: None,
            aligned_index: None,
            padding: None,
            metadata: Metadata::default(),
            device: None,
            derived: Derived::default(),
        }
    }

    /// Describes a field on the host with this metadata and everything that is promised.
    pub(crate) fn like(shape: &[i64], dtype: DType, metadata: Metadata, promise: Promise) -> Spec {
        // The aligned index is stated even if it is 0: with a halo, the default is the lower halo.
        let zeros = || metadata.halo.is_some().then(|| vec![0; shape.len()].into());
        Spec {
            layout: promise.layout,
            alignment_size: Some(promise.alignment_size),
            aligned_index: promise.aligned_index.or_else(zeros),
            padding: Some(promise.padding),
            metadata,
            ..Spec::new(shape, dtype)
        }
    }

    /// Describes a field as [`Spec::like`] does, on a device, until a preset is set.
    pub(crate) fn derived(self, device: Device) -> Spec {
        let all = Derived { layout: true, alignment_size: true, aligned_index: true, padding: true, device: true };
        Spec { device: Some(device), derived: all, ..self }
    }

    /// Sets the preset: its alignment, layout rule and device apply unless they are set explicitly. What a spec has from another
    /// field ([`Tensor::spec`](crate::Tensor::spec)) is not explicit.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Preset, Spec};
    /// let spec = Spec::new(&[3, 5], DType::F64).preset(Preset::find("gt:cpu_ifirst").unwrap());
    /// assert_eq!(spec.place().unwrap().strides.as_slice(), [1, 3]);
    /// ```
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> Spec {
        self.set_preset(preset);
        self
    }

    /// As [`Spec::preset`], in place: a spec is large, and moving it takes longer than the change.
    pub(crate) fn set_preset(&mut self, preset: Preset) {
        let derived = std::mem::take(&mut self.derived);
        self.layout.take_if(|_| derived.layout);
        self.alignment_size.take_if(|_| derived.alignment_size);
        self.aligned_index.take_if(|_| derived.aligned_index);
        self.padding.take_if(|_| derived.padding);
        self.device.take_if(|_| derived.device);
        self.preset = Some(preset);
    }

    /// Sets the dims, one label per dimension; the default is I, J, K, "0", ….
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, Preset, Spec};
    /// let spec = Spec::new(&[3, 5], DType::F64).preset(Preset::find("gt:cpu_ifirst").unwrap());
    /// let spec = spec.dims(Dims::parse(["J", "I"]).unwrap());
    /// assert_eq!(spec.place().unwrap().strides.as_slice(), [5, 1]);
    /// ```
    #[must_use]
    pub fn dims(mut self, dims: Dims) -> Spec {
        self.metadata.dims = Some(dims);
        self
    }

    /// Sets the stride order; the default is the preset's rule, or C order.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Layout, Spec};
    /// let spec = Spec::new(&[3, 5], DType::F64).layout(Layout::f_order(2));
    /// assert_eq!(spec.place().unwrap().strides.as_slice(), [1, 3]);
    /// ```
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Spec {
        (self.layout, self.derived.layout) = (Some(layout), false);
        self
    }

    /// Sets the alignment of the element at the aligned index, in bytes; the default is the preset's, or 1.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// let place = Spec::new(&[3, 5], DType::F64).alignment_size(64).place().unwrap();
    /// assert_eq!((place.strides.as_slice(), place.block_alignment), (&[8, 1][..], 64));
    /// ```
    #[must_use]
    pub fn alignment_size(mut self, bytes: i64) -> Spec {
        (self.alignment_size, self.derived.alignment_size) = (Some(bytes), false);
        self
    }

    /// Sets the index of the aligned element; the default is the first index inside the lower halo.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// let spec = Spec::new(&[3, 5], DType::F64).alignment_size(64).aligned_index(&[0, 1]);
    /// assert_eq!(spec.place().unwrap().first_byte, 56);
    /// ```
    #[must_use]
    pub fn aligned_index(mut self, index: &[i64]) -> Spec {
        (self.aligned_index, self.derived.aligned_index) = (Some(index.into()), false);
        self
    }

    /// Sets the padding between rows; by default no padding for alignments up to the element size, else [`Padding::Row`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Padding, Spec};
    /// let spec = Spec::new(&[3, 5], DType::F64).alignment_size(64).padding(Padding::None);
    /// assert_eq!(spec.place().unwrap().strides.as_slice(), [5, 1]);
    /// ```
    #[must_use]
    pub fn padding(mut self, padding: Padding) -> Spec {
        (self.padding, self.derived.padding) = (Some(padding), false);
        self
    }

    /// Sets the halo: `(lower, upper)` widths in elements, one pair per dimension; without it the field has no halo.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 1), (0, 2)])).unwrap();
    /// assert_eq!(field.origin(), [1, 0]);
    /// assert_eq!(field.domain_view().descriptor().shape(), [2, 3]);
    /// ```
    #[must_use]
    pub fn halo(mut self, halo: &[(i64, i64)]) -> Spec {
        (self.metadata.halo, self.metadata.halo_is_cut) = (Some(halo.into()), false);
        self
    }

    /// Sets whether a slice has cut the halo: see [`crate::Descriptor::halo_is_cut`].
    #[must_use]
    pub(crate) fn halo_is_cut(mut self, is_cut: bool) -> Spec {
        self.metadata.halo_is_cut = is_cut;
        self
    }

    /// Sets the origin, the index of the first compute point; the default is the lower halo widths.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).origin(&[2, 0])).unwrap();
    /// assert_eq!(field.origin(), [2, 0]);
    /// ```
    #[must_use]
    pub fn origin(mut self, origin: &[i64]) -> Spec {
        self.metadata.origin = Some(origin.into());
        self
    }

    /// Sets the device; the default is the preset's, or the host.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Device, Spec};
    /// assert_eq!(Spec::new(&[4], DType::F64).with_device(Device::cuda(1)).device(), Device::cuda(1));
    /// ```
    #[must_use]
    pub fn with_device(mut self, device: Device) -> Spec {
        (self.device, self.derived.device) = (Some(device), false);
        self
    }

    /// Replaces the element type.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// assert_eq!(Spec::new(&[4], DType::F64).with_dtype(DType::I8).dtype(), DType::I8);
    /// ```
    #[must_use]
    pub fn with_dtype(mut self, dtype: DType) -> Spec {
        self.dtype = dtype;
        self
    }

    /// As [`Spec::with_dtype`], in place.
    #[inline]
    pub(crate) fn set_dtype(&mut self, dtype: DType) {
        self.dtype = dtype;
    }

    /// Returns the shape, to be filled in place.
    #[inline]
    pub(crate) fn shape_mut(&mut self) -> &mut Extents {
        &mut self.shape
    }

    /// Returns the element type.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// assert_eq!(Spec::new(&[4], DType::F64).dtype(), DType::F64);
    /// ```
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the aligned index, or `None` if it was not set.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// let spec = Spec::new(&[4], DType::F64);
    /// assert_eq!(spec.explicit_aligned_index(), None);
    /// assert_eq!(spec.aligned_index(&[2]).explicit_aligned_index(), Some(&[2][..]));
    /// ```
    pub fn explicit_aligned_index(&self) -> Option<&[i64]> {
        self.aligned_index.as_deref()
    }

    /// Returns whether dims were set.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, Spec};
    /// let spec = Spec::new(&[4], DType::F64);
    /// assert!(!spec.has_dims());
    /// assert!(spec.dims(Dims::parse(["K"]).unwrap()).has_dims());
    /// ```
    pub fn has_dims(&self) -> bool {
        self.metadata.dims.is_some()
    }

    /// Returns the dims if the preset orders by label and knows none of them: several user labels, none of I, J and K, and no
    /// explicit layout. Their strides are in C order then.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, Preset, Spec};
    /// let labelled = |labels: [&str; 2]| {
    ///     let spec = Spec::new(&[4, 5], DType::F64).preset(Preset::find("gt:cpu_ifirst").unwrap());
    ///     spec.dims(Dims::parse(labels).unwrap())
    /// };
    /// assert!(labelled(["x", "y"]).unplaced_dims().is_some());
    /// assert!(labelled(["x", "K"]).unplaced_dims().is_none());
    /// assert!(labelled(["x", "0"]).unplaced_dims().is_none());
    /// ```
    pub fn unplaced_dims(&self) -> Option<&Dims> {
        let (preset, dims) = (self.preset.as_ref()?, self.metadata.dims.as_ref()?);
        (self.layout.is_none() && !preset.layout().places(dims)).then_some(dims)
    }

    /// Returns the device of the allocation: the explicit one, else the preset's, else the host.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Device, Preset, Spec};
    /// let spec = Spec::new(&[4], DType::F64);
    /// assert_eq!(spec.device(), Device::CPU);
    /// assert_eq!(spec.preset(Preset::find("gt:gpu").unwrap()).device(), Device::cuda(0));
    /// ```
    pub fn device(&self) -> Device {
        self.device.or(self.preset.as_ref().map(Preset::device)).unwrap_or(Device::CPU)
    }

    /// Returns whether this is a field on the host of fewer bytes, without an explicit alignment, which may add more.
    pub(crate) fn is_small_on_host(&self, bytes: i64) -> bool {
        let itemsize = i64::try_from(self.dtype.itemsize()).unwrap_or(i64::MAX);
        let all = self.shape.iter().fold(itemsize, |all, extent| all.saturating_mul(*extent));
        all < bytes && self.alignment_size.is_none() && self.device() == Device::CPU
    }

    pub(crate) fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Returns the dims, origin and halo, as far as they were set.
    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the number of dimensions.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// assert_eq!(Spec::new(&[4, 5], DType::F64).ndim(), 2);
    /// ```
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }
}
