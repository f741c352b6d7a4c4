//! Copies whose fast dimension on one side is a slow one on the other.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use super::element;
use super::stream::{self, LINE};
use super::tile::{Portable, SIDE, Tile};
use crate::copy::plan::Step;

/// Columns of a block: so much of a row is read at a time that the memory sees it coming.
pub(super) const COLUMN_BYTES: usize = 2048;

/// Bytes of a block's lines on the side that is written.
pub(super) const LINE_BYTES: usize = 1024;

/// Bytes between the lines of a scratch block beyond their own, so that they do not all meet in the same cache sets.
pub(super) const APART: usize = 64;

/// Two loops: `rows` goes along what is contiguous where it is written, `columns` along what is where it is read.
pub(super) struct Square {
    pub(super) rows: Step,
    pub(super) columns: Step,
}

/// Bytes between lines that meet in the same places of a cache.
const SET_BYTES: usize = 2048;

/// Whether lines so far apart meet in the same few places of the caches, and push each other out.
fn meet(apart: isize) -> bool {
    apart.unsigned_abs().is_multiple_of(SET_BYTES)
}

/// So many lines that meet find room there all the same.
const WAYS: usize = 16;

/// Room for one block, reused for all blocks of a copy.
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

/// Copies with the tile that the machine has for this size of elements; `streamed` past the caches.
///
/// # Safety
/// - Every address that the loops reach is readable from `from`, writable from `to`, without overlap.
/// - Rows are contiguous where they are written, columns where they are read.
pub(super) unsafe fn copy<const SIZE: usize>(
    square: &Square,
    to: *mut u8,
    from: *const u8,
    scratch: &mut Scratch,
    streamed: bool,
) {
    #[cfg(target_arch = "x86_64")]
    if SIZE == 8 && is_x86_feature_detected!("avx2") {
        // SAFETY: passed on from the caller, and the instructions are there.
        return unsafe { with_avx2::<super::tile::Eight>(square, to, from, scratch, streamed) };
    }
    #[cfg(target_arch = "x86_64")]
    if SIZE == 4 && is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { with_avx2::<super::tile::Four>(square, to, from, scratch, streamed) };
    }
    #[cfg(target_arch = "aarch64")]
    match SIZE {
        // SAFETY: passed on from the caller, and every aarch64 has the instructions.
        8 => return unsafe { blocks::<super::tile::Eight>(square, to, from, scratch, streamed) },
        // SAFETY: as above.
        4 => return unsafe { blocks::<super::tile::Four>(square, to, from, scratch, streamed) },
        _ => {}
    }
    // SAFETY: passed on from the caller.
    unsafe { blocks::<Portable<SIZE>>(square, to, from, scratch, streamed) }
}

/// # Safety
/// - As for [`copy`], and the machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn with_avx2<T: Tile>(square: &Square, to: *mut u8, from: *const u8, scratch: &mut Scratch, streamed: bool) {
    // SAFETY: passed on from the caller.
    unsafe { blocks::<T>(square, to, from, scratch, streamed) }
}

/// Block by block.
///
/// # Safety
/// - As for [`copy`], with what the tile needs.
#[inline(always)]
unsafe fn blocks<T: Tile>(square: &Square, to: *mut u8, from: *const u8, scratch: &mut Scratch, streamed: bool) {
    // Lines of smaller elements would take rows from too many places at a time, and go to too many one by one.
    let few = T::SIZE == 16;
    if streamed && few && square.columns.to % LINE.cast_signed() == 0 && to.addr().is_multiple_of(T::SIZE) {
        // SAFETY: passed on from the caller.
        return unsafe { lines::<T>(square, to, from) };
    }
    let Square { rows, columns } = *square;
    let high = (LINE_BYTES / T::SIZE).min(rows.count);
    let meeting = meet(columns.to) && columns.count > WAYS;
    for row in (0..rows.count).step_by(high) {
        let height = high.min(rows.count - row);
        let wide = COLUMN_BYTES / T::SIZE;
        for column in (0..columns.count).step_by(wide) {
            let width = wide.min(columns.count - column);
            let to = to.wrapping_offset(at(rows.to, row) + at(columns.to, column));
            let from = from.wrapping_offset(at(rows.from, row) + at(columns.from, column));
            // SAFETY: a part of the square.
            unsafe {
                if !streamed && !meeting {
                    block::<T>(to, columns.to, from, rows.from, height, width);
                    continue;
                }
                let pitch = (height * T::SIZE).next_multiple_of(64) + APART;
                let lines = scratch.lines(pitch * width);
                block::<T>(lines, at(1, pitch), from, rows.from, height, width);
                for column in 0..width {
                    let (to, line) = (to.wrapping_offset(at(columns.to, column)), lines.add(column * pitch));
                    if streamed {
                        stream::copy(to, line, height * T::SIZE);
                    } else {
                        std::ptr::copy_nonoverlapping(line, to, height * T::SIZE);
                    }
                }
            }
        }
    }
}

/// Writes whole cache lines past the caches, each from a square that is turned in the first of them.
///
/// # Safety
/// - As for [`blocks`]; lines on the side that is written begin alike in all columns, and elements are aligned.
#[inline(always)]
unsafe fn lines<T: Tile>(square: &Square, to: *mut u8, from: *const u8) {
    let Square { rows, columns } = *square;
    // Rows that make up whole lines: one line of small elements, several of large ones.
    let high = SIDE.max(LINE / T::SIZE);
    let head = (to.align_offset(LINE) / T::SIZE).min(rows.count);
    let whole = head + (rows.count - head) / high * high;
    let wide = columns.count - columns.count % SIDE;
    let pitch = high * T::SIZE;
    let mut turned = Turned([0; SIDE * 128]);
    let turned = turned.0.as_mut_ptr();
    let element_at = |row: usize, column: usize| {
        let to = to.wrapping_offset(at(columns.to, column)).wrapping_add(row * T::SIZE);
        (to, from.wrapping_offset(at(rows.from, row) + at(columns.from, column)))
    };
    // SAFETY: rows and columns below their numbers; a square fits into the room for it.
    unsafe {
        for row in (head..whole).step_by(high) {
            for column in (0..wide).step_by(SIDE) {
                let (to, from) = element_at(row, column);
                for part in (0..high).step_by(SIDE) {
                    let from = from.wrapping_offset(at(rows.from, part));
                    T::transpose(turned.add(part * T::SIZE), pitch.cast_signed(), from, rows.from);
                }
                for line in 0..SIDE {
                    stream::lines(to.wrapping_offset(at(columns.to, line)), turned.add(line * pitch), pitch / LINE);
                }
            }
        }
        // What makes up no line, and no square.
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

/// Room for turned squares that make up whole lines.
#[repr(align(64))]
struct Turned([u8; SIDE * 128]);

/// A number of steps in bytes; both sides lie in memory, so that they can be counted.
pub(super) fn at(step: isize, times: usize) -> isize {
    step.wrapping_mul(isize::try_from(times).unwrap_or(isize::MAX))
}

/// Transposes `height` rows of `width` elements: squares, then what is left at the edges.
///
/// # Safety
/// - As for [`Tile::transpose`], with these numbers.
#[inline(always)]
unsafe fn block<T: Tile>(to: *mut u8, to_row: isize, from: *const u8, from_row: isize, height: usize, width: usize) {
    let (whole_rows, whole_columns) = (height - height % SIDE, width - width % SIDE);
    // SAFETY: rows below `height`, columns below `width`.
    unsafe {
        for row in (0..whole_rows).step_by(SIDE) {
            for column in (0..whole_columns).step_by(SIDE) {
                let to = to.wrapping_offset(at(to_row, column)).add(row * T::SIZE);
                let from = from.wrapping_offset(at(from_row, row)).add(column * T::SIZE);
                T::transpose(to, to_row, from, from_row);
            }
        }
        for row in 0..height {
            let first = if row < whole_rows { whole_columns } else { 0 };
            let mut to = to.wrapping_offset(at(to_row, first)).wrapping_add(row * T::SIZE);
            let mut from = from.wrapping_offset(at(from_row, row)).wrapping_add(first * T::SIZE);
            for _ in first..width {
                element(T::SIZE, to, from);
                // The addresses after the last column are not used.
                to = to.wrapping_offset(to_row);
                from = from.wrapping_add(T::SIZE);
            }
        }
    }
}
