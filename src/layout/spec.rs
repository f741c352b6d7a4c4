//! What a user wants allocated.

use super::{Extents, Layout, Padding};
use crate::device::Device;
use crate::dims::{Dim, Dims};
use crate::dtype::DType;
use crate::preset::{LayoutRule, Preset};

/// What is to be allocated. Everything but shape and element type is optional; what is stated overrides the preset.
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
    pub(super) dims: Option<Dims>,
    pub(super) layout: Option<Layout>,
    pub(super) alignment_size: Option<i64>,
    pub(super) aligned_index: Option<Box<[i64]>>,
    pub(super) padding: Option<Padding>,
    pub(super) halo: Option<Box<[(i64, i64)]>>,
    pub(super) halo_is_cut: bool,
    pub(super) origin: Option<Box<[i64]>>,
    pub(super) device: Option<Device>,
}

impl Spec {
    /// A field of this shape and element type: C order, compact, on the host, until more is said.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// assert_eq!(Spec::new(&[3, 5], DType::F64).place().unwrap().strides.as_slice(), [5, 1]);
    /// ```
    pub fn new(shape: &[i64], dtype: DType) -> Spec {
        Spec {
            shape: Extents::from_slice(shape),
            dtype,
            preset: None,
            dims: None,
            layout: None,
            alignment_size: None,
            aligned_index: None,
            padding: None,
            halo: None,
            halo_is_cut: false,
            origin: None,
            device: None,
        }
    }

    /// Takes alignment, layout rule and device from a preset, unless they are stated.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Preset, Spec};
    /// let spec = Spec::new(&[3, 5], DType::F64).preset(Preset::find("gt:cpu_ifirst").unwrap());
    /// assert_eq!(spec.place().unwrap().strides.as_slice(), [1, 3]);
    /// ```
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> Spec {
        self.preset = Some(preset);
        self
    }

    /// Labels the dimensions; I, J, K, "0", … otherwise.
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
        self.dims = Some(dims);
        self
    }

    /// Orders the strides; the preset's rule or C order otherwise.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Layout, Spec};
    /// let spec = Spec::new(&[3, 5], DType::F64).layout(Layout::f_order(2));
    /// assert_eq!(spec.place().unwrap().strides.as_slice(), [1, 3]);
    /// ```
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Spec {
        self.layout = Some(layout);
        self
    }

    /// Aligns the element at the aligned index to this many bytes; 1 or the preset's alignment otherwise.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// let place = Spec::new(&[3, 5], DType::F64).alignment_size(64).place().unwrap();
    /// assert_eq!((place.strides.as_slice(), place.block_alignment), (&[8, 1][..], 64));
    /// ```
    #[must_use]
    pub fn alignment_size(mut self, bytes: i64) -> Spec {
        self.alignment_size = Some(bytes);
        self
    }

    /// Chooses the element that is aligned; the first one behind the lower halo otherwise.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// let spec = Spec::new(&[3, 5], DType::F64).alignment_size(64).aligned_index(&[0, 1]);
    /// assert_eq!(spec.place().unwrap().first_byte, 56);
    /// ```
    #[must_use]
    pub fn aligned_index(mut self, index: &[i64]) -> Spec {
        self.aligned_index = Some(index.into());
        self
    }

    /// Says what lies between rows; nothing for alignments up to the element size, else [`Padding::Row`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Padding, Spec};
    /// let spec = Spec::new(&[3, 5], DType::F64).alignment_size(64).padding(Padding::None);
    /// assert_eq!(spec.place().unwrap().strides.as_slice(), [5, 1]);
    /// ```
    #[must_use]
    pub fn padding(mut self, padding: Padding) -> Spec {
        self.padding = Some(padding);
        self
    }

    /// States the ghost widths; none otherwise.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 1), (0, 2)])).unwrap();
    /// assert_eq!(field.origin().as_slice(), [1, 0]);
    /// assert_eq!(field.domain_view().descriptor().shape(), [2, 3]);
    /// ```
    #[must_use]
    pub fn halo(mut self, halo: &[(i64, i64)]) -> Spec {
        (self.halo, self.halo_is_cut) = (Some(halo.into()), false);
        self
    }

    /// Says whether the ghost widths are what a slice has left: see [`crate::Descriptor::halo_is_cut`].
    #[must_use]
    pub(crate) fn halo_is_cut(mut self, is_cut: bool) -> Spec {
        self.halo_is_cut = is_cut;
        self
    }

    /// States the first compute point; the lower halo otherwise.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).origin(&[2, 0])).unwrap();
    /// assert_eq!(field.origin().as_slice(), [2, 0]);
    /// ```
    #[must_use]
    pub fn origin(mut self, origin: &[i64]) -> Spec {
        self.origin = Some(origin.into());
        self
    }

    /// Chooses the device; the preset's or the host otherwise.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Device, Spec};
    /// assert_eq!(Spec::new(&[4], DType::F64).device(Device::cuda(1)).target(), Device::cuda(1));
    /// ```
    #[must_use]
    pub fn device(mut self, device: Device) -> Spec {
        self.device = Some(device);
        self
    }

    /// Changes the element type.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// assert_eq!(Spec::new(&[4], DType::F64).dtype(DType::I8).element(), DType::I8);
    /// ```
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Spec {
        self.dtype = dtype;
        self
    }

    /// Element type.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// assert_eq!(Spec::new(&[4], DType::F64).element(), DType::F64);
    /// ```
    pub fn element(&self) -> DType {
        self.dtype
    }

    /// The index to align, if it is stated.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// let spec = Spec::new(&[4], DType::F64);
    /// assert_eq!(spec.stated_aligned_index(), None);
    /// assert_eq!(spec.aligned_index(&[2]).stated_aligned_index(), Some(&[2][..]));
    /// ```
    pub fn stated_aligned_index(&self) -> Option<&[i64]> {
        self.aligned_index.as_deref()
    }

    /// Whether labels are stated.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, Spec};
    /// let spec = Spec::new(&[4], DType::F64);
    /// assert!(!spec.has_dims());
    /// assert!(spec.dims(Dims::parse(["K"]).unwrap()).has_dims());
    /// ```
    pub fn has_dims(&self) -> bool {
        self.dims.is_some()
    }

    /// The labels, if the preset goes by what dimensions mean and knows none of them: several labels of the user's own and
    /// neither I, J nor K, and no stated layout. They come in C order then.
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
        let (preset, dims) = (self.preset.as_ref()?, self.dims.as_ref()?);
        let by_meaning = matches!(preset.layout(), LayoutRule::Grid(_)) && self.layout.is_none();
        let own = dims.iter().filter(|dim| matches!(dim, Dim::Label(_))).count();
        let known = dims.iter().any(|dim| matches!(dim, Dim::I | Dim::J | Dim::K));
        (by_meaning && own > 1 && !known).then_some(dims)
    }

    /// Where the memory will be: the stated device, the preset's, or the host.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Device, Preset, Spec};
    /// let spec = Spec::new(&[4], DType::F64);
    /// assert_eq!(spec.target(), Device::CPU);
    /// assert_eq!(spec.preset(Preset::find("gt:gpu").unwrap()).target(), Device::cuda(0));
    /// ```
    pub fn target(&self) -> Device {
        self.device.or(self.preset.as_ref().map(Preset::device)).unwrap_or(Device::CPU)
    }

    /// Number of dimensions.
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
