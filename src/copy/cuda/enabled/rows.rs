//! Copies by the driver, of rows that are contiguous on both sides.

use std::mem::MaybeUninit;

use cudarc::driver::sys::{self, CUmemorytype};

use super::link::Link;
use super::work::{Work, each};
use crate::copy::plan::{Plan, Step};
use crate::device::Device;
use crate::error::{DeviceError, Result};
use crate::memory::cuda::{Stream, check, enter, raw};

/// The largest distance between rows, in bytes, that the driver accepts.
const FURTHEST: usize = (1 << 31) - 1;

// The next three are estimates: nothing was measured on hardware.

/// Rows shorter than this many bytes are faster by a kernel, if there are more than a few.
const SHORT: usize = 64;

/// The largest number of rows, or of calls that do not wait, that counts as few.
const FEW: usize = 16;

/// From this many bytes on, the time of a call does not matter.
const LONG: usize = 64 << 10;

/// A box of rows for one call, and the loops over further calls.
pub(super) struct Rows<'w> {
    width: usize,
    height: usize,
    depth: usize,
    /// Bytes from row to row, on both sides.
    pitch: (usize, usize),
    /// Rows from layer to layer, on both sides.
    layer: (usize, usize),
    outer: &'w [Step],
    start: (*mut u8, *const u8),
}

impl Rows<'_> {
    /// Returns the rows of some work, if its elements are contiguous on both sides.
    pub(super) fn of(work: &Work) -> Option<Rows<'_>> {
        let Work { plan: Plan { steps, .. }, itemsize, .. } = work;
        let unit = itemsize.cast_signed();
        let (width, outer) = match steps.split_last() {
            None => (*itemsize, &steps[..]),
            Some((inner, outer)) if (inner.to, inner.from) == (unit, unit) => (inner.count * itemsize, outer),
            Some(_) => return None,
        };
        let mut rows =
            Rows { width, height: 1, depth: 1, pitch: (width, width), layer: (1, 1), outer, start: work.first() };
        if let Some((step, outer)) = rows.outer.split_last()
            && let Some(pitch) = multiples(step, (1, 1), (width, width))
            && pitch.0.max(pitch.1) <= FURTHEST
        {
            (rows.height, rows.pitch, rows.layer, rows.outer) = (step.count, pitch, (step.count, step.count), outer);
            if let Some((step, outer)) = rows.outer.split_last()
                && let Some(layer) = multiples(step, pitch, rows.layer)
            {
                (rows.depth, rows.layer, rows.outer) = (step.count, layer, outer);
            }
        }
        Some(rows)
    }

    /// Returns whether everything is contiguous on both sides.
    pub(super) fn is_one_run(&self) -> bool {
        self.outer.is_empty() && self.height * self.depth == 1
    }

    /// Returns whether one call of the driver copies everything, and fast.
    pub(super) fn is_one_call(&self) -> bool {
        self.outer.is_empty() && self.has_long_rows()
    }

    /// Returns whether the rows are long enough, and the calls few for the bytes. Between a device and pageable host memory the
    /// driver may wait in each call, so a short call must be the only one there.
    pub(super) fn is_worthwhile(&self, link: Link) -> bool {
        let few = if let Link::Peer { .. } = link { FEW } else { 1 };
        let calls: usize = self.outer.iter().map(|step| step.count).product();
        self.has_long_rows() && (calls <= few || self.height * self.depth * self.width >= LONG)
    }

    fn has_long_rows(&self) -> bool {
        self.height * self.depth <= FEW || self.width >= SHORT
    }

    /// Copies from the host, to it, or to another device.
    ///
    /// # Safety
    /// - The memory on both sides stays valid until the stream has done the copy.
    pub(super) unsafe fn cross(&self, link: Link, stream: Stream<'_>) -> Result<()> {
        let (device, host) = (CUmemorytype::CU_MEMORYTYPE_UNIFIED, CUmemorytype::CU_MEMORYTYPE_HOST);
        // SAFETY: passed on from the caller.
        unsafe {
            match link {
                Link::Up(to) => self.by_calls(to, stream, device, host),
                Link::Down(from) => self.by_calls(from, stream, host, device),
                Link::Peer { to, from } => self.to_peer(to, from, stream),
            }
        }
    }

    /// Copies memory that one device can access.
    ///
    /// # Safety
    /// - As for [`Rows::cross`].
    pub(super) unsafe fn within(&self, device: Device, stream: Stream<'_>) -> Result<()> {
        let unified = CUmemorytype::CU_MEMORYTYPE_UNIFIED;
        // SAFETY: passed on from the caller.
        unsafe { self.by_calls(device, stream, unified, unified) }
    }

    /// # Safety
    /// - As for [`Rows::cross`].
    unsafe fn by_calls(
        &self,
        device: Device,
        stream: Stream<'_>,
        to_kind: CUmemorytype,
        from_kind: CUmemorytype,
    ) -> Result<()> {
        let _entered = enter(device)?;
        each(self.outer, self.start, &mut |to, from| {
            let (to, from) = (to.expose_provenance(), from.expose_provenance());
            let (to_device, from_device) = (to as u64, from as u64);
            let (to_host, from_host) =
                (std::ptr::with_exposed_provenance_mut(to), std::ptr::with_exposed_provenance(from));
            // SAFETY: passed on from the caller; both memory types of the zeroed struct, for which 0 is not valid, are set.
            let (result, function) = unsafe {
                if self.height == 1 {
                    let width = self.width;
                    match (to_kind, from_kind) {
                        (_, CUmemorytype::CU_MEMORYTYPE_HOST) => {
                            (sys::cuMemcpyHtoDAsync_v2(to_device, from_host, width, raw(stream)), "cuMemcpyHtoDAsync")
                        }
                        (CUmemorytype::CU_MEMORYTYPE_HOST, _) => {
                            (sys::cuMemcpyDtoHAsync_v2(to_host, from_device, width, raw(stream)), "cuMemcpyDtoHAsync")
                        }
                        _ => (sys::cuMemcpyAsync(to_device, from_device, width, raw(stream)), "cuMemcpyAsync"),
                    }
                } else {
                    // Rows without layers are a box with one layer.
                    let mut copy = MaybeUninit::<sys::CUDA_MEMCPY3D>::zeroed();
                    let it = copy.as_mut_ptr();
                    ((*it).srcMemoryType, (*it).srcHost, (*it).srcDevice) = (from_kind, from_host, from_device);
                    ((*it).dstMemoryType, (*it).dstHost, (*it).dstDevice) = (to_kind, to_host, to_device);
                    ((*it).dstPitch, (*it).srcPitch) = self.pitch;
                    ((*it).dstHeight, (*it).srcHeight) = self.layer;
                    ((*it).WidthInBytes, (*it).Height, (*it).Depth) = (self.width, self.height, self.depth);
                    (sys::cuMemcpy3DAsync_v2(it, raw(stream)), "cuMemcpy3DAsync")
                }
            };
            Ok(check(device, function, result)?)
        })
    }

    /// Copies to another device, in a stream of that device.
    ///
    /// # Safety
    /// - As for [`Rows::cross`].
    unsafe fn to_peer(&self, to_device: Device, from_device: Device, stream: Stream<'_>) -> Result<()> {
        let from_context = context(from_device)?;
        let _entered = enter(to_device)?;
        let to_context = context(to_device)?;
        let device = CUmemorytype::CU_MEMORYTYPE_DEVICE;
        each(self.outer, self.start, &mut |to, from| {
            let (to, from) = (to.expose_provenance() as u64, from.expose_provenance() as u64);
            // SAFETY: passed on from the caller: the rows are inside memory of the two devices.
            let (result, function) = unsafe {
                if self.height == 1 {
                    let result = sys::cuMemcpyPeerAsync(to, to_context, from, from_context, self.width, raw(stream));
                    (result, "cuMemcpyPeerAsync")
                } else {
                    let mut copy = MaybeUninit::<sys::CUDA_MEMCPY3D_PEER>::zeroed();
                    let it = copy.as_mut_ptr();
                    ((*it).srcMemoryType, (*it).dstMemoryType) = (device, device);
                    ((*it).srcDevice, (*it).srcContext) = (from, from_context);
                    ((*it).dstDevice, (*it).dstContext) = (to, to_context);
                    ((*it).dstPitch, (*it).srcPitch) = self.pitch;
                    ((*it).dstHeight, (*it).srcHeight) = self.layer;
                    ((*it).WidthInBytes, (*it).Height, (*it).Depth) = (self.width, self.height, self.depth);
                    (sys::cuMemcpy3DPeerAsync(it, raw(stream)), "cuMemcpy3DPeerAsync")
                }
            };
            Ok(check(to_device, function, result)?)
        })
    }
}

/// Returns how often `unit` goes into the distances of a step, on both sides; `None` if it does not, or less often than
/// `least`.
fn multiples(step: &Step, unit: (usize, usize), least: (usize, usize)) -> Option<(usize, usize)> {
    let often = |distance: isize, unit: usize, least: usize| {
        let distance = usize::try_from(distance).ok()?;
        (distance.is_multiple_of(unit) && distance / unit >= least).then_some(distance / unit)
    };
    Some((often(step.to, unit.0, least.0)?, often(step.from, unit.1, least.1)?))
}

/// Returns the context that [`enter`] makes current for a device.
fn context(device: Device) -> Result<sys::CUcontext, DeviceError> {
    let _entered = enter(device)?;
    let mut context = std::ptr::null_mut();
    // SAFETY: the driver writes the handle to a live variable.
    check(device, "cuCtxGetCurrent", unsafe { sys::cuCtxGetCurrent(&raw mut context) })?;
    Ok(context)
}
