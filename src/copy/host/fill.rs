//! Fills on the host.

#![allow(unsafe_code, reason = "bytes are written through raw pointers")]

use super::stream;

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
