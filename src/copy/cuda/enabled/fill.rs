//! Fills by CUDA.

use cudarc::driver::sys;

use super::launch;
use crate::copy::plan::{Plan, Step, Steps};
use crate::device::Device;
use crate::error::Result;
use crate::memory::cuda::{Stream, check, current_stream, enter, raw};

/// Writes an element to every address that the plan reaches, in the order of the device's current stream.
///
/// # Errors
/// [`crate::DeviceError`] if the device cannot be used, or the driver fails.
///
/// # Safety
/// - The device may write every element that the plan reaches from `to`.
pub(in crate::copy) unsafe fn fill(device: Device, plan: &Plan, to: *mut u8, element: &[u8]) -> Result<()> {
    let current = current_stream(device);
    let stream = current.stream();
    let to = to.wrapping_offset(plan.start.0);
    // SAFETY: passed on from the caller.
    unsafe {
        match plan.steps.split_last() {
            None => runs(device, stream, element.len(), &[], to, element),
            Some((inner, outer)) if inner.to == element.len().cast_signed() => {
                runs(device, stream, inner.count * element.len(), outer, to, element)
            }
            Some(_) => scattered(device, stream, &plan.steps, to, element),
        }
    }
}

/// Fills runs of `width` bytes.
///
/// # Safety
/// - As for [`fill`].
unsafe fn runs(
    device: Device,
    stream: Stream<'_>,
    width: usize,
    outer: &[Step],
    to: *mut u8,
    element: &[u8],
) -> Result<()> {
    let pattern = repeated(element);
    let unit = pattern.len();
    let step = Step { count: width / unit, to: unit.cast_signed(), from: 0 };
    let steps = || outer.iter().copied().chain([step]).collect::<Steps>();
    // SAFETY: passed on from the caller.
    unsafe {
        if !to.addr().is_multiple_of(unit) {
            return scattered(device, stream, &steps(), to, pattern);
        }
        match (outer, unit) {
            ([], 1 | 2 | 4) => set(device, stream, to, pattern, (width, step.count), 1),
            ([rows], 1 | 2 | 4) if is_pitch(rows.to, width, unit) => {
                set(device, stream, to, pattern, (rows.to.unsigned_abs(), step.count), rows.count)
            }
            _ => scattered(device, stream, &steps(), to, pattern),
        }
    }
}

/// Returns whether the driver accepts rows of `width` bytes at this distance.
fn is_pitch(distance: isize, width: usize, unit: usize) -> bool {
    usize::try_from(distance)
        .is_ok_and(|distance| distance >= width && distance.is_multiple_of(unit) && i32::try_from(distance).is_ok())
}

/// Fills rows of `count` items of 1, 2 or 4 bytes, `pitch` bytes apart, by the driver.
///
/// # Safety
/// - As for [`fill`].
unsafe fn set(
    device: Device,
    stream: Stream<'_>,
    to: *mut u8,
    pattern: &[u8],
    (pitch, count): (usize, usize),
    rows: usize,
) -> Result<()> {
    let _entered = enter(device)?;
    let (to, on) = (to.expose_provenance() as u64, raw(stream));
    // SAFETY: passed on from the caller.
    let (result, function) = unsafe {
        match (pattern, rows) {
            ([a], 1) => (sys::cuMemsetD8Async(to, *a, count, on), "cuMemsetD8Async"),
            ([a], _) => (sys::cuMemsetD2D8Async(to, pitch, *a, count, rows, on), "cuMemsetD2D8Async"),
            ([a, b], 1) => (sys::cuMemsetD16Async(to, u16::from_ne_bytes([*a, *b]), count, on), "cuMemsetD16Async"),
            ([a, b], _) => {
                let item = u16::from_ne_bytes([*a, *b]);
                (sys::cuMemsetD2D16Async(to, pitch, item, count, rows, on), "cuMemsetD2D16Async")
            }
            (_, 1) => (sys::cuMemsetD32Async(to, word(pattern), count, on), "cuMemsetD32Async"),
            _ => (sys::cuMemsetD2D32Async(to, pitch, word(pattern), count, rows, on), "cuMemsetD2D32Async"),
        }
    };
    Ok(check(device, function, result)?)
}

/// Fills scattered items; elements that are not aligned take several passes.
///
/// # Safety
/// - As for [`fill`].
unsafe fn scattered(device: Device, stream: Stream<'_>, steps: &Steps, to: *mut u8, element: &[u8]) -> Result<()> {
    let unit = launch::divisor(element.len() | to.addr());
    for (at, item) in element.chunks_exact(unit).enumerate() {
        // SAFETY: passed on from the caller; the items of an element are contiguous.
        unsafe { launch::fill(device, stream, steps, to.wrapping_add(at * unit), unit, value(item))? };
    }
    Ok(())
}

/// Returns the shortest part of 1, 2, 4 or 8 bytes whose repetition is the element, or the element.
fn repeated(element: &[u8]) -> &[u8] {
    let is_whole = |length: &usize| element.chunks(*length).all(|part| part == &element[..*length]);
    let length = [1, 2, 4, 8].into_iter().filter(|length| *length < element.len()).find(is_whole);
    &element[..length.unwrap_or(element.len())]
}

/// Converts an item of 4 bytes to the driver's argument.
fn word(item: &[u8]) -> u32 {
    item.try_into().map_or(0, u32::from_ne_bytes)
}

/// Converts an item to a kernel's argument: its bytes come first.
fn value(item: &[u8]) -> [u8; 16] {
    let mut bytes = [0u8; 16];
    bytes[..item.len()].copy_from_slice(item);
    bytes
}
