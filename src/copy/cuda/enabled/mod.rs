//! Copies and fills by CUDA.
//!
//! ```text
//! one device            one call of the driver if it supports the layout, else a kernel                   launch
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

use self::link::Link;
use self::work::Work;
use crate::copy::convert::Conversion;
use crate::copy::plan::Plan;
use crate::copy::{Executor, executors};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{DTypeError, DTypeErrorKind, Result};
use crate::memory::cuda::{current_stream, error_if_capturing, is_capturing, wait};

pub(in crate::copy) use self::fill::fill;

/// Copies elements that at least one device can access.
///
/// # Errors
/// [`DTypeError`] if elements on devices would have to be converted; [`crate::DeviceError`] if a device cannot be
/// used; [`crate::MemoryError`] if there is no memory for a staging buffer.
///
/// # Safety
/// - As for [`crate::copy::copy`].
pub(in crate::copy) unsafe fn copy(to: &Descriptor, from: &Descriptor, conversion: Conversion) -> Result<()> {
    let Some(plan) = Plan::new(to.shape(), to.byte_strides(), from.byte_strides()) else { return Ok(()) };
    let work = Work { plan, to: to.ptr(), from: from.ptr(), itemsize: to.itemsize() };
    // SAFETY: passed on from the caller.
    unsafe {
        match (executors(to, from)?, conversion) {
            ((Executor::Device(device), Executor::Device(_)), Conversion::Convert { .. }) => {
                let got = format_args!("{} to {} on {device}, as only the host casts", from.dtype(), to.dtype());
                Err(DTypeError::new("dtype", &"a copy without a cast", &got)
                    .with_fix(&"copy to 'cpu' first, or cast before the copy")
                    .with_kind(DTypeErrorKind::CastOnDevice)
                    .into())
            }
            ((Executor::Device(there), Executor::Device(here)), Conversion::None) if there == here => {
                launch::copy(there, current_stream(there).stream(), &work)
            }
            ((Executor::Device(there), Executor::Device(here)), Conversion::None) => between(there, here, &work),
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
unsafe fn between(to: Device, from: Device, work: &Work) -> Result<()> {
    let (there, here) = (current_stream(to), current_stream(from));
    let (writes, reads) = ((to, there.stream()), (from, here.stream()));
    error_if_capturing(from, reads.1)?;
    let link = Link::Peer { to, from };
    if is_capturing(to, writes.1)? {
        // SAFETY: passed on from the caller.
        return unsafe { cross::copy_across(link, work) };
    }
    wait(writes, reads)?;
    // SAFETY: passed on from the caller: both memories exist; `wait` has ordered the streams.
    let carried = unsafe { cross::copy_across(link, work) };
    carried.and(wait(reads, writes))
}
