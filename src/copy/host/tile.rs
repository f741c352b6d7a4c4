//! Transposes a small square of elements in registers.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

/// Rows and columns of a square: a cache line of 8-byte elements.
pub(super) const SIDE: usize = 8;

/// A way to transpose squares of elements of one size.
pub(super) trait Tile {
    /// Bytes of one element.
    const SIZE: usize;

    /// Transposes a square of [`SIDE`] by [`SIDE`] elements. Rows are contiguous on both sides, `from_row` and `to_row` bytes
    /// apart.
    ///
    /// # Safety
    /// - All rows are readable from `from` and writable from `to`, without overlap.
    /// - The machine has the instructions that the tile uses.
    unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize);
}

/// Element by element, for any size and machine.
pub(super) struct Portable<const SIZE: usize>;

impl<const SIZE: usize> Tile for Portable<SIZE> {
    const SIZE: usize = SIZE;

    #[inline(always)]
    unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize) {
        // SAFETY: passed on from the caller; byte arrays need no alignment.
        unsafe {
            let mut square = [[[0u8; SIZE]; SIDE]; SIDE];
            for (row, elements) in (0isize..).zip(&mut square) {
                *elements = from.offset(row * from_row).cast::<[[u8; SIZE]; SIDE]>().read();
            }
            for (column, row) in (0..SIDE).zip(0isize..) {
                let line: [[u8; SIZE]; SIDE] = std::array::from_fn(|row| square[row][column]);
                to.offset(row * to_row).cast::<[[u8; SIZE]; SIDE]>().write(line);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Eight, Four, One, Two};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Tile;

    /// 1-byte elements in SSE2 registers of sixteen elements.
    pub(in super::super) struct One;

    impl Tile for One {
        const SIZE: usize = 1;

        #[inline(always)]
        unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize) {
            // SAFETY: passed on from the caller; every x86-64 has these instructions.
            unsafe {
                // Unpacking two rows, then four, then eight brings the elements of a column together.
                let row = |row: isize| _mm_loadl_epi64(from.offset(row * from_row).cast());
                let two = |first: isize| _mm_unpacklo_epi8(row(first), row(first + 1));
                let four = |a, b| (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b));
                let ((a, b), (c, d)) = (four(two(0), two(2)), four(two(4), two(6)));
                let eight = |a, b| [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)];
                for (pair, columns) in (0isize..).zip(eight(a, c).into_iter().chain(eight(b, d))) {
                    let to = to.offset(2 * pair * to_row);
                    _mm_storel_epi64(to.cast(), columns);
                    _mm_storeh_pd(to.offset(to_row).cast(), _mm_castsi128_pd(columns));
                }
            }
        }
    }

    /// 2-byte elements in SSE2 registers of eight elements.
    pub(in super::super) struct Two;

    impl Tile for Two {
        const SIZE: usize = 2;

        #[inline(always)]
        unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize) {
            // SAFETY: passed on from the caller; every x86-64 has these instructions.
            unsafe {
                let row = |row: isize| _mm_loadu_si128(from.offset(row * from_row).cast());
                let two = |first: isize| {
                    let (a, b) = (row(first), row(first + 1));
                    (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b))
                };
                let four = |a, b| [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)];
                let ((a, b), (c, d), (e, f), (g, h)) = (two(0), two(2), two(4), two(6));
                let upper = four(a, c).into_iter().chain(four(b, d));
                let lower = four(e, g).into_iter().chain(four(f, h));
                for (pair, (above, below)) in (0isize..).zip(upper.zip(lower)) {
                    let to = to.offset(2 * pair * to_row);
                    _mm_storeu_si128(to.cast(), _mm_unpacklo_epi64(above, below));
                    _mm_storeu_si128(to.offset(to_row).cast(), _mm_unpackhi_epi64(above, below));
                }
            }
        }
    }

    /// 8-byte elements in AVX2 registers of four elements.
    pub(in super::super) struct Eight;

    impl Tile for Eight {
        const SIZE: usize = 8;

        #[inline(always)]
        unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize) {
            // SAFETY: passed on from the caller.
            unsafe {
                for right in 0..4isize {
                    // Two columns of all eight rows become two whole lines.
                    let quarter = |below: isize| {
                        // Rows two apart share a register, so that unpacking is enough.
                        let row = |row: isize| {
                            let from = from.offset((4 * below + row) * from_row + 16 * right);
                            let low = _mm256_castpd128_pd256(_mm_loadu_pd(from.cast()));
                            _mm256_insertf128_pd::<1>(low, _mm_loadu_pd(from.offset(2 * from_row).cast()))
                        };
                        let (ac, bd) = (row(0), row(1));
                        (_mm256_unpacklo_pd(ac, bd), _mm256_unpackhi_pd(ac, bd))
                    };
                    let ((a, b), (c, d)) = (quarter(0), quarter(1));
                    let to = to.offset(2 * right * to_row);
                    _mm256_storeu_pd(to.cast(), a);
                    _mm256_storeu_pd(to.add(32).cast(), c);
                    _mm256_storeu_pd(to.offset(to_row).cast(), b);
                    _mm256_storeu_pd(to.offset(to_row).add(32).cast(), d);
                }
            }
        }
    }

    /// 4-byte elements in AVX2 registers of eight elements.
    pub(in super::super) struct Four;

    impl Tile for Four {
        const SIZE: usize = 4;

        #[inline(always)]
        unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize) {
            // SAFETY: passed on from the caller.
            unsafe {
                for right in 0..2isize {
                    // Rows four apart share a register, so that no value has to change lanes.
                    let row = |row: isize| {
                        let from = from.offset(row * from_row + 16 * right);
                        let low = _mm256_castps128_ps256(_mm_loadu_ps(from.cast()));
                        _mm256_insertf128_ps::<1>(low, _mm_loadu_ps(from.offset(4 * from_row).cast()))
                    };
                    let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                    let (ab, ab2) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                    let (cd, cd2) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                    let lines = [
                        _mm256_shuffle_ps::<0x44>(ab, cd),
                        _mm256_shuffle_ps::<0xee>(ab, cd),
                        _mm256_shuffle_ps::<0x44>(ab2, cd2),
                        _mm256_shuffle_ps::<0xee>(ab2, cd2),
                    ];
                    for (line, values) in (0isize..).zip(lines) {
                        _mm256_storeu_ps(to.offset((4 * right + line) * to_row).cast(), values);
                    }
                }
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) use arm::{Eight, Four};

// Compiled, but never run: there was no such machine.
#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;

    use super::{SIDE, Tile};

    /// 8-byte elements in NEON registers of two elements.
    pub(in super::super) struct Eight;

    impl Tile for Eight {
        const SIZE: usize = 8;

        #[inline(always)]
        unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize) {
            // SAFETY: passed on from the caller; every aarch64 has these instructions.
            unsafe {
                for below in (0..SIDE.cast_signed()).step_by(2) {
                    for right in (0..SIDE.cast_signed()).step_by(2) {
                        let from = from.offset(below * from_row + 8 * right);
                        let (a, b) = (vld1q_u64(from.cast()), vld1q_u64(from.offset(from_row).cast()));
                        let to = to.offset(right * to_row + 8 * below);
                        vst1q_u64(to.cast(), vtrn1q_u64(a, b));
                        vst1q_u64(to.offset(to_row).cast(), vtrn2q_u64(a, b));
                    }
                }
            }
        }
    }

    /// 4-byte elements in NEON registers of four elements.
    pub(in super::super) struct Four;

    impl Tile for Four {
        const SIZE: usize = 4;

        #[inline(always)]
        unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize) {
            // SAFETY: passed on from the caller; every aarch64 has these instructions.
            unsafe {
                for below in (0..SIDE.cast_signed()).step_by(4) {
                    for right in (0..SIDE.cast_signed()).step_by(4) {
                        let from = from.offset(below * from_row + 4 * right);
                        let row = |row: isize| vld1q_u32(from.offset(row * from_row).cast());
                        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                        let pairs =
                            |a, b| (vreinterpretq_u64_u32(vtrn1q_u32(a, b)), vreinterpretq_u64_u32(vtrn2q_u32(a, b)));
                        let ((ab, ab2), (cd, cd2)) = (pairs(a, b), pairs(c, d));
                        let lines =
                            [vtrn1q_u64(ab, cd), vtrn1q_u64(ab2, cd2), vtrn2q_u64(ab, cd), vtrn2q_u64(ab2, cd2)];
                        let to = to.offset(right * to_row + 4 * below);
                        for (place, line) in (0isize..).zip(lines) {
                            vst1q_u64(to.offset(place * to_row).cast(), line);
                        }
                    }
                }
            }
        }
    }
}
