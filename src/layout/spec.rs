//! What a user wants allocated, and where that puts every element.

use super::strides::{compute, lcm};
use super::{Extents, Layout, LayoutError, MAX_NDIM, Padding, check_halo, check_len, check_origin};
use crate::device::Device;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::Result;
use crate::preset::{Alignment, Preset};

/// Every block of host memory starts at a multiple of this, which is what JAX takes without a copy.
pub(crate) const BLOCK_ALIGNMENT: i64 = 64;

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
    shape: Extents,
    dtype: DType,
    preset: Option<Preset>,
    dims: Option<Dims>,
    layout: Option<Layout>,
    alignment_size: Option<i64>,
    aligned_index: Option<Box<[i64]>>,
    padding: Option<Padding>,
    halo: Option<Box<[(i64, i64)]>>,
    origin: Option<Box<[i64]>>,
    device: Option<Device>,
}

/// Where every element of a field goes: the outcome of a [`Spec`], checked.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Extents, in index order.
    pub shape: Extents,
    /// Element type.
    pub dtype: DType,
    /// Strides in elements, in index order.
    pub strides: Extents,
    /// Order of the strides.
    pub layout: Layout,
    /// What lies between rows.
    pub padding: Padding,
    /// Labels, if stated; the standard ones otherwise.
    pub dims: Option<Dims>,
    /// Ghost widths, if stated; none otherwise.
    pub halo: Option<Box<[(i64, i64)]>>,
    /// First compute point, if stated; the lower halo otherwise.
    pub origin: Option<Box<[i64]>>,
    /// The address of the element at `aligned_index` is a multiple of this many bytes.
    pub alignment_size: i64,
    /// The index that is aligned; all zeros if absent.
    pub aligned_index: Option<Box<[i64]>>,
    /// Where the memory is.
    pub device: Device,
    /// Bytes to allocate; may be 0.
    pub block_bytes: usize,
    /// What the start of the block has to be a multiple of.
    pub block_alignment: usize,
    /// Bytes from the start of the block to the element at index 0.
    pub first_byte: usize,
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
        self.halo = Some(halo.into());
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

    /// Decides where every element goes.
    ///
    /// # Errors
    /// [`LayoutError`] or [`crate::DimsError`] naming the argument at fault: a negative extent, a length other than
    /// the number of dimensions, a layout that is no permutation, a halo wider than the field, sizes beyond 64 bits.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// let place = Spec::new(&[4, 5], DType::F32).place().unwrap();
    /// assert_eq!((place.strides.as_slice(), place.block_bytes), (&[5, 1][..], 80));
    /// assert!(Spec::new(&[i64::MAX, 5], DType::F32).place().is_err());
    /// ```
    pub fn place(&self) -> Result<Placement> {
        let (shape, ndim) = (&self.shape, self.shape.len());
        if ndim > MAX_NDIM {
            return Err(LayoutError::TooManyDims { got: ndim }.into());
        }
        if let Some(axis) = shape.iter().position(|extent| *extent < 0) {
            return Err(LayoutError::NegativeExtent { axis, got: shape[axis] }.into());
        }
        if let Some(dims) = &self.dims {
            dims.check_len(ndim)?;
        }
        if let Some(halo) = &self.halo {
            check_halo(halo, shape)?;
        }
        if let Some(origin) = &self.origin {
            check_origin(origin, shape)?;
        }
        let layout = self.checked_layout()?;
        let itemsize = i64::try_from(self.dtype.itemsize()).unwrap_or(i64::MAX);
        let alignment_size = self.checked_alignment(itemsize)?;
        let aligned_index = self.checked_aligned_index()?;
        let padding = self.padding.unwrap_or_else(|| {
            if self.aligns_base() { Padding::None } else { Padding::default_for(alignment_size, itemsize) }
        });

        let too_wide = || LayoutError::AlignmentOverflow { got: alignment_size, itemsize: self.dtype.itemsize() };
        let alignment = lcm(alignment_size, itemsize).ok_or_else(too_wide)?;
        let block_alignment = lcm(alignment, BLOCK_ALIGNMENT).ok_or_else(too_wide)?;
        let too_large = || LayoutError::Overflow { shape: shape.to_vec(), itemsize: self.dtype.itemsize() };
        let placed = compute(shape, &layout, padding, alignment / itemsize).ok_or_else(too_large)?;
        let aligned_offset = match &aligned_index {
            Some(index) => offset(index, &placed.strides, itemsize)
                .ok_or_else(|| LayoutError::AlignedIndexOverflow { got: index.to_vec() })?,
            None => 0,
        };
        let first_byte = (-aligned_offset).rem_euclid(alignment);
        // The strides of a field without elements are those of one with some; the memory is not.
        let all = placed.elements.checked_mul(itemsize);
        let bytes =
            all.map(|all| if shape.contains(&0) { 0 } else { all }).and_then(|bytes| bytes.checked_add(first_byte));
        let bytes = bytes.ok_or_else(too_large)?;
        // The block's alignment must be findable behind whatever address the allocator returns.
        bytes.checked_add(block_alignment).ok_or_else(too_wide)?;
        let as_size = |bytes: i64| usize::try_from(bytes).map_err(|_| too_large());

        Ok(Placement {
            shape: shape.clone(),
            dtype: self.dtype,
            strides: placed.strides,
            layout,
            padding,
            dims: self.dims.clone(),
            halo: self.halo.clone(),
            origin: self.origin.clone(),
            alignment_size,
            aligned_index,
            device: self.target(),
            block_bytes: as_size(bytes)?,
            block_alignment: as_size(block_alignment)?,
            first_byte: as_size(first_byte)?,
        })
    }

    /// Whether the preset is of the kind that aligns the start of the memory and keeps rows compact. A stated
    /// alignment replaces the number of bytes, not the kind.
    fn aligns_base(&self) -> bool {
        matches!(self.preset.as_ref().map(Preset::alignment), Some(Alignment::Base(_)))
    }

    fn checked_layout(&self) -> Result<Layout, LayoutError> {
        match (&self.layout, &self.preset) {
            (Some(layout), _) => check_len("layout", layout.len(), self.ndim()).map(|()| layout.clone()),
            (None, Some(preset)) => Ok(match &self.dims {
                Some(dims) => Layout::by_rule(preset.layout(), dims),
                None => Layout::by_rule(preset.layout(), &Dims::standard(self.ndim())),
            }),
            (None, None) => Ok(Layout::c_order(self.ndim())),
        }
    }

    fn checked_alignment(&self, itemsize: i64) -> Result<i64, LayoutError> {
        match (self.alignment_size, self.preset.as_ref().map(Preset::alignment)) {
            (Some(bytes), _) if bytes < 1 => Err(LayoutError::AlignmentSize { got: bytes }),
            (Some(bytes), _) => Ok(bytes),
            // At most 2**32 elements of 16 bytes: far from overflow.
            (None, Some(Alignment::Elements(elements))) => Ok(i64::from(elements) * itemsize),
            (None, Some(Alignment::Base(bytes))) => Ok(i64::from(bytes)),
            (None, None) => Ok(1),
        }
    }

    fn checked_aligned_index(&self) -> Result<Option<Box<[i64]>>, LayoutError> {
        let Some(index) = &self.aligned_index else {
            // A preset that aligns the base would not, were the first point behind the halo aligned instead.
            let halo = self.halo.as_ref().filter(|_| !self.aligns_base());
            return Ok(halo.map(|halo| halo.iter().map(|(lower, _)| *lower).collect()));
        };
        check_len("aligned_index", index.len(), self.ndim())?;
        match index.iter().position(|entry| *entry < 0) {
            Some(axis) => Err(LayoutError::AlignedIndex { axis, got: index[axis] }),
            None => Ok(Some(index.clone())),
        }
    }
}

/// Bytes from element 0 to the element at `index`; `None` if that overflows.
pub(crate) fn offset(index: &[i64], strides: &[i64], itemsize: i64) -> Option<i64> {
    index.iter().zip(strides).try_fold(0i64, |sum, (position, stride)| {
        position.checked_mul(*stride)?.checked_mul(itemsize)?.checked_add(sum)
    })
}
