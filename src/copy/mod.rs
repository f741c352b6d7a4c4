//! Copies of elements: a plan from shape and strides, and the loops that follow it.

mod convert;
mod cuda;
mod host;
mod parts;
mod plan;
mod threads;

pub use self::convert::can_cast;
pub use self::threads::{ThreadError, num_threads, set_num_threads};

use self::convert::Conversion;
use self::plan::{Plan, Step};
use crate::descriptor::Descriptor;
use crate::device::{Device, not_host_readable};
use crate::dtype::no_cast;
use crate::error::{Count, DTypeError, DTypeErrorKind, Result};
use crate::interrupt::{is_interruptible, stop_if_asked};
use crate::layout::{Extents, is_compact, shape_mismatch};
use crate::memory::Executor;

/// Contiguous copies and fills below this many bytes are done directly: making a plan would take longer.
const AT_ONCE: i64 = 1 << 16;

/// Returns what writes `to` and what reads `from` in a copy.
///
/// # Errors
/// [`DeviceError`](crate::DeviceError) unless the host or CUDA can access both devices.
pub(crate) fn executors(to: &Descriptor, from: &Descriptor) -> Result<(Executor, Executor)> {
    Ok((executor(to.device(), from.device())?, executor(from.device(), to.device())?))
}

/// Returns what writes the elements of a fill.
///
/// # Errors
/// As for [`executors`].
pub(crate) fn fill_executor(to: &Descriptor) -> Result<Executor> {
    executor(to.device(), Device::CPU)
}

fn executor(here: Device, there: Device) -> Result<Executor> {
    if here.is_cuda() {
        Ok(Executor::Device(here))
    } else if !here.is_host_readable() {
        Err(not_host_readable(here).into())
    } else if there.is_cuda() && here.is_of_cuda() {
        // The device can access this memory itself.
        Ok(Executor::Device(there))
    } else {
        Ok(Executor::Host)
    }
}

/// Copies every element of `from` to the same index of `to`, converted to the element type of `to`.
///
/// # Errors
/// [`LayoutError`](crate::LayoutError) unless the shapes are equal; [`DTypeError`] unless [`can_cast`] allows it;
/// [`DeviceError`](crate::DeviceError) if a device cannot be used, or if the host would have to wait for a stream during graph capture.
///
/// # Safety
/// - For the call, all elements of `from` are readable and all of `to` writable by what [`executors`] returns; by a device in
///   the order of its current stream.
/// - The two do not overlap.
#[allow(unsafe_code, reason = "descriptors are addresses; the caller vouches for the memory behind them")]
pub(crate) unsafe fn copy(to: &Descriptor, from: &Descriptor) -> Result<()> {
    if to.shape() != from.shape() {
        return Err(shape_mismatch(to.shape(), from.shape()).into());
    }
    let Some(conversion) = Conversion::between(from.dtype(), to.dtype()) else {
        return Err(no_cast(from.dtype(), to.dtype()).into());
    };
    let (writer, reader) = executors(to, from)?;
    if (writer, reader) != (Executor::Host, Executor::Host) {
        // SAFETY: passed on from the caller.
        return unsafe { cuda::copy(to, from, conversion) };
    }
    if to.dtype() == from.dtype()
        && to.strides() == from.strides()
        && (1..AT_ONCE).contains(&to.nbytes())
        && to.is_c_contiguous()
    {
        // SAFETY: both are one run of elements in the same order.
        unsafe { std::ptr::copy_nonoverlapping(from.ptr(), to.ptr(), usize::try_from(to.nbytes()).unwrap_or(0)) };
        return Ok(());
    }
    let Some(plan) = Plan::new(to.shape(), to.byte_strides(), from.byte_strides()) else { return Ok(()) };
    // SAFETY: the plan visits exactly the elements of both descriptors, which the caller guarantees are accessible.
    unsafe {
        match conversion {
            Conversion::Convert { row, .. } if plan.steps.iter().all(|step| step.from == 0) => {
                // One element for all indices is converted once.
                let mut element = [0u8; 16];
                row(Step { count: 1, to: 0, from: 0 }, element.as_mut_ptr(), from.ptr());
                let (itemsize, conversion) = (to.itemsize(), Conversion::None);
                in_pieces(&plan, itemsize, &|part| {
                    threads::copy(part, to.ptr(), element.as_ptr(), itemsize, conversion, false);
                })
            }
            conversion => in_pieces(&plan, to.itemsize(), &|part| {
                threads::copy(part, to.ptr(), from.ptr(), to.itemsize(), conversion, false);
            }),
        }
    }
}

/// Bytes after which long work asks whether to stop: hundredths of a second.
const PIECE: usize = 64 << 20;

/// A piece of a transposed copy has as many rows as fill lines of the cache on the other side.
const LEAST_ROWS: usize = 64;

/// Runs `work` on a plan: a long one in pieces, between which it may be stopped.
///
/// # Errors
/// [`crate::Error::Interrupted`].
fn in_pieces(plan: &Plan, itemsize: usize, work: &dyn Fn(&Plan)) -> Result<()> {
    if is_interruptible() {
        return divide(plan, 0, itemsize, work);
    }
    work(plan);
    Ok(())
}

/// Divides the dimensions of a plan from this one on, outer ones first, until a piece is short.
fn divide(plan: &Plan, outermost: usize, itemsize: usize, work: &dyn Fn(&Plan)) -> Result<()> {
    let bytes = plan.elements().saturating_mul(itemsize);
    let Some(Step { count, from, .. }) = plan.steps.get(outermost).copied().filter(|_| bytes > PIECE) else {
        work(plan);
        return Ok(());
    };
    let is_ordered = plan.steps[outermost..].iter().all(|step| step.from.unsigned_abs() <= from.unsigned_abs());
    let rows = (PIECE / (bytes / count).max(1)).max(if is_ordered { 1 } else { LEAST_ROWS });
    for first in (0..count).step_by(rows) {
        divide(&plan.part(outermost, first..count.min(first + rows)), outermost + 1, itemsize, work)?;
        stop_if_asked()?;
    }
    Ok(())
}

/// Copies `from` into `to` with NumPy's broadcasting: dimensions of extent 1, and missing leading ones, are repeated.
///
/// # Errors
/// As for [`copy`]; [`LayoutError`](crate::LayoutError) unless the shapes broadcast.
///
/// # Safety
/// - As for [`copy`].
#[allow(unsafe_code, reason = "descriptors are addresses; the caller vouches for the memory behind them")]
pub(crate) unsafe fn assign(to: &Descriptor, from: &Descriptor) -> Result<()> {
    if to.shape() == from.shape() {
        // SAFETY: passed on from the caller.
        return unsafe { copy(to, from) };
    }
    let wrong = || shape_mismatch(to.shape(), from.shape());
    // `from` may have further leading dimensions of extent 1.
    let surplus = from.ndim().saturating_sub(to.ndim());
    let (leading, shape) = from.shape().split_at(surplus);
    if leading.iter().any(|extent| *extent != 1) {
        return Err(wrong().into());
    }
    let missing = to.ndim() - shape.len();
    let mut strides = Extents::from_elem(0, to.ndim());
    for (axis, (extent, stride)) in shape.iter().zip(&from.strides()[surplus..]).enumerate() {
        let wanted = to.shape()[missing + axis];
        if *extent == wanted {
            strides[missing + axis] = *stride;
        } else if *extent != 1 {
            return Err(wrong().into());
        }
    }
    let from = Descriptor::new(from.ptr(), from.device(), from.dtype(), from.is_readonly(), to.shape(), &strides)?;
    // SAFETY: passed on from the caller; strides of 0 repeat elements that `from` describes.
    unsafe { copy(to, &from) }
}

/// Writes the same element, given as bytes, to every index of `to`; `fresh` memory has never been accessed before.
///
/// # Errors
/// [`DTypeError`] unless `element` has the size of one element; [`DeviceError`](crate::DeviceError) if a device cannot be used.
///
/// # Safety
/// - All elements of `to` are writable for the call, by what [`fill_executor`] returns.
#[allow(unsafe_code, reason = "descriptors are addresses; the caller vouches for the memory behind them")]
pub(crate) unsafe fn fill(to: &Descriptor, element: &[u8], fresh: bool) -> Result<()> {
    if element.len() != to.itemsize() {
        let expected = format_args!("{} for dtype {}", Count(to.itemsize(), "byte"), to.dtype());
        return Err(DTypeError::new("element", &expected, &element.len()).with_kind(DTypeErrorKind::Mismatch).into());
    }
    let executor = fill_executor(to)?;
    if executor == Executor::Host
        && (1..AT_ONCE).contains(&to.nbytes())
        && (to.is_c_contiguous() || is_compact(to.shape(), to.strides()))
    {
        // SAFETY: the elements are one run, which the caller lets this function write to.
        unsafe { host::short_run(to.ptr(), element, usize::try_from(to.size()).unwrap_or(0)) };
        return Ok(());
    }
    let from = std::iter::repeat_n(0, to.ndim());
    let Some(plan) = Plan::new(to.shape(), to.byte_strides(), from) else { return Ok(()) };
    // SAFETY: strides of 0 read only the one element; the caller guarantees the writes.
    unsafe {
        match executor {
            Executor::Host => in_pieces(&plan, element.len(), &|part| {
                threads::copy(part, to.ptr(), element.as_ptr(), element.len(), Conversion::None, fresh);
            }),
            Executor::Device(device) => cuda::fill(device, &plan, to.ptr(), element),
        }
    }
}
