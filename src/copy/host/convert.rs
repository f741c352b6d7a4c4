//! Copies on the host between different element types.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use super::transpose::{APART, COLUMN_BYTES, LINE_BYTES, Scratch, Square, at};
use super::{STREAM_MIN_BYTES, faster, nested, stream, transpose};
use crate::copy::convert::CastLoop;
use crate::copy::plan::{Plan, Step};

/// Bytes that are converted in the first-level cache before non-temporal stores write them.
const CHUNK: usize = 4096;

/// A buffer for elements that are converted and not yet stored.
#[repr(align(64))]
struct Chunk([u8; CHUNK]);

/// Converts elements of `itemsize` bytes to elements of `SIZE` bytes along a plan. `whole` is the number of bytes that all
/// threads write.
///
/// # Safety
/// - As for [`super::follow`]; `row` converts between elements of these sizes.
pub(super) unsafe fn follow<const SIZE: usize>(
    plan: &Plan,
    to: *mut u8,
    from: *const u8,
    row: CastLoop,
    itemsize: usize,
    whole: usize,
) {
    let (to, from) = (to.wrapping_offset(plan.start.0), from.wrapping_offset(plan.start.1));
    let (to_unit, from_unit) = (at(1, SIZE), at(1, itemsize));
    let streamed = whole >= STREAM_MIN_BYTES;
    let mut steps = plan.steps.clone();
    // A plan without loops is one element.
    let inner = steps.pop().unwrap_or(Step { count: 1, to: to_unit, from: from_unit });
    // SAFETY: passed on from the caller; each turn of the outer loops gets a part of the plan's elements.
    unsafe {
        if inner.from != from_unit
            && let Some(position) = faster(&steps, inner, to_unit, from_unit)
        {
            let square = Square { columns: steps.remove(position), rows: inner, ahead: None };
            let mut blocks = Blocks { row, itemsize, converted: Scratch::new(), lines: Scratch::new(), streamed };
            nested(&steps, to, from, &mut |to, from| blocks.follow::<SIZE>(&square, to, from));
        } else if streamed && inner.to == to_unit {
            // As in a copy without conversion: in the order of the source.
            steps.sort_by_key(|step| std::cmp::Reverse(step.from.unsigned_abs()));
            let mut chunk = Chunk([0; CHUNK]);
            nested(&steps, to, from, &mut |to, from| past_the_caches::<SIZE>(&mut chunk, row, inner, to, from));
        } else {
            nested(&steps, to, from, &mut |to, from| row(inner, to, from));
        }
    }
    if streamed {
        stream::finish();
    }
}

/// Converts a row that is contiguous in the destination, chunk by chunk, with non-temporal stores.
///
/// # Safety
/// - As for [`CastLoop`].
unsafe fn past_the_caches<const SIZE: usize>(
    chunk: &mut Chunk,
    row: CastLoop,
    step: Step,
    to: *mut u8,
    from: *const u8,
) {
    let mut done = 0;
    // The first chunk ends at the end of a cache line, so that the others are whole lines.
    let mut most = (CHUNK - to.addr() % 64) / SIZE;
    while done < step.count {
        let count = most.min(step.count - done);
        let piece = Step { count, to: at(1, SIZE), from: step.from };
        // SAFETY: a piece of the row, no longer than the chunk.
        unsafe {
            row(piece, chunk.0.as_mut_ptr(), from.wrapping_offset(at(step.from, done)));
            stream::copy(to.add(done * SIZE), chunk.0.as_ptr(), count * SIZE);
        }
        done += count;
        most = CHUNK / SIZE;
    }
}

/// Blocks whose sides are contiguous along different loops: converted in the order of the source, then transposed.
struct Blocks {
    row: CastLoop,
    itemsize: usize,
    converted: Scratch,
    /// The buffer of the transposition.
    lines: Scratch,
    streamed: bool,
}

impl Blocks {
    /// # Safety
    /// - As for [`transpose::copy`], with elements of `itemsize` bytes in the source.
    unsafe fn follow<const SIZE: usize>(&mut self, square: &Square, to: *mut u8, from: *const u8) {
        let Square { rows, columns, .. } = *square;
        let high = (LINE_BYTES / SIZE).min(rows.count);
        let wide = (COLUMN_BYTES / SIZE.max(self.itemsize)).min(columns.count);
        let pitch = (wide * SIZE).next_multiple_of(64) + APART;
        let block = self.converted.lines(high * pitch);
        for first in (0..rows.count).step_by(high) {
            let height = high.min(rows.count - first);
            for column in (0..columns.count).step_by(wide) {
                let width = wide.min(columns.count - column);
                let from = from.wrapping_offset(at(columns.from, column));
                let line = Step { count: width, to: at(1, SIZE), from: columns.from };
                let part = Square {
                    rows: Step { count: height, to: rows.to, from: at(1, pitch) },
                    columns: Step { count: width, to: columns.to, from: at(1, SIZE) },
                    ahead: None,
                };
                let to = to.wrapping_offset(at(rows.to, first) + at(columns.to, column));
                // SAFETY: a part of the square; the block has room for its rows and columns.
                unsafe {
                    for nth in 0..height {
                        (self.row)(line, block.add(nth * pitch), from.wrapping_offset(at(rows.from, first + nth)));
                    }
                    transpose::copy::<SIZE>(&part, to, block, &mut self.lines, self.streamed);
                }
            }
        }
    }
}
