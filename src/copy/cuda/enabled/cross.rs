//! Copies between the host and a device, and from one device to another.
//!
//! Rows that are contiguous on both sides are copied directly, padded or not. Other layouts need a staging buffer. It is on the
//! device, where a kernel reorders elements many times as fast as the host could. It is on the host if elements of the host are
//! converted, or if the host's side is scattered, which would make the link slow.

use super::fill::fill;
use super::launch::{self, Cast};
use super::link::Link;
use super::rows::Rows;
use super::work::{Detour, Side, Work};
use crate::copy::convert::Conversion;
use crate::copy::plan::{Plan, Steps};
use crate::copy::threads;
use crate::device::Device;
use crate::error::Result;
use crate::memory::cuda::{Stream, current_stream, error_if_capturing, synchronize, wait};
use crate::memory::{Block, Contents};

/// Staging buffers start at a multiple of this many bytes.
const ALIGNMENT: usize = 256;

/// Copies between the host and a device, and waits. `itemsize` is that of the device's elements.
///
/// # Safety
/// - As for [`crate::copy::copy`].
pub(super) unsafe fn with_host(link: Link, work: &Work, conversion: Conversion, itemsize: usize) -> Result<()> {
    let device = link.device();
    let current = current_stream(device);
    let stream = current.stream();
    if let Link::Up(_) = link
        && work.plan.steps.iter().all(|step| step.from == 0)
    {
        let mut element = [0u8; 16];
        let one = Plan::of(Steps::new());
        // SAFETY: the caller's `from` is readable for the one element.
        unsafe {
            threads::copy(&one, element.as_mut_ptr(), work.from, itemsize, conversion, false);
            return fill(device, &work.plan, work.to, &element[..itemsize]);
        }
    }
    error_if_capturing(device, stream)?;
    // SAFETY: passed on from the caller. Both branches return only after the stream has finished with the host's memory.
    unsafe {
        match conversion {
            Conversion::None => finished(device, stream, copy_across(link, work)),
            Conversion::Convert { .. } => copy_on_host(link, work, conversion, itemsize),
        }
    }
}

/// Copies from end to end of a link, in the order of the device's current stream.
///
/// # Safety
/// - All memory stays valid until the stream has done the copy.
pub(super) unsafe fn copy_across(link: Link, work: &Work) -> Result<()> {
    let device = link.device();
    let current = current_stream(device);
    let stream = current.stream();
    if let Some(rows) = Rows::of(work).filter(|rows| rows.is_worthwhile(link)) {
        // SAFETY: passed on from the caller.
        return unsafe { rows.cross(link, stream) };
    }
    // A captured graph runs later, any number of times: the staging buffer would be freed by then.
    error_if_capturing(device, stream)?;
    let (_, other) = link.sides();
    let detour = Detour::like(work, other, work.itemsize);
    let (into, out) = detour.through(work, std::ptr::null_mut());
    let carried = if let Link::Down(_) = link { out } else { into };
    // SAFETY: passed on from the caller.
    unsafe {
        if Rows::of(&carried).is_some_and(|rows| rows.is_worthwhile(link)) {
            copy_on_device(link, work, &detour)
        } else if let Link::Peer { to, from } = link {
            copy_from_peer(to, from, work, None)
        } else {
            copy_on_host(link, work, Conversion::None, work.itemsize)
        }
    }
}

/// Carries elements in the layout of the other end; the device reorders them.
///
/// # Safety
/// - As for [`carry`].
unsafe fn copy_on_device(link: Link, work: &Work, detour: &Detour) -> Result<()> {
    let device = link.device();
    let current = current_stream(device);
    let stream = current.stream();
    let between = Block::allocate(device, detour.bytes, ALIGNMENT, Contents::Undefined)?;
    let (into, out) = detour.through(work, between.as_ptr());
    // SAFETY: passed on from the caller; the staging buffer is freed in the order of the stream.
    unsafe {
        if let Link::Down(_) = link {
            launch::copy(device, stream, &into, None)?;
            copy_across(link, &out)
        } else {
            copy_across(link, &into)?;
            launch::copy(device, stream, &out, None)
        }
    }
}

/// Reorders elements for the device, or converts them, on the host.
///
/// # Safety
/// - As for [`with_host`].
unsafe fn copy_on_host(link: Link, work: &Work, conversion: Conversion, itemsize: usize) -> Result<()> {
    let device = link.device();
    let current = current_stream(device);
    let stream = current.stream();
    let (side, _) = link.sides();
    let detour = Detour::like(work, side, itemsize);
    let between = Block::allocate(Device::CPU, detour.bytes, ALIGNMENT, Contents::Undefined)?;
    let (into, out) = detour.through(work, between.as_ptr());
    // SAFETY: passed on from the caller; the host waits for the stream before it reads or frees the staging buffer.
    unsafe {
        if let Link::Down(_) = link {
            finished(device, stream, copy_across(link, &into))?;
            threads::copy(&out.plan, out.to, out.from, out.itemsize, conversion, false);
            Ok(())
        } else {
            threads::copy(&into.plan, into.to, into.from, into.itemsize, conversion, false);
            finished(device, stream, copy_across(link, &out))
        }
    }
}

/// Packs scattered elements before they are carried to another device, and casts them.
///
/// # Safety
/// - As for [`carry`].
pub(super) unsafe fn copy_from_peer(to: Device, from: Device, work: &Work, cast: Option<Cast>) -> Result<()> {
    let (there, here) = (current_stream(to), current_stream(from));
    let (writes, reads) = ((to, there.stream()), (from, here.stream()));
    let detour = Detour::like(work, Side::To, work.itemsize);
    let between = Block::allocate(from, detour.bytes, ALIGNMENT, Contents::Undefined)?;
    let (into, out) = detour.through(work, between.as_ptr());
    // SAFETY: passed on from the caller; the staging buffer is freed in the order of the source's stream, which then waits for
    // the destination's.
    unsafe {
        launch::copy(from, reads.1, &into, cast)?;
        wait(writes, reads)?;
        let carried = copy_across(Link::Peer { to, from }, &out);
        carried.and(wait(reads, writes))
    }
}

/// Waits for a stream, whether or not the calls that used it succeeded, and returns the first error.
fn finished(device: Device, stream: Stream<'_>, asked: Result<()>) -> Result<()> {
    let waited = synchronize(device, stream);
    asked.and(waited)
}
