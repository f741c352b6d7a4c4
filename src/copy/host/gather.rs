//! Rows of every second, third or fourth element, or backwards, by shuffles of whole registers.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

use std::arch::x86_64::{
    __m128i, _mm_loadu_si128, _mm_or_si128, _mm_setzero_si128, _mm_shuffle_epi8, _mm_storeu_si128,
};

use super::rows::{Rows, each, run};
use crate::copy::plan::Step;

/// Bytes of a register, which hold one block of gathered elements.
const REGISTER: usize = 16;

/// The longest step that is gathered by shuffles.
const MOST: usize = 4;

/// A shuffle sets such a byte to 0.
const NONE: u8 = 0x80;

/// Returns the loops for rows that are contiguous in the destination and this many elements apart in the source; `None` if
/// there are none for this step or on this machine.
pub(super) fn of<const SIZE: usize>(step: isize) -> Option<Rows> {
    if !is_x86_feature_detected!("ssse3") {
        return None;
    }
    Some(match step {
        2 => rows::<SIZE, 2>,
        3 => rows::<SIZE, 3>,
        4 => rows::<SIZE, 4>,
        -1 => rows::<SIZE, -1>,
        -2 => rows::<SIZE, -2>,
        _ => return None,
    })
}

/// # Safety
/// - As for [`Rows`]; the machine has SSSE3.
#[target_feature(enable = "ssse3")]
unsafe fn rows<const SIZE: usize, const STEP: isize>(outer: &Step, inner: &Step, to: *mut u8, from: *const u8) {
    let inner = Step { count: inner.count, to: SIZE.cast_signed(), from: STEP * SIZE.cast_signed() };
    // SAFETY: passed on from the caller.
    unsafe { each(outer, to, from, |to, from| row::<SIZE, STEP>(&inner, to, from)) }
}

/// Gathers one row, block by block.
///
/// # Safety
/// - As for [`rows`], with one loop.
#[target_feature(enable = "ssse3")]
#[inline]
unsafe fn row<const SIZE: usize, const STEP: isize>(inner: &Step, to: *mut u8, from: *const u8) {
    let together = REGISTER / SIZE;
    if inner.count <= together {
        // SAFETY: passed on from the caller.
        return unsafe { run(SIZE, inner, to, from) };
    }
    // The lowest element of a block: its first one, or its last one if the row goes backwards.
    let lowest = |first: usize| {
        let lowest = if STEP > 0 { first } else { first + together - 1 };
        from.wrapping_offset(inner.from.wrapping_mul(lowest.cast_signed()))
    };
    let mut done = 0;
    // SAFETY: these blocks have a next element; the one after the loop has an element before it.
    unsafe {
        while inner.count - done > together {
            _mm_storeu_si128(to.add(done * SIZE).cast(), block::<SIZE, STEP>(lowest(done), STEP < 0));
            done += together;
        }
        let last = inner.count - together;
        _mm_storeu_si128(to.add(last * SIZE).cast(), block::<SIZE, STEP>(lowest(last), STEP > 0));
    }
}

/// Reads a block and the bytes between its elements, and returns the elements.
///
/// Such bytes may be outside the row, and other threads may write to them, but they are dropped. They can be read, because they
/// lie between two elements of one field.
///
/// # Safety
/// - `lowest` is the lowest of as many elements as fit into a register. There is another element at the next lower place if
///   `below`, else at the next higher one.
/// - The machine has SSSE3.
#[target_feature(enable = "ssse3")]
#[inline]
unsafe fn block<const SIZE: usize, const STEP: isize>(lowest: *const u8, below: bool) -> __m128i {
    let gap = (STEP.unsigned_abs() - 1) * SIZE;
    let (window, places) = if below {
        (lowest.wrapping_sub(gap), const { places::<SIZE, STEP>((STEP.unsigned_abs() - 1) * SIZE) })
    } else {
        (lowest, const { places::<SIZE, STEP>(0) })
    };
    let mut found = _mm_setzero_si128();
    for (register, places) in places[..STEP.unsigned_abs()].iter().enumerate() {
        // SAFETY: the window begins or ends with an element, and its other end is before the next one.
        let bytes = unsafe { _mm_loadu_si128(window.add(register * REGISTER).cast()) };
        // SAFETY: the array has as many bytes.
        let places = unsafe { _mm_loadu_si128(places.as_ptr().cast()) };
        found = _mm_or_si128(found, _mm_shuffle_epi8(bytes, places));
    }
    found
}

/// Returns, for each register of a window, which of its bytes goes to each place of the block, or [`NONE`]. The lowest element
/// is at `lowest` in the window.
const fn places<const SIZE: usize, const STEP: isize>(lowest: usize) -> [[u8; REGISTER]; MOST] {
    let together = REGISTER / SIZE;
    let mut places = [[NONE; REGISTER]; MOST];
    let mut place = 0;
    while place < together * SIZE {
        let (nth, byte) = (place / SIZE, place % SIZE);
        let nth = if STEP > 0 { nth } else { together - 1 - nth };
        let at = lowest + nth * STEP.unsigned_abs() * SIZE + byte;
        // At most 15, so it fits.
        places[at / REGISTER][place] = (at % REGISTER).to_le_bytes()[0];
        place += 1;
    }
    places
}
