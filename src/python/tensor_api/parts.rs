//! The parts of a tensor as C structs, whose layout is the same in every build of this crate.

use std::mem::{MaybeUninit, offset_of};
use std::ptr::null;

use dlpark::ffi::{DLDataType, DLDevice};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dims::{Dim, Dims, DimsError};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::{Extents, Layout, MAX_NDIM, Metadata, Padding, Promise};

/// What a [`Descriptor`] says, without metadata.
#[repr(C)]
pub struct Field {
    pub(super) data: *mut u8,
    /// Shape and strides, in elements, have `ndim` entries.
    pub(super) shape: *const i64,
    pub(super) strides: *const i64,
    pub(super) ndim: usize,
    pub(super) device: DLDevice,
    pub(super) dtype: DLDataType,
    pub(super) readonly: bool,
}

impl Field {
    /// The parts of a descriptor.
    #[inline]
    pub fn of(descriptor: &Descriptor) -> Field {
        Field {
            data: descriptor.ptr(),
            shape: descriptor.shape().as_ptr(),
            strides: descriptor.strides().as_ptr(),
            ndim: descriptor.ndim(),
            device: descriptor.device().to_dlpack(),
            dtype: descriptor.dtype().to_dlpack(),
            readonly: descriptor.is_readonly(),
        }
    }

    /// Fills a descriptor. The numbers are those of a valid one, so they are not checked again.
    ///
    /// # Safety
    /// - The parts are those of a descriptor that lives and does not change during the call.
    #[inline]
    pub(super) unsafe fn read_into(&self, descriptor: &mut Descriptor) -> Result<()> {
        let device = Device::from_dlpack(self.device)?;
        let dtype = DType::from_dlpack(self.dtype)?;
        // SAFETY: by this function's contract.
        let (shape, strides) = unsafe { (entries(self.shape, self.ndim), entries(self.strides, self.ndim)) };
        descriptor.set_checked(self.data, device, dtype, self.readonly, shape, strides);
        Ok(())
    }
}

/// What a [`Metadata`] says.
#[repr(C)]
pub struct FieldMetadata {
    pub(super) ndim: usize,
    /// Each has `ndim` entries, or is NULL for unset ones.
    pub(super) labels: *const Label,
    pub(super) origin: *const i64,
    pub(super) halo: *const [i64; 2],
    pub(super) halo_is_cut: bool,
}

/// One label. `text` is for user labels only.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Label {
    pub(super) kind: u32,
    /// The number of a data dimension.
    pub(super) number: u32,
    pub(super) text: *const u8,
    pub(super) len: usize,
}

const LABEL_I: u32 = 0;
const LABEL_J: u32 = 1;
const LABEL_K: u32 = 2;
const LABEL_DATA: u32 = 3;
const LABEL_TEXT: u32 = 4;

/// Room for the labels of a [`FieldMetadata`].
#[repr(C)]
pub struct Labels([MaybeUninit<Label>; MAX_NDIM]);

/// A halo is passed on as it is in memory. Rust does not promise how it orders the fields of a tuple.
const _: () = assert!(
    offset_of!((i64, i64), 0) == 0 && offset_of!((i64, i64), 1) == size_of::<i64>() && size_of::<(i64, i64)>() == 16
);

impl FieldMetadata {
    /// The parts of a descriptor's metadata, valid as long as the descriptor and `labels` are.
    #[inline]
    pub fn of(descriptor: &Descriptor, labels: &mut MaybeUninit<Labels>) -> FieldMetadata {
        let ndim = descriptor.ndim();
        let Some(metadata) = descriptor.metadata() else {
            return FieldMetadata { ndim, labels: null(), origin: null(), halo: null(), halo_is_cut: false };
        };
        FieldMetadata {
            ndim,
            labels: metadata.dims.as_ref().map_or(null(), |dims| write_labels(dims, labels)),
            origin: metadata.origin.as_ref().map_or(null(), |origin| origin.as_ptr()),
            halo: metadata.halo.as_ref().map_or(null(), |halo| halo.as_ptr().cast()),
            halo_is_cut: metadata.halo_is_cut,
        }
    }

    pub(super) fn ndim(&self) -> usize {
        self.ndim
    }

    /// Whether there is none.
    #[cfg(feature = "signature")]
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_null() && self.origin.is_null() && self.halo.is_null()
    }

    /// Returns the metadata.
    ///
    /// # Errors
    /// [`DimsError`] for labels that are not dims.
    ///
    /// # Safety
    /// - The parts are those of metadata that lives and does not change during the call.
    pub(super) unsafe fn read(&self) -> Result<Metadata> {
        let FieldMetadata { ndim, labels, origin, halo, halo_is_cut } = *self;
        // SAFETY: by this function's contract, and each that is not NULL has `ndim` entries.
        unsafe {
            let dims = (!labels.is_null()).then(|| read_labels(entries(labels, ndim))).transpose()?;
            let origin = (!origin.is_null()).then(|| entries(origin, ndim).into());
            let halo = (!halo.is_null()).then(|| entries(halo, ndim).iter().map(|[low, high]| (*low, *high)).collect());
            Ok(Metadata { dims, origin, halo, halo_is_cut })
        }
    }
}

/// Writes the labels of dims. Their texts are those in `dims`.
fn write_labels(dims: &Dims, labels: &mut MaybeUninit<Labels>) -> *const Label {
    let start = labels.as_mut_ptr().cast::<Label>();
    // Dims of a field have at most as many labels as there is room for.
    for (axis, dim) in dims.iter().take(MAX_NDIM).enumerate() {
        let label = Label { kind: LABEL_TEXT, number: 0, text: null(), len: 0 };
        let label = match &dim {
            Dim::I => Label { kind: LABEL_I, ..label },
            Dim::J => Label { kind: LABEL_J, ..label },
            Dim::K => Label { kind: LABEL_K, ..label },
            Dim::Data(number) => Label { kind: LABEL_DATA, number: *number, ..label },
            Dim::Label(text) => Label { text: text.as_ptr(), len: text.len(), ..label },
        };
        // SAFETY: there is room for this many labels.
        unsafe { start.add(axis).write(label) };
    }
    start
}

/// # Safety
/// - The text of each user label is readable.
unsafe fn read_labels(labels: &[Label]) -> Result<Dims> {
    let dim = |(axis, label): (usize, &Label)| match label.kind {
        LABEL_I => Ok(Dim::I),
        LABEL_J => Ok(Dim::J),
        LABEL_K => Ok(Dim::K),
        LABEL_DATA => Ok(Dim::Data(label.number)),
        _ => {
            // SAFETY: by this function's contract.
            let text = unsafe { entries(label.text, label.len) };
            let text = std::str::from_utf8(text).ok().filter(|text| !text.is_empty());
            text.map(|text| Dim::Label(text.into())).ok_or(DimsError::Empty { axis })
        }
    };
    Ok(Dims::new(labels.iter().enumerate().map(dim).collect::<Result<_, _>>()?)?)
}

/// What a [`Promise`] says.
#[repr(C)]
pub struct FieldPromise {
    pub(super) ndim: usize,
    pub(super) alignment_size: i64,
    /// Has `ndim` entries, or is NULL for zeros.
    pub(super) aligned_index: *const i64,
    pub(super) has_layout: bool,
    pub(super) is_padded: bool,
    /// The ranks of the layout, if it has one.
    pub(super) layout: [u8; MAX_NDIM],
}

impl FieldPromise {
    /// The parts of what an allocation of `ndim` dimensions promises, valid as long as that is.
    pub(super) fn of(promise: &Promise, ndim: usize) -> FieldPromise {
        let Promise { layout, padding, alignment_size, aligned_index } = promise;
        let mut ranks = [0; MAX_NDIM];
        for (rank, of_layout) in ranks.iter_mut().zip(layout.iter().flat_map(Layout::iter)) {
            *rank = of_layout;
        }
        FieldPromise {
            ndim,
            alignment_size: *alignment_size,
            aligned_index: aligned_index.as_ref().map_or(null(), |index| index.as_ptr()),
            has_layout: layout.is_some(),
            is_padded: *padding == Padding::Row,
            layout: ranks,
        }
    }

    /// Returns the promise.
    ///
    /// # Errors
    /// [`crate::LayoutError`] for ranks that are not a layout.
    ///
    /// # Safety
    /// - The parts are those of a promise that lives and does not change during the call.
    pub(super) unsafe fn read(&self) -> Result<Promise> {
        let ndim = self.ndim.min(MAX_NDIM);
        let ranks = || self.layout[..ndim].iter().map(|rank| i64::from(*rank)).collect::<Extents>();
        let layout = self.has_layout.then(|| Layout::new(&ranks(), ndim)).transpose()?;
        let padding = if self.is_padded { Padding::Row } else { Padding::None };
        // SAFETY: by this function's contract, and it has `ndim` entries.
        let index = (!self.aligned_index.is_null()).then(|| unsafe { entries(self.aligned_index, ndim) }.into());
        Ok(Promise { layout, padding, alignment_size: self.alignment_size, aligned_index: index })
    }
}

/// Returns the `len` values at `start`.
///
/// # Safety
/// - `start` points to as many values, which stay readable and do not change for the lifetime. It is not NULL.
#[inline]
unsafe fn entries<'a, T>(start: *const T, len: usize) -> &'a [T] {
    // SAFETY: passed on from the caller.
    unsafe { std::slice::from_raw_parts(start, len) }
}
