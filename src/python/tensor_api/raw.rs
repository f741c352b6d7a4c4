//! A tensor as a C struct, whose layout is the same in every build of this crate.

use std::ffi::c_void;
use std::mem::{MaybeUninit, offset_of};
use std::ptr::{fn_addr_eq, null};

use dlpark::ffi::DLTensor;
use dlpark::{DlpackFlags, OpaqueContext};

use super::Release;
use crate::descriptor::Descriptor;
use crate::dims::{Dim, Dims, empty_label};
use crate::error::Result;
use crate::layout::{Extents, Layout, MAX_NDIM, Metadata, Padding, Promise};
use crate::protocol::dlpack;
use crate::tensor::{Owner, Tensor};

/// A tensor: what DLPack says of it, and its owner, metadata and promises.
#[repr(C)]
pub struct RawTensor {
    tensor: DLTensor,
    /// DLPack's flags, and [`HALO_IS_CUT`], [`IS_PADDED`], [`HAS_DEVICE_WORK`], [`IS_LENT`].
    flags: u64,
    /// NULL for memory without an owner.
    owner: *mut c_void,
    release: Release,
    /// This list and the next ones have an entry for each dimension, or are NULL for unset ones.
    labels: *const Label,
    origin: *const i64,
    halo: *const [i64; 2],
    /// Ranks of the strides.
    layout: *const u8,
    aligned_index: *const i64,
    alignment_size: i64,
}

const HALO_IS_CUT: u64 = 1 << 32;
const IS_PADDED: u64 = 1 << 33;
const HAS_DEVICE_WORK: u64 = 1 << 34;
/// The owner is the receiver's own, which adds a user to it: the sender keeps its count.
const IS_LENT: u64 = 1 << 35;

/// The text of a label; NULL for a data dimension, whose number is `len`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Label {
    text: *const u8,
    len: usize,
}

/// Room for the labels of a [`RawTensor`].
#[repr(C)]
pub struct Labels([MaybeUninit<Label>; MAX_NDIM]);

/// A halo is passed on as it is in memory. Rust does not promise how it orders the fields of a tuple.
const _: () = assert!(
    offset_of!((i64, i64), 0) == 0 && offset_of!((i64, i64), 1) == size_of::<i64>() && size_of::<(i64, i64)>() == 16
);

impl RawTensor {
    /// Describes a tensor, as long as the tensor and `labels` live, and passes on an owner of its memory.
    #[inline]
    pub fn of(tensor: &Tensor, owner: Owner, labels: &mut MaybeUninit<Labels>) -> RawTensor {
        fn start<T>(list: Option<&[T]>) -> *const T {
            list.map_or(null(), <[T]>::as_ptr)
        }
        let (descriptor, promise) = (tensor.descriptor(), tensor.promise());
        // Once: another thread may set the halo meanwhile.
        let metadata = descriptor.metadata();
        let dims = metadata.and_then(|metadata| metadata.dims.as_ref());
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        RawTensor {
            // DLPack has no address of no elements.
            tensor: DLTensor { data: descriptor.ptr().cast(), ..tensor.as_flagged_dlpack() },
            flags: flag(descriptor.is_readonly(), DlpackFlags::READ_ONLY.bits())
                | flag(descriptor.dtype().is_sub_byte(), DlpackFlags::IS_SUBBYTE_TYPE_PADDED.bits())
                | flag(metadata.is_some_and(|metadata| metadata.halo_is_cut), HALO_IS_CUT)
                | flag(promise.padding == Padding::Row, IS_PADDED)
                | flag(!tensor.is_of_host_alone(), HAS_DEVICE_WORK),
            owner: owner.into_raw(),
            release,
            labels: dims.map_or(null(), |dims| write(dims, labels)),
            origin: start(metadata.and_then(|metadata| metadata.origin.as_deref())),
            halo: start(metadata.and_then(|metadata| metadata.halo.as_deref())).cast(),
            layout: start(promise.layout.as_ref().map(Layout::ranks)),
            aligned_index: start(promise.aligned_index.as_deref()),
            alignment_size: promise.alignment_size,
        }
    }

    /// Lends an owner to its module, which releases it by this function.
    pub(super) fn lend(&mut self, owner: *mut c_void, release: Release) {
        (self.owner, self.release) = (owner, release);
        self.flags |= IS_LENT;
    }

    pub(super) fn ndim(&self) -> usize {
        usize::try_from(self.tensor.ndim).unwrap_or(0)
    }

    /// Returns whether the memory is the host's alone, so that nobody has to wait for a device.
    pub(super) fn is_of_host_alone(&self) -> bool {
        self.flags & HAS_DEVICE_WORK == 0
    }

    /// Fills a descriptor, without metadata.
    ///
    /// # Errors
    /// As for any DLPack tensor.
    ///
    /// # Safety
    /// - The lists live and do not change during the call.
    #[inline]
    pub(crate) unsafe fn describe(&self, descriptor: &mut Descriptor) -> Result<()> {
        let flags = DlpackFlags::from_bits_truncate(self.flags);
        // SAFETY: passed on from the caller: shape and strides are readable.
        unsafe { dlpack::read_into(descriptor, &self.tensor, Some(dlpack::VERSION), flags) }
    }

    /// Returns the metadata.
    ///
    /// # Errors
    /// [`DimsError`] for labels that are not dims.
    ///
    /// # Safety
    /// - The lists live and do not change during the call.
    pub(crate) unsafe fn metadata(&self) -> Result<Metadata> {
        // SAFETY: passed on from the caller: the lists are readable, and so are the texts of labels.
        let (labels, origin, halo) = unsafe { (self.list(self.labels), self.list(self.origin), self.list(self.halo)) };
        // SAFETY: as for the lists.
        let dims = labels.map(|labels| unsafe { read(labels) }).transpose()?;
        let halo = halo.map(|halo| halo.iter().map(|[low, high]| (*low, *high)).collect());
        Ok(Metadata { dims, origin: origin.map(Into::into), halo, halo_is_cut: self.flags & HALO_IS_CUT != 0 })
    }

    /// Returns what the allocation promised.
    ///
    /// # Errors
    /// [`crate::LayoutError`] for ranks that are not a layout.
    ///
    /// # Safety
    /// - The lists live and do not change during the call.
    pub(crate) unsafe fn promise(&self) -> Result<Promise> {
        // SAFETY: passed on from the caller: the lists are readable.
        let (ranks, index) = unsafe { (self.list(self.layout), self.list(self.aligned_index)) };
        let ranks = ranks.map(|ranks| ranks.iter().map(|rank| i64::from(*rank)).collect::<Extents>());
        Ok(Promise {
            layout: ranks.map(|ranks| Layout::new(&ranks, ranks.len())).transpose()?,
            padding: if self.flags & IS_PADDED == 0 { Padding::None } else { Padding::Row },
            alignment_size: self.alignment_size,
            aligned_index: index.map(Into::into),
        })
    }

    /// Returns an owner of the memory: that of this copy of the crate is itself again.
    ///
    /// # Safety
    /// - The owner is alive, and nobody has taken it over before.
    #[inline]
    pub unsafe fn take_owner(&self) -> Owner {
        if self.owner.is_null() {
            return Owner::NONE;
        }
        // SAFETY: passed on from the caller. Only the owners of this copy of the crate are released by its function, and any thread may
        // call the function of another.
        unsafe {
            match fn_addr_eq(self.release, release as Release) {
                true if self.flags & IS_LENT != 0 => Owner::clone_raw(self.owner),
                true => Owner::from_raw(self.owner),
                false => Owner::object(self.owner, self.release),
            }
        }
    }

    /// Releases the owner.
    ///
    /// # Safety
    /// - The owner is alive, and nobody has taken it over before. The memory is kept otherwise, if it is used after.
    #[inline]
    pub(super) unsafe fn release(&self) {
        if !self.owner.is_null() {
            // SAFETY: by this function's contract.
            unsafe { (self.release)(self.owner) };
        }
    }

    /// Returns a list with an entry for each dimension; `None` for NULL.
    ///
    /// # Safety
    /// - `start` is NULL, or points to as many values, which stay readable and do not change for the lifetime of this struct.
    unsafe fn list<T>(&self, start: *const T) -> Option<&[T]> {
        // SAFETY: by this function's contract.
        (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, self.ndim()) })
    }
}

/// Writes the labels of dims. Their texts are those in `dims`.
fn write(dims: &Dims, labels: &mut MaybeUninit<Labels>) -> *const Label {
    let start = labels.as_mut_ptr().cast::<Label>();
    // Dims of a field have at most as many labels as there is room for.
    for (axis, dim) in dims.iter().take(MAX_NDIM).enumerate() {
        let text = match &dim {
            Dim::I => "I",
            Dim::J => "J",
            Dim::K => "K",
            Dim::Label(text) => text,
            Dim::Data(_) => "",
        };
        let label = match dim {
            Dim::Data(number) => Label { text: null(), len: number as usize },
            _ => Label { text: text.as_ptr(), len: text.len() },
        };
        // SAFETY: there is room for this many labels.
        unsafe { start.add(axis).write(label) };
    }
    start
}

/// # Safety
/// - The text of each label is readable.
unsafe fn read(labels: &[Label]) -> Result<Dims> {
    let dim = |(axis, label): (usize, &Label)| {
        if label.text.is_null() {
            return u32::try_from(label.len).map(Dim::Data).map_err(|_| empty_label(axis));
        }
        // SAFETY: by this function's contract.
        let text = unsafe { std::slice::from_raw_parts(label.text, label.len) };
        std::str::from_utf8(text).ok().and_then(Dim::parse).ok_or_else(|| empty_label(axis))
    };
    Ok(Dims::new(labels.iter().enumerate().map(dim).collect::<Result<_, _>>()?)?)
}

/// [`super::TensorApi::release`].
///
/// # Safety
/// - An owner of this copy of the crate, which is not used after.
pub unsafe extern "C" fn release(owner: *mut c_void) {
    // SAFETY: by this function's contract, `into_raw` returned it.
    unsafe { Owner::drop_raw(owner) };
}
