//! Launches this crate's kernels, for layouts that the driver's functions do not support.

use std::ffi::c_void;

use cudarc::driver::sys;

use super::module::{Kernel, kernels};
use super::rows::Rows;
use super::work::{Work, each};
use crate::copy::plan::{Step, Steps};
use crate::device::Device;
use crate::error::Result;
use crate::memory::cuda::{Stream, check, enter, raw};

/// The largest number of dimensions in a kernel's loops.
const RANK: usize = 8;

/// Threads of a block; the transpose kernel depends on this number.
const THREADS: u32 = 256;

/// The largest number of blocks, enough for any device; kernels loop over the rest.
const BLOCKS: u64 = 1 << 16;

/// From this loop length on both sides, shared memory pays off.
const TILED: usize = 16;

/// `Grid` in kernels.cu: the last dimension is the fastest in the destination. Strides are in items.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Grid {
    count: u64,
    ndim: u32,
    pad: u32,
    shape: [i64; RANK],
    to: [i64; RANK],
    from: [i64; RANK],
}

impl Grid {
    /// Builds a grid of at most [`RANK`] loops over items of `unit` bytes.
    fn new(steps: &[Step], unit: usize) -> Grid {
        let mut grid = Grid { count: 1, ndim: 0, pad: 0, shape: [1; RANK], to: [0; RANK], from: [0; RANK] };
        let items = |distance: isize| (distance / unit.cast_signed()) as i64;
        for (axis, step) in steps.iter().enumerate().take(RANK) {
            grid.ndim += 1;
            grid.count *= step.count as u64;
            (grid.shape[axis], grid.to[axis], grid.from[axis]) =
                (step.count.cast_signed() as i64, items(step.to), items(step.from));
        }
        grid
    }
}

/// Copies memory that one device can access.
///
/// # Safety
/// - As for [`crate::copy::copy`], with addresses that are valid on the device.
pub(super) unsafe fn copy(device: Device, stream: Stream<'_>, work: &Work) -> Result<()> {
    if let Some(rows) = Rows::of(work).filter(Rows::is_one_call) {
        // SAFETY: passed on from the caller.
        return unsafe { rows.within(device, stream) };
    }
    let _entered = enter(device)?;
    let (to, from) = work.first();
    let unit = unit(work.itemsize, to.addr() | from.addr());
    let mut steps = work.plan.steps.clone();
    if unit < work.itemsize {
        let distance = unit.cast_signed();
        steps.push(Step { count: work.itemsize / unit, to: distance, from: distance });
    }
    let tiled = faster(&steps);
    if let Some(position) = tiled {
        let step = steps.remove(position);
        steps.insert(steps.len() - 1, step);
    }
    let kernels = kernels(device)?;
    let kernel = if tiled.is_some() { kernels.transpose } else { kernels.copy }[place(unit)];
    // SAFETY: passed on from the caller.
    unsafe { over(device, stream, kernel, &steps, unit, (to, from), None) }
}

/// Writes one item, the first `unit` bytes of `value`, to every address that the loops reach.
///
/// # Safety
/// - The device may write to these addresses, which are multiples of `unit`.
pub(super) unsafe fn fill_strided(
    device: Device,
    stream: Stream<'_>,
    steps: &Steps,
    to: *mut u8,
    unit: usize,
    value: [u8; 16],
) -> Result<()> {
    let _entered = enter(device)?;
    let kernel = kernels(device)?.fill_strided[place(unit)];
    // SAFETY: passed on from the caller.
    unsafe { over(device, stream, kernel, steps, unit, (to, std::ptr::null()), Some(value)) }
}

/// Writes `count` items of 8 or 16 bytes.
///
/// # Safety
/// - As for [`fill_strided`].
pub(super) unsafe fn fill_run(
    device: Device,
    stream: Stream<'_>,
    to: *mut u8,
    count: usize,
    unit: usize,
    mut value: [u8; 16],
) -> Result<()> {
    let _entered = enter(device)?;
    let kernels = kernels(device)?;
    let kernel = if unit == 8 { kernels.fill_8 } else { kernels.fill_16 };
    let (mut to, mut items) = (to, count as u64);
    let mut parameters: [*mut c_void; 3] = [(&raw mut to).cast(), (&raw mut items).cast(), (&raw mut value).cast()];
    // SAFETY: passed on from the caller; the parameters match the kernel's.
    unsafe { launch(device, stream, kernel, items.div_ceil(THREADS.into()), &mut parameters) }
}

/// Launches a copy kernel, or with `value` a fill kernel, once for each turn of the loops outside the kernel.
///
/// # Safety
/// - The device may read and write every address that the loops reach.
unsafe fn over(
    device: Device,
    stream: Stream<'_>,
    kernel: Kernel,
    steps: &[Step],
    unit: usize,
    start: (*mut u8, *const u8),
    value: Option<[u8; 16]>,
) -> Result<()> {
    let (outer, inner) = steps.split_at(steps.len().saturating_sub(RANK));
    let mut grid = Grid::new(inner, unit);
    let mut value = value;
    each(outer, start, &mut |to, from| {
        let (mut to, mut from) = (to, from);
        let (to, from, grid): (*mut c_void, *mut c_void, *mut c_void) =
            ((&raw mut to).cast(), (&raw mut from).cast(), (&raw mut grid).cast());
        let blocks = grid_blocks(inner);
        let mut parameters = match &mut value {
            None => [to, from, grid],
            Some(value) => [to, grid, std::ptr::from_mut(value).cast()],
        };
        // SAFETY: passed on from the caller; the parameters match the kernel's.
        unsafe { launch(device, stream, kernel, blocks, &mut parameters) }
    })
}

fn grid_blocks(steps: &[Step]) -> u64 {
    let count: u64 = steps.iter().map(|step| step.count as u64).product();
    count.div_ceil(THREADS.into())
}

/// # Safety
/// - The parameters point to live values of the types that the kernel takes.
unsafe fn launch(
    device: Device,
    stream: Stream<'_>,
    kernel: Kernel,
    blocks: u64,
    parameters: &mut [*mut c_void],
) -> Result<()> {
    let blocks = u32::try_from(blocks.clamp(1, BLOCKS)).unwrap_or(1);
    // SAFETY: passed on from the caller.
    let result = unsafe {
        let (all, none) = (parameters.as_mut_ptr(), std::ptr::null_mut());
        sys::cuLaunchKernel(kernel.0, blocks, 1, 1, THREADS, 1, 1, 0, raw(stream), all, none)
    };
    Ok(check(device, "cuLaunchKernel", result)?)
}

/// Returns the largest item size, in bytes, that divides `itemsize` and the addresses.
pub(super) fn unit(itemsize: usize, addresses: usize) -> usize {
    1 << (itemsize | addresses).trailing_zeros()
}

/// Returns the index of the kernel for items of `unit` bytes.
fn place(unit: usize) -> usize {
    usize::try_from(unit.trailing_zeros()).unwrap_or(0).min(4)
}

/// Returns the loop that is fastest in the source, if the innermost one is not and both are long.
fn faster(steps: &[Step]) -> Option<usize> {
    let (inner, outer) = steps.split_last()?;
    let long = |step: &Step| step.count >= TILED && step.from != 0;
    let position = (0..outer.len()).filter(|at| long(&outer[*at])).min_by_key(|at| outer[*at].from.unsigned_abs())?;
    let is_faster = outer[position].from.unsigned_abs() < inner.from.unsigned_abs();
    (is_faster && long(inner)).then_some(position)
}
