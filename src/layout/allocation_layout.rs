//! The offset of every element of a field to allocate.

use super::strides::{compute, lcm};
use super::{Extents, Layout, MAX_NDIM, Metadata, Padding, Promise, Spec, check_len, offset, too_many_dims};
use crate::device::Device;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{LayoutError, LayoutErrorKind, Result, Tuple};
use crate::layout::{alignment_too_large, negative_extent, wrong_aligned_index, wrong_alignment_size};
use crate::preset::{Alignment, Preset};

/// Host blocks start at a multiple of this many bytes, from which JAX shares memory without a copy.
const HOST_ALIGNMENT: i64 = 64;

/// Blocks that CUDA manages start at a multiple of this many bytes, as CUDA's own allocations do.
const CUDA_ALIGNMENT: i64 = 256;

/// The offset of every element of a field in its block: a [`Spec`] after checking.
///
/// # Example
/// ```
/// use dlfield::{AllocationLayout, DType, Spec};
/// let place: AllocationLayout = Spec::new(&[3, 5], DType::F64).alignment_size(64).place().unwrap();
/// assert_eq!((place.strides, place.block_bytes), (vec![8, 1], 3 * 8 * 8));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AllocationLayout {
    /// Extents, in index order.
    pub shape: Vec<i64>,
    /// Element type.
    pub dtype: DType,
    /// Strides in elements, in index order.
    pub strides: Vec<i64>,
    /// Order of the strides.
    pub layout: Layout,
    /// Padding between rows.
    pub padding: Padding,
    /// Dims, origin and halo, as far as they were set.
    pub metadata: Metadata,
    /// The address of the element at `aligned_index` is a multiple of this many bytes.
    pub alignment_size: i64,
    /// The aligned index; all zeros if absent.
    pub aligned_index: Option<Box<[i64]>>,
    /// Device of the memory.
    pub device: Device,
    /// Bytes to allocate; may be 0.
    pub block_bytes: usize,
    /// The start of the block must be a multiple of this many bytes.
    pub block_alignment: usize,
    /// Bytes from the start of the block to the element at index 0.
    pub first_byte: usize,
}

/// The block of an [`AllocationLayout`]: its bytes, their alignment, and the bytes before the element at index 0.
pub(crate) struct PlannedBlock {
    pub(crate) device: Device,
    pub(crate) bytes: usize,
    pub(crate) alignment: usize,
    pub(crate) first_byte: usize,
}

impl Spec {
    /// Computes the offset of every element from the start of the block.
    ///
    /// # Errors
    /// [`LayoutError`] or [`crate::DimsError`] naming the argument at fault. A spec has at most [`MAX_NDIM`] dimensions,
    /// extents of 0 or more, one entry per dimension in every other argument, a permutation as layout, halo widths of 0 or more
    /// that are together at most the extent, origin and aligned index from 0 to the extent, an alignment of 1 byte or more, and
    /// sizes below 2**63 bytes.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec};
    /// let place = Spec::new(&[4, 5], DType::F32).place().unwrap();
    /// assert_eq!((place.strides.as_slice(), place.block_bytes), (&[5, 1][..], 80));
    /// assert!(Spec::new(&[i64::MAX, 5], DType::F32).place().is_err());
    /// ```
    pub fn place(&self) -> Result<AllocationLayout> {
        let (mut strides, mut promise) = (Extents::new(), Promise::NONE);
        let block = self.plan(&mut strides, &mut promise)?;
        Ok(AllocationLayout {
            shape: self.shape.to_vec(),
            dtype: self.dtype,
            strides: strides.into_vec(),
            layout: promise.layout.unwrap_or_else(|| Layout::c_order(self.ndim())),
            padding: promise.padding,
            metadata: self.metadata.clone(),
            alignment_size: promise.alignment_size,
            aligned_index: promise.aligned_index,
            device: block.device,
            block_bytes: block.bytes,
            block_alignment: block.alignment,
            first_byte: block.first_byte,
        })
    }

    /// As [`Spec::place`], without a copy of what the spec has anyway. Replaces `strides` and `promise`: moving these lists
    /// takes longer than filling them.
    #[inline(always)]
    pub(crate) fn plan(&self, strides: &mut Extents, promise: &mut Promise) -> Result<PlannedBlock> {
        let (shape, ndim) = (&self.shape[..], self.shape.len());
        if ndim > MAX_NDIM {
            return Err(too_many_dims(ndim).into());
        }
        if let Some(axis) = shape.iter().position(|extent| *extent < 0) {
            return Err(negative_extent(axis, shape[axis]).into());
        }
        self.metadata.check(shape)?;
        let layout = promise.layout.insert(Layout::c_order(0));
        self.find_layout(layout)?;
        let itemsize = i64::try_from(self.dtype.itemsize()).unwrap_or(i64::MAX);
        let alignment_size = self.checked_alignment(itemsize)?;
        let aligned_index = self.checked_aligned_index()?;
        let padding = self.padding.unwrap_or_else(|| {
            if self.aligns_base() { Padding::None } else { Padding::default_for(alignment_size, itemsize) }
        });

        let device = self.device();
        let block = if device.is_of_cuda() { CUDA_ALIGNMENT } else { HOST_ALIGNMENT };
        let too_wide = || alignment_too_large(alignment_size, self.dtype.itemsize());
        let alignment = lcm(alignment_size, itemsize).ok_or_else(too_wide)?;
        let block_alignment = lcm(alignment, block).ok_or_else(too_wide)?;
        let too_large = || too_large(shape, self.dtype.itemsize());
        let unit = if padding == Padding::Row { alignment / itemsize } else { 1 };
        let elements = compute(strides, shape, layout, padding, unit).ok_or_else(too_large)?;
        let first_byte = match &aligned_index {
            Some(index) => {
                let aligned_offset = offset(index, strides, itemsize);
                (-aligned_offset.ok_or_else(|| too_far(index))?).rem_euclid(alignment)
            }
            None => 0,
        };
        // A field without elements gets the strides of one with extents of 1 in place of 0, but no memory.
        let all = elements.checked_mul(itemsize);
        let bytes =
            all.map(|all| if shape.contains(&0) { 0 } else { all }).and_then(|bytes| bytes.checked_add(first_byte));
        let bytes = bytes.ok_or_else(too_large)?;
        // An aligned start must fit behind any address that the allocator returns.
        bytes.checked_add(block_alignment).ok_or_else(too_wide)?;
        let as_size = |bytes: i64| usize::try_from(bytes).map_err(|_| too_large());

        promise.padding = padding;
        promise.alignment_size = alignment_size;
        promise.aligned_index = aligned_index;
        let (bytes, alignment) = (as_size(bytes)?, as_size(block_alignment)?);
        Ok(PlannedBlock { device, bytes, alignment, first_byte: as_size(first_byte)? })
    }

    /// Returns whether the preset aligns the start of the memory and keeps rows compact. An explicit alignment replaces the
    /// number of bytes, not the kind of alignment.
    fn aligns_base(&self) -> bool {
        matches!(self.preset.as_ref().map(Preset::alignment), Some(Alignment::Base(_)))
    }

    /// Sets `layout` to the explicit one, else that of the preset, else C order.
    #[inline]
    fn find_layout(&self, layout: &mut Layout) -> Result<(), LayoutError> {
        match (&self.layout, &self.preset) {
            (Some(given), _) => {
                check_len("layout", given.len(), self.ndim())?;
                layout.clone_from(given);
            }
            (None, Some(preset)) => match &self.metadata.dims {
                Some(dims) => layout.set_by_rule(preset.layout(), dims),
                None => layout.set_by_rule(preset.layout(), &Dims::standard(self.ndim())),
            },
            (None, None) => *layout = Layout::c_order(self.ndim()),
        }
        Ok(())
    }

    fn checked_alignment(&self, itemsize: i64) -> Result<i64, LayoutError> {
        match (self.alignment_size, self.preset.as_ref().map(Preset::alignment)) {
            (Some(bytes), _) if bytes < 1 => Err(wrong_alignment_size(bytes)),
            (Some(bytes), _) => Ok(bytes),
            // At most 2**32 elements of 16 bytes: far from overflow.
            (None, Some(Alignment::Elements(elements))) => Ok(i64::from(elements) * itemsize),
            (None, Some(Alignment::Base(bytes) | Alignment::Rows(bytes))) => Ok(i64::from(bytes)),
            (None, None) => Ok(1),
        }
    }

    fn checked_aligned_index(&self) -> Result<Option<Box<[i64]>>, LayoutError> {
        let Some(index) = &self.aligned_index else {
            // A preset with base alignment keeps index 0 aligned, not the first point inside the halo.
            let halo = self.metadata.halo.as_ref().filter(|_| !self.aligns_base());
            return Ok(halo.map(|halo| halo.iter().map(|(lower, _)| *lower).collect()));
        };
        check_len("aligned_index", index.len(), self.ndim())?;
        // The extent itself is allowed: it is the lower halo width of a field whose domain is empty.
        match index.iter().zip(&self.shape).position(|(entry, extent)| !(0..=*extent).contains(entry)) {
            Some(axis) => Err(wrong_aligned_index(axis, index[axis], self.shape[axis])),
            None => Ok(Some(index.clone())),
        }
    }
}

/// Returns the error for a field of 2**63 bytes or more.
#[cold]
fn too_large(shape: &[i64], itemsize: usize) -> LayoutError {
    let got = format_args!("{} with {itemsize}-byte elements, layout and padding", Tuple(shape));
    LayoutError::new("shape", &"less than 2**63 bytes", &got).with_kind(LayoutErrorKind::TooLarge)
}

/// Returns the error for an aligned index whose distance from index 0 overflows.
#[cold]
fn too_far(index: &[i64]) -> LayoutError {
    let expected = "an index less than 2**63 bytes away from index 0";
    LayoutError::new("aligned_index", &expected, &Tuple(index)).with_kind(LayoutErrorKind::TooLarge)
}
