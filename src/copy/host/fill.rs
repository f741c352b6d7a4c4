//! Fills on the host.

#![allow(unsafe_code, reason = "bytes are written through raw pointers")]

use std::mem::MaybeUninit;

use super::stream;

/// Writes an element to each place of a run. For short runs: a [`Pattern`] would take longer to make than to write.
///
/// # Safety
/// - `to` is writable for `count` elements.
pub(in crate::copy) unsafe fn short_run(to: *mut u8, element: &[u8], count: usize) {
    // SAFETY: passed on from the caller; each number is the length of the element.
    unsafe {
        match element.len() {
            1 => repeat::<1>(to, element, count),
            2 => repeat::<2>(to, element, count),
            4 => repeat::<4>(to, element, count),
            8 => repeat::<8>(to, element, count),
            _ => repeat::<16>(to, element, count),
        }
    }
}

/// # Safety
/// - `element` has `SIZE` bytes, and `to` is writable for `count` of them.
unsafe fn repeat<const SIZE: usize>(to: *mut u8, element: &[u8], count: usize) {
    // SAFETY: passed on from the caller; arrays of bytes need no alignment.
    unsafe {
        let element = element.as_ptr().cast::<[u8; SIZE]>().read();
        std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<[u8; SIZE]>>(), count).fill(MaybeUninit::new(element));
    }
}

/// Bytes written at a time: a multiple of every element size.
const CHUNK: usize = 4096;

/// The element repeated over a chunk.
#[repr(align(64))]
pub(super) struct Pattern([u8; CHUNK]);

impl Pattern {
    /// # Safety
    /// - `element` is readable for `SIZE` bytes.
    pub(super) unsafe fn new<const SIZE: usize>(element: *const u8, count: usize) -> Pattern {
        let mut pattern = Pattern([0; CHUNK]);
        // SAFETY: passed on from the caller.
        let element: [u8; SIZE] = unsafe { element.cast::<[u8; SIZE]>().read() };
        // A short run needs only a short pattern.
        for place in pattern.0.as_chunks_mut::<SIZE>().0.iter_mut().take(count) {
            *place = element;
        }
        pattern
    }

    /// Writes a run of `bytes`, a whole number of elements.
    ///
    /// # Safety
    /// - `to` is writable for `bytes` bytes.
    pub(super) unsafe fn write(&self, to: *mut u8, bytes: usize, streamed: bool) {
        for start in (0..bytes).step_by(CHUNK) {
            let len = CHUNK.min(bytes - start);
            // SAFETY: a part of the run; a chunk is a whole number of elements, so each begins with one.
            unsafe {
                if streamed {
                    stream::copy(to.add(start), self.0.as_ptr(), len);
                } else {
                    std::ptr::copy_nonoverlapping(self.0.as_ptr(), to.add(start), len);
                }
            }
        }
    }
}
