//! Launches this crate's kernels, for layouts and casts that the driver's functions do not support.

use std::ffi::c_void;

use cudarc::driver::sys;

use super::module::{Kernel, Kernels, kernels};
use super::rows::Rows;
use super::work::{Work, each};
use crate::copy::plan::{Plan, Step, Steps};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::memory::cuda::{Stream, check, enter, raw};

/// The largest number of loops in a kernel outside the last one, or the last two of a transpose.
const RANK: usize = 7;

/// Threads of a block.
const THREADS: u32 = 256;

/// The largest number of blocks, enough for any device; kernels loop over the rest.
const BLOCKS: u32 = 1 << 16;

/// The largest number of pieces in a launch, so that kernels can count with 32 bits.
const PIECES: u64 = 1 << 31;

/// From this loop length on both sides, shared memory pays off.
const TILED: usize = 16;

/// Bytes that a kernel moves at once, at most.
const WIDEST: usize = 16;

/// `Kind` in kernels.cu.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Bits,
    Bool,
    I8,
    I16,
    I32,
    Integer,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Kind {
    /// Returns the kind of a type that can be cast, or of the parts of a complex one.
    fn of(dtype: DType) -> Kind {
        match dtype {
            DType::BOOL => Kind::Bool,
            DType::I8 => Kind::I8,
            DType::I16 => Kind::I16,
            DType::I32 => Kind::I32,
            DType::U64 => Kind::U64,
            DType::F16 => Kind::F16,
            DType::BF16 => Kind::Bf16,
            DType::F32 | DType::C64 => Kind::F32,
            DType::F64 | DType::C128 => Kind::F64,
            _ => Kind::Integer,
        }
    }
}

/// The types of a cast: of the destination and of the source.
pub(super) type Cast = (DType, DType);

/// The addresses of the first item on both sides.
type Start = (*mut u8, *const u8);

/// One side's items.
#[derive(Clone, Copy)]
struct Item {
    size: usize,
    kind: Kind,
}

/// A kernel, and how it divides the loops.
struct Shape {
    kernel: Kernel,
    /// Items of a piece or a tile: along the last loop, and for a transpose along the one before it.
    piece: (usize, Option<usize>),
    threads: (u32, u32),
}

/// `Grid` in kernels.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct Grid {
    shape: [i64; RANK],
    to: [i64; RANK],
    from: [i64; RANK],
    /// Number, and distances on both sides.
    right: [i64; 3],
    down: [i64; 3],
    ndim: u32,
    across: u32,
    count: u32,
    size: [u32; 2],
    access: [u32; 2],
    kind: [Kind; 2],
}

impl Shape {
    /// Returns the number of pieces in the last loop, and in all loops.
    fn pieces(&self, steps: &[Step]) -> (u64, u64) {
        let (last, outer) = steps.split_last().map_or((1, steps), |(step, outer)| (step.count, outer));
        let (mut outer, mut down) = (outer, 1);
        if let (Some(side), Some((step, rest))) = (self.piece.1, outer.split_last()) {
            (outer, down) = (rest, step.count.div_ceil(side));
        }
        let across = last.div_ceil(self.piece.0) as u64;
        (across, outer.iter().map(|step| step.count as u64).product::<u64>() * down as u64 * across)
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "numbers of pieces are small by `divide`, lengths and sizes by what memory holds"
    )]
    fn grid(&self, steps: &[Step], items: (Item, Item), start: Start) -> Grid {
        let aligned =
            |item: Item, addresses: usize| if addresses.is_multiple_of(item.size) { item.size as u32 } else { 0 };
        let (to, from) = steps.iter().fold((start.0.addr(), start.1.addr()), |(to, from), step| {
            (to | step.to.cast_unsigned(), from | step.from.cast_unsigned())
        });
        let (across, count) = self.pieces(steps);
        let line = |step: &Step| [step.count as i64, step.to as i64, step.from as i64];
        let (right, outer) = steps.split_last().map_or(([1, 0, 0], steps), |(step, outer)| (line(step), outer));
        let down = outer.split_last().filter(|_| self.piece.1.is_some());
        let (down, outer) = down.map_or(([1, 0, 0], outer), |(step, outer)| (line(step), outer));
        let mut grid = Grid {
            shape: [1; RANK],
            to: [0; RANK],
            from: [0; RANK],
            right,
            down,
            ndim: outer.len() as u32,
            across: across as u32,
            count: count as u32,
            size: [items.0.size as u32, items.1.size as u32],
            access: [aligned(items.0, to), aligned(items.1, from)],
            kind: [items.0.kind, items.1.kind],
        };
        for (axis, step) in outer.iter().enumerate() {
            [grid.shape[axis], grid.to[axis], grid.from[axis]] = line(step);
        }
        grid
    }
}

/// Copies memory that one device can access, and casts it.
///
/// # Safety
/// - As for [`crate::copy::copy`], with addresses that are valid on the device.
pub(super) unsafe fn copy(device: Device, stream: Stream<'_>, work: &Work, cast: Option<Cast>) -> Result<()> {
    let start = work.first();
    let mut steps = work.plan.steps.clone();
    let items = if let Some((to, from)) = cast {
        let part = |dtype: DType| dtype.itemsize() / 2;
        let mut size = (to.itemsize(), from.itemsize());
        if matches!(from, DType::C64 | DType::C128) {
            size = (part(to), part(from));
            steps.push(Step { count: 2, to: size.0.cast_signed(), from: size.1.cast_signed() });
            steps = Plan::of(steps).steps;
        }
        (Item { size: size.0, kind: Kind::of(to) }, Item { size: size.1, kind: Kind::of(from) })
    } else {
        if let Some(rows) = Rows::of(work).filter(Rows::is_one_run) {
            // SAFETY: passed on from the caller.
            return unsafe { rows.within(device, stream) };
        }
        let item = Item { size: widen(&mut steps, work.itemsize, start), kind: Kind::Bits };
        (item, item)
    };
    // SAFETY: passed on from the caller.
    unsafe { over(device, stream, &steps, items, start, [0; 16]) }
}

/// Writes one item, the first `unit` bytes of `value`, to every address that the loops reach.
///
/// # Safety
/// - The device may write to these addresses, which are multiples of `unit`.
pub(super) unsafe fn fill(
    device: Device,
    stream: Stream<'_>,
    steps: &Steps,
    to: *mut u8,
    unit: usize,
    value: [u8; 16],
) -> Result<()> {
    let item = Item { size: unit, kind: Kind::Bits };
    // SAFETY: passed on from the caller.
    unsafe { over(device, stream, steps, (item, item), (to, std::ptr::null()), value) }
}

/// Makes items of as many bytes as the addresses, the strides and the length of contiguous rows allow; returns their bytes.
fn widen(steps: &mut Steps, itemsize: usize, start: Start) -> usize {
    let unit = itemsize.cast_signed();
    let row = match steps.last() {
        Some(step) if (step.to, step.from) == (unit, unit) => steps.pop().map_or(0, |step| step.count * itemsize),
        _ => itemsize,
    };
    let strides = steps.iter().fold(0, |all, step| all | step.to.cast_unsigned() | step.from.cast_unsigned());
    let widest = divisor(row | strides | start.0.addr() | start.1.addr() | WIDEST);
    if row > widest {
        let distance = widest.cast_signed();
        steps.push(Step { count: row / widest, to: distance, from: distance });
    }
    widest
}

/// Launches a kernel, more than once if there are many loops or pieces.
///
/// # Safety
/// - The device may read and write every address that the loops reach; it reads nothing from a null pointer.
unsafe fn over(
    device: Device,
    stream: Stream<'_>,
    steps: &[Step],
    items: (Item, Item),
    start: Start,
    value: [u8; 16],
) -> Result<()> {
    let _entered = enter(device)?;
    let mut steps = Steps::from_slice(steps);
    let tiled = faster(&steps);
    if let Some(position) = tiled {
        let step = steps.remove(position);
        steps.insert(steps.len() - 1, step);
    }
    let shape = shape(kernels(device)?, &steps, tiled.is_some(), items, start);
    let inner = RANK + 1 + usize::from(tiled.is_some());
    let (outer, inner) = steps.split_at(steps.len().saturating_sub(inner));
    let mut value = value;
    each(outer, start, &mut |to, from| {
        divide(inner, (to, from), &|steps| shape.pieces(steps).1 <= PIECES, &mut |steps, (mut to, mut from)| {
            let mut grid = shape.grid(steps, items, (to, from));
            let blocks = if tiled.is_some() { grid.count } else { grid.count.div_ceil(shape.threads.1) };
            let mut parameters: [*mut c_void; 4] =
                [(&raw mut to).cast(), (&raw mut from).cast(), (&raw mut grid).cast(), (&raw mut value).cast()];
            // SAFETY: passed on from the caller; the parameters match the kernel's, and a transpose ignores the last.
            let result = unsafe {
                let (all, none, (x, y)) = (parameters.as_mut_ptr(), std::ptr::null_mut(), shape.threads);
                sys::cuLaunchKernel(shape.kernel.0, blocks.clamp(1, BLOCKS), 1, 1, x, y, 1, 0, raw(stream), all, none)
            };
            Ok(check(device, "cuLaunchKernel", result)?)
        })
    })
}

/// Selects the kernel. For a transpose, the loop before the last is the fastest in the source.
#[allow(clippy::cast_possible_truncation, reason = "numbers of threads")]
fn shape(kernels: Kernels, steps: &[Step], is_tiled: bool, (to, from): (Item, Item), start: Start) -> Shape {
    let ([outer @ .., down, right], true) = (steps, is_tiled) else {
        // As many threads for each row as it has items, up to those that a device runs together.
        let lanes = steps.last().map_or(1, |step| step.count.next_power_of_two().min(32));
        return Shape {
            kernel: kernels.copy,
            piece: (4 * lanes, None),
            threads: (lanes as u32, THREADS / lanes as u32),
        };
    };
    let (many, side, kernel) = match to.size {
        1 => (4, 128, kernels.packed[0]),
        2 => (4, 64, kernels.packed[1]),
        4 => (2, 64, kernels.packed[2]),
        _ => (0, 0, kernels.transpose),
    };
    let strides = outer.iter().fold(down.to | right.from, |all, step| all | step.to | step.from);
    let all = strides.cast_unsigned() | start.0.addr() | start.1.addr();
    let size = to.size.cast_signed();
    if many > 0
        && from.kind == Kind::Bits
        && (right.to, down.from) == (size, size)
        && all.is_multiple_of(many * to.size)
    {
        let lanes = (side / many) as u32;
        return Shape { kernel, piece: (side, Some(side)), threads: (lanes, THREADS / lanes) };
    }
    Shape { kernel: kernels.transpose, piece: (32, Some(32)), threads: (32, THREADS / 32) }
}

/// Divides the longest loops until all parts are small, and calls `body` with each. The parts begin at multiples of many items,
/// so that addresses stay aligned.
fn divide(
    steps: &[Step],
    start: Start,
    is_small: &dyn Fn(&[Step]) -> bool,
    body: &mut dyn FnMut(&[Step], Start) -> Result<()>,
) -> Result<()> {
    let longest = (0..steps.len()).max_by_key(|at| steps[*at].count).filter(|at| steps[*at].count > 128);
    let Some(longest) = longest.filter(|_| !is_small(steps)) else { return body(steps, start) };
    let mut part = Steps::from_slice(steps);
    let Step { count, to, from } = steps[longest];
    let first = (count / 2).next_multiple_of(128);
    part[longest].count = first;
    divide(&part, start, is_small, body)?;
    part[longest].count = count - first;
    let ahead = |distance: isize| distance.wrapping_mul(first.cast_signed());
    divide(&part, (start.0.wrapping_offset(ahead(to)), start.1.wrapping_offset(ahead(from))), is_small, body)
}

/// Returns the largest power of two that divides a number and all numbers of which it has the bits.
pub(super) fn divisor(number: usize) -> usize {
    1 << number.trailing_zeros()
}

/// Returns the loop that is fastest in the source, if the innermost one is not and both are long.
fn faster(steps: &[Step]) -> Option<usize> {
    let (inner, outer) = steps.split_last()?;
    let long = |step: &Step| step.count >= TILED && step.from != 0;
    let position = (0..outer.len()).filter(|at| long(&outer[*at])).min_by_key(|at| outer[*at].from.unsigned_abs())?;
    let is_faster = outer[position].from.unsigned_abs() < inner.from.unsigned_abs();
    (is_faster && long(inner)).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_divided_covers_everything_once_and_stays_aligned() {
        let steps = [Step { count: 3, to: 9000, from: 0 }, Step { count: 1001, to: 8, from: -16 }];
        for most in [1, 100, 500, 2000, 4000] {
            let mut seen = vec![];
            let is_small = |steps: &[Step]| steps.iter().map(|step| step.count).product::<usize>() <= most;
            let start = (std::ptr::null_mut(), std::ptr::null());
            let divided = divide(&steps, start, &is_small, &mut |part, start| {
                let count: usize = part.iter().map(|step| step.count).product();
                assert!(count <= most.max(3 * 128));
                assert!(start.0.addr().is_multiple_of(8 * 128));
                each(part, start, &mut |to, from| {
                    seen.push((to.addr(), from.addr()));
                    Ok(())
                })
            });
            assert!(divided.is_ok());
            let place = |row: usize, item: usize| (9000 * row + 8 * item, (16 * item).wrapping_neg());
            let expected = (0..3).flat_map(|row| (0..1001).map(move |item| place(row, item)));
            seen.sort_by_key(|pair| pair.0);
            assert!(seen.into_iter().eq(expected), "{most}");
        }
    }

    #[test]
    fn rows_get_the_widest_items_that_fit() {
        let wide = |step: Step, outer: isize, itemsize, addresses: usize| {
            let mut steps = Steps::from_slice(&[Step { count: 4, to: outer, from: outer }, step]);
            let start = (std::ptr::without_provenance_mut(addresses), std::ptr::null());
            (widen(&mut steps, itemsize, start), steps.last().map_or(0, |step| step.count))
        };
        let row = |count, unit| Step { count, to: unit, from: unit };
        assert_eq!(wide(row(64, 4), 512, 4, 256), (16, 16));
        assert_eq!(wide(row(62, 4), 512, 4, 256), (8, 31));
        assert_eq!(wide(row(64, 4), 260, 4, 256), (4, 64));
        assert_eq!(wide(row(64, 4), 512, 4, 2), (2, 128));
        assert_eq!(wide(row(64, 1), 512, 1, 1), (1, 64));
        // Items with gaps keep their size; those at odd addresses are moved in parts.
        assert_eq!(wide(Step { count: 64, to: 4, from: 8 }, 512, 4, 256), (4, 64));
        assert_eq!(wide(Step { count: 64, to: 16, from: 32 }, 2048, 16, 8), (8, 2));
    }
}
