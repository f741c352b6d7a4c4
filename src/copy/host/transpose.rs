//! Copies whose fast dimension on one side is a slow one on the other.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use super::element;
use super::rows::run;
use super::stream::{self, LINE};
use super::tile::{Portable, SIDE, Tile};
use crate::copy::plan::Step;

/// Bytes of a block's rows in the source: enough in one go for the hardware to prefetch.
pub(super) const COLUMN_BYTES: usize = 2048;

/// Bytes of a block: two blocks and the scratch lines of one fit into a second-level cache of 1 MiB.
const BLOCK_BYTES: usize = 192 << 10;

/// Bytes of a block's lines in the destination.
pub(super) const LINE_BYTES: usize = 1024;

/// Extra bytes between the lines of a scratch block, so that they do not all map to the same cache sets.
pub(super) const APART: usize = 64;

/// Two loops: `rows` is contiguous in the destination, `columns` in the source.
pub(super) struct Square {
    pub(super) rows: Step,
    pub(super) columns: Step,
    /// Bytes in the source from this square to the one that is likely to be read next, if there are others.
    pub(super) ahead: Option<isize>,
}

/// Lines at multiples of this distance, in bytes, map to the same cache sets.
const SET_BYTES: usize = 2048;

/// Returns whether lines at this distance map to the same few cache sets, and evict each other.
fn meet(apart: isize) -> bool {
    apart.unsigned_abs().is_multiple_of(SET_BYTES)
}

/// This many lines fit into such a set.
const WAYS: usize = 16;

/// A buffer for one block, reused for all blocks of a copy.
pub(super) struct Scratch(Vec<[u8; 64]>);

impl Scratch {
    pub(super) fn new() -> Scratch {
        Scratch(Vec::new())
    }

    pub(super) fn lines(&mut self, bytes: usize) -> *mut u8 {
        let wanted = bytes.div_ceil(64);
        if self.0.len() < wanted {
            self.0.resize(wanted, [0; 64]);
        }
        self.0.as_mut_ptr().cast()
    }
}

/// Transposes with the tile for this machine and element size; if `streamed`, with non-temporal stores.
///
/// # Safety
/// - Every address that the loops reach is readable from `from` and writable from `to`, without overlap.
/// - Rows are contiguous in the destination, columns in the source.
pub(super) unsafe fn copy<const SIZE: usize>(
    square: &Square,
    to: *mut u8,
    from: *const u8,
    scratch: &mut Scratch,
    streamed: bool,
) {
    #[cfg(target_arch = "x86_64")]
    {
        use super::tile::{Eight, Four, One, Two};
        match SIZE {
            8 if is_x86_feature_detected!("avx2") => {
                // SAFETY: passed on from the caller; the machine has the instructions.
                return unsafe { with_avx2::<Eight>(square, to, from, scratch, streamed) };
            }
            4 if is_x86_feature_detected!("avx2") => {
                // SAFETY: passed on from the caller; the machine has the instructions.
                return unsafe { with_avx2::<Four>(square, to, from, scratch, streamed) };
            }
            // SAFETY: passed on from the caller; every x86-64 has the instructions.
            2 => return unsafe { blocks::<Two>(square, to, from, scratch, streamed) },
            // SAFETY: passed on from the caller; every x86-64 has the instructions.
            1 => return unsafe { blocks::<One>(square, to, from, scratch, streamed) },
            _ => {}
        }
    }
    #[cfg(target_arch = "aarch64")]
    match SIZE {
        // SAFETY: passed on from the caller; every aarch64 has the instructions.
        8 => return unsafe { blocks::<super::tile::Eight>(square, to, from, scratch, streamed) },
        // SAFETY: passed on from the caller; every aarch64 has the instructions.
        4 => return unsafe { blocks::<super::tile::Four>(square, to, from, scratch, streamed) },
        _ => {}
    }
    // SAFETY: passed on from the caller.
    unsafe { blocks::<Portable<SIZE>>(square, to, from, scratch, streamed) }
}

/// # Safety
/// - As for [`copy`]; the machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn with_avx2<T: Tile>(square: &Square, to: *mut u8, from: *const u8, scratch: &mut Scratch, streamed: bool) {
    // SAFETY: passed on from the caller.
    unsafe { blocks::<T>(square, to, from, scratch, streamed) }
}

/// Part of a square, small enough to stay in the caches between reading and writing.
struct Block {
    to: *mut u8,
    from: *const u8,
    height: usize,
    width: usize,
}

/// Transposes a square block by block.
///
/// # Safety
/// - As for [`copy`]; the machine has the instructions that the tile uses.
#[inline(always)]
unsafe fn blocks<T: Tile>(square: &Square, to: *mut u8, from: *const u8, scratch: &mut Scratch, streamed: bool) {
    // Rows of such a tile are whole cache lines. A line of smaller elements would take rows from too many places at a time, and
    // go to too many places one by one.
    let large = T::SIZE == 16;
    if streamed && large && square.columns.to % LINE.cast_signed() == 0 && to.addr().is_multiple_of(T::SIZE) {
        // SAFETY: passed on from the caller.
        return unsafe { lines::<T>(square, to, from) };
    }
    let Square { rows, columns, ahead } = *square;
    let meeting = meet(columns.to) && columns.count > WAYS;
    if !streamed && !meeting && rows.count.max(columns.count) * T::SIZE <= LINE_BYTES {
        // Small copies have many squares of one block each, and the divisions below would take as long as that.
        let part = Block { to, from, height: rows.count, width: columns.count };
        // SAFETY: passed on from the caller.
        return unsafe { block::<T>(to, columns.to, &part, rows.from, false) };
    }
    let high = (LINE_BYTES / T::SIZE).min(rows.count);
    let most = (BLOCK_BYTES / (high * T::SIZE)).next_multiple_of(LINE / T::SIZE);
    let wide = (COLUMN_BYTES / T::SIZE).min(most).min(columns.count);
    let (down, across) = (rows.count.div_ceil(high), columns.count.div_ceil(wide));
    let first = from;
    let part = |number: usize| {
        let (row, column) = (number / across * high, number % across * wide);
        Block {
            to: to.wrapping_offset(at(rows.to, row) + at(columns.to, column)),
            from: from.wrapping_offset(at(rows.from, row) + at(columns.from, column)),
            height: high.min(rows.count - row),
            width: wide.min(columns.count - column),
        }
    };
    for number in 0..down * across {
        let this = part(number);
        let Block { to, height, width, .. } = this;
        if !streamed && !meeting {
            // SAFETY: a part of the square.
            unsafe { block::<T>(to, columns.to, &this, rows.from, streamed) };
            continue;
        }
        let pitch = (height * T::SIZE).next_multiple_of(LINE) + APART;
        let turned = scratch.lines(pitch * width);
        // SAFETY: a part of the square; the scratch buffer has room for it.
        unsafe { block::<T>(turned, at(1, pitch), &this, rows.from, streamed) };
        let next = match number + 1 {
            next if next < down * across => Some(part(next)),
            _ => ahead.map(|ahead| Block { from: first.wrapping_offset(ahead), ..part(0) }),
        };
        let mut asked = 0;
        for column in 0..width {
            let to = to.wrapping_offset(at(columns.to, column));
            // SAFETY: one column of the block, and its line of the scratch buffer.
            unsafe {
                let line = turned.add(column * pitch);
                if streamed {
                    stream::copy(to, line, height * T::SIZE);
                } else {
                    std::ptr::copy_nonoverlapping(line, to, height * T::SIZE);
                }
            }
            // Prefetches the next block while this one is written.
            if let Some(next) = &next {
                let until = (column + 1) * next.height / width;
                for row in asked..until {
                    stream::ask::<false>(next.from.wrapping_offset(at(rows.from, row)), next.width * T::SIZE);
                }
                asked = until;
            }
        }
    }
}

/// Transposes elements of 16 bytes, whose tiles have rows of whole cache lines, with non-temporal stores.
///
/// # Safety
/// - As for [`blocks`]; all columns have the same alignment to cache lines in the destination, and elements are aligned.
#[inline(always)]
unsafe fn lines<T: Tile>(square: &Square, to: *mut u8, from: *const u8) {
    let Square { rows, columns, .. } = *square;
    let head = (to.align_offset(LINE) / T::SIZE).min(rows.count);
    let whole = head + (rows.count - head) / SIDE * SIDE;
    let wide = columns.count - columns.count % SIDE;
    let pitch = SIDE * T::SIZE;
    let mut turned = Turned([0; SIDE * SIDE * 16]);
    let turned = turned.0.as_mut_ptr();
    let element_at = |row: usize, column: usize| {
        let to = to.wrapping_offset(at(columns.to, column)).wrapping_add(row * T::SIZE);
        (to, from.wrapping_offset(at(rows.from, row) + at(columns.from, column)))
    };
    // SAFETY: rows and columns are below their counts; the buffer has room for one square.
    unsafe {
        for row in (head..whole).step_by(SIDE) {
            for column in (0..wide).step_by(SIDE) {
                let (to, from) = element_at(row, column);
                T::transpose(turned, pitch.cast_signed(), from, rows.from);
                for line in 0..SIDE {
                    stream::lines(to.wrapping_offset(at(columns.to, line)), turned.add(line * pitch), pitch / LINE);
                }
            }
        }
        // The edges: elements outside whole lines and squares.
        for row in (0..head).chain(whole..rows.count) {
            for column in 0..columns.count {
                let (to, from) = element_at(row, column);
                element(T::SIZE, to, from);
            }
        }
        for row in head..whole {
            for column in wide..columns.count {
                let (to, from) = element_at(row, column);
                element(T::SIZE, to, from);
            }
        }
    }
}

/// A buffer for one transposed square.
#[repr(align(64))]
struct Turned([u8; SIDE * SIDE * 16]);

/// Multiplies a byte stride; both sides are in memory, so the product fits.
pub(super) fn at(step: isize, times: usize) -> isize {
    step.wrapping_mul(isize::try_from(times).unwrap_or(isize::MAX))
}

/// This many rows or columns beyond whole squares are worth a square of their own.
const EDGE: usize = 5;

/// Returns how many of these rows or columns are transposed in squares; the others one by one.
fn in_squares(extent: usize) -> usize {
    let rest = extent % SIDE;
    if rest >= EDGE && extent > SIDE { extent } else { extent - rest }
}

/// Transposes a block: squares, then the edges. With `far` it prefetches the source; in the caches that would only cost time.
///
/// # Safety
/// - As for [`Tile::transpose`], for the rows and columns of the block.
#[inline(always)]
unsafe fn block<T: Tile>(to: *mut u8, to_row: isize, part: &Block, from_row: isize, far: bool) {
    let Block { from, height, width, .. } = *part;
    let (whole_rows, whole_columns) = (in_squares(height), in_squares(width));
    // SAFETY: rows below `height`, columns below `width`.
    unsafe {
        for row in (0..whole_rows).step_by(SIDE) {
            // The last square may have rows or columns in common with the one before.
            let row = row.min(height - SIDE);
            for column in (0..whole_columns).step_by(SIDE) {
                let column = column.min(width - SIDE);
                let to = to.wrapping_offset(at(to_row, column)).add(row * T::SIZE);
                let from = from.wrapping_offset(at(from_row, row)).add(column * T::SIZE);
                if far && (column * T::SIZE).is_multiple_of(LINE) {
                    for next in SIDE..2 * SIDE {
                        stream::ask::<true>(from.wrapping_offset(at(from_row, next)), SIDE * T::SIZE);
                    }
                }
                T::transpose(to, to_row, from, from_row);
            }
        }
        // The edges, along the longer loops.
        for column in whole_columns..width {
            let step = Step { count: whole_rows, to: at(1, T::SIZE), from: from_row };
            run(T::SIZE, &step, to.wrapping_offset(at(to_row, column)), from.wrapping_add(column * T::SIZE));
        }
        for row in whole_rows..height {
            let step = Step { count: width, to: to_row, from: at(1, T::SIZE) };
            run(T::SIZE, &step, to.wrapping_add(row * T::SIZE), from.wrapping_offset(at(from_row, row)));
        }
    }
}
