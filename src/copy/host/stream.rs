//! Non-temporal stores, for destinations so large that they would evict all other data from the caches.

#![allow(unsafe_code, reason = "bytes are moved through raw pointers")]

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Copies `bytes` bytes. On `x86_64` the stores are non-temporal: call [`finish`] before other threads may read them.
///
/// # Safety
/// - `from` is readable and `to` writable for `bytes` bytes, without overlap.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    let head = to.align_offset(LINE);
    if bytes < head + LINE {
        // SAFETY: passed on from the caller.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    }
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: head, lines and tail add up to `bytes`; the lines are aligned in the destination.
    unsafe {
        if head > 0 {
            std::ptr::copy_nonoverlapping(from, to, head);
        }
        self::lines(to.add(head), from.add(head), lines);
        if tail < bytes {
            std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), bytes - tail);
        }
    }
}

/// Copies `count` whole cache lines with non-temporal stores.
///
/// # Safety
/// - `count` lines of 64 bytes can be read and written, and do not overlap; `to` is a multiple of 64.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn lines(to: *mut u8, from: *const u8, count: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    for line in 0..count {
        // SAFETY: passed on from the caller.
        unsafe {
            let (to, from) = (to.add(line * LINE).cast::<__m128i>(), from.add(line * LINE).cast::<__m128i>());
            let parts: [__m128i; 4] = std::array::from_fn(|part| _mm_loadu_si128(from.add(part)));
            for (part, value) in parts.into_iter().enumerate() {
                _mm_stream_si128(to.add(part), value);
            }
        }
    }
}

/// Prefetches bytes that will be read soon. Any address is allowed. With `NEAR` they come into the first-level cache, else into
/// the second.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn ask<const NEAR: bool>(from: *const u8, bytes: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
    for line in (0..bytes).step_by(LINE) {
        let line = from.wrapping_add(line).cast();
        // SAFETY: a prefetch accepts any address.
        unsafe { if NEAR { _mm_prefetch::<_MM_HINT_T0>(line) } else { _mm_prefetch::<_MM_HINT_T1>(line) } }
    }
}

/// Makes the stores of this thread visible to others before its later ones.
#[cfg(target_arch = "x86_64")]
pub(super) fn finish() {
    // SAFETY: every x86-64 has this instruction.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

/// Copies bytes by ordinary stores, on machines where these do not read the line first, or that have no others.
///
/// # Safety
/// - `bytes` can be read and written, and do not overlap.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: passed on from the caller.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

/// Copies `count` whole cache lines by ordinary stores.
///
/// # Safety
/// - `count` lines can be read and written, and do not overlap.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) unsafe fn lines(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: passed on from the caller.
    unsafe { std::ptr::copy_nonoverlapping(from, to, count * LINE) }
}

/// Does nothing: ordinary stores need no fence here.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn finish() {}

/// Does nothing: the language has no prefetch for these machines.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn ask<const NEAR: bool>(_: *const u8, _: usize) {}
