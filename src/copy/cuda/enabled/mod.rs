//! Copies and fills by CUDA.
//!
//! ```text
//! one device            one call of the driver for one run of elements, else a kernel; casts              launch
//! two, or the host      rows that are contiguous on both sides: the driver's copies of 1 to 3 dimensions  rows
//!                       else a staging buffer, which a kernel or the host fills or reads                  cross
//! ```
//!
//! A device can access its own, pinned and managed memory. All work goes to the devices' current streams. Copies from or to
//! other host memory wait for the stream.

#![allow(unsafe_code, reason = "functions of the driver")]

mod cross;
mod fill;
mod launch;
mod link;
mod module;
mod rows;
mod work;

use self::launch::Cast;
use self::link::Link;
use self::rows::Rows;
use self::work::Work;
use crate::copy::convert::Conversion;
use crate::copy::plan::Plan;
use crate::copy::{Executor, executors};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::Result;
use crate::memory::cuda::{current_stream, error_if_capturing, is_capturing, wait};

pub(in crate::copy) use self::fill::fill;

/// Copies elements that at least one device can access.
///
/// # Errors
/// [`crate::DeviceError`] if a device cannot be used; [`crate::MemoryError`] if there is no memory for a staging buffer.
///
/// # Safety
/// - As for [`crate::copy::copy`].
pub(in crate::copy) unsafe fn copy(to: &Descriptor, from: &Descriptor, conversion: Conversion) -> Result<()> {
    let Some(plan) = Plan::new(to.shape(), to.byte_strides(), from.byte_strides()) else { return Ok(()) };
    let work = Work { plan, to: to.ptr(), from: from.ptr(), itemsize: to.itemsize() };
    let cast = matches!(conversion, Conversion::Convert { .. }).then(|| (to.dtype(), from.dtype()));
    // SAFETY: passed on from the caller.
    unsafe {
        match (executors(to, from)?, conversion) {
            ((Executor::Device(there), Executor::Device(here)), _) if there == here => {
                let current = current_stream(there);
                let is_inside = to.device().is_cuda() && from.device().is_cuda();
                // Across the link to the host, the driver uses engines of their own.
                match Rows::of(&work).filter(|rows| !is_inside && cast.is_none() && rows.is_one_call()) {
                    Some(rows) => rows.within(there, current.stream()),
                    None => launch::copy(there, current.stream(), &work, cast),
                }
            }
            ((Executor::Device(there), Executor::Device(here)), _) => between(there, here, &work, cast),
            ((Executor::Device(device), Executor::Host), _) => {
                cross::with_host(Link::Up(device), &work, conversion, to.itemsize())
            }
            ((Executor::Host, Executor::Device(device)), _) => {
                cross::with_host(Link::Down(device), &work, conversion, from.itemsize())
            }
            ((Executor::Host, Executor::Host), _) => Ok(()),
        }
    }
}

/// Copies from one device to another, in the order of both current streams. During graph capture in the destination's stream,
/// no stream waits: the code that launches the graph orders it with the other device's work.
///
/// # Safety
/// - As for [`copy`].
unsafe fn between(to: Device, from: Device, work: &Work, cast: Option<Cast>) -> Result<()> {
    let (there, here) = (current_stream(to), current_stream(from));
    let (writes, reads) = ((to, there.stream()), (from, here.stream()));
    error_if_capturing(from, reads.1)?;
    let link = Link::Peer { to, from };
    if cast.is_some() {
        // The temporary memory would be freed before a captured graph runs.
        error_if_capturing(to, writes.1)?;
    } else if is_capturing(to, writes.1)? {
        // SAFETY: passed on from the caller.
        return unsafe { cross::copy_across(link, work) };
    }
    wait(writes, reads)?;
    // SAFETY: passed on from the caller: both memories exist; `wait` has ordered the streams.
    let carried = unsafe {
        match cast {
            None => cross::copy_across(link, work),
            Some(_) => cross::copy_from_peer(to, from, work, cast),
        }
    };
    carried.and(wait(reads, writes))
}
