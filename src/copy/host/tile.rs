//! Transposing a small square of elements in registers.

#![allow(unsafe_code, reason = "elements are moved through raw pointers")]

/// Rows and columns of a square: a cache line of 8-byte elements.
pub(super) const SIDE: usize = 8;

/// A way to transpose squares of elements of one size.
pub(super) trait Tile {
    /// Bytes of one element.
    const SIZE: usize;

    /// Copies a square of [`SIDE`] by [`SIDE`] elements so that its rows become columns. Rows are contiguous on both
    /// sides and `from_row`, `to_row` bytes apart.
    ///
    /// # Safety
    /// - All rows are readable from `from` and writable from `to`, without overlap.
    /// - The machine has the instructions that the tile is made for.
    unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize);
}

/// Element by element: any size, any machine.
pub(super) struct Portable<const SIZE: usize>;

impl<const SIZE: usize> Tile for Portable<SIZE> {
    const SIZE: usize = SIZE;

    #[inline(always)]
    unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize) {
        // SAFETY: passed on from the caller; arrays of bytes have no alignment.
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
pub(super) use x86::{Eight, Four};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{SIDE, Tile};

    /// 8-byte elements in AVX2 registers of four.
    pub(in super::super) struct Eight;

    impl Tile for Eight {
        const SIZE: usize = 8;

        #[inline(always)]
        unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize) {
            // SAFETY: passed on from the caller.
            unsafe {
                for right in 0..2isize {
                    // Four columns of all eight rows become four whole lines.
                    let quarter = |below: isize| {
                        let row =
                            |row: isize| _mm256_loadu_pd(from.offset((4 * below + row) * from_row + 32 * right).cast());
                        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                        let (ab, ab2) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
                        let (cd, cd2) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
                        [
                            _mm256_permute2f128_pd::<0x20>(ab, cd),
                            _mm256_permute2f128_pd::<0x20>(ab2, cd2),
                            _mm256_permute2f128_pd::<0x31>(ab, cd),
                            _mm256_permute2f128_pd::<0x31>(ab2, cd2),
                        ]
                    };
                    let (upper, lower) = (quarter(0), quarter(1));
                    for (line, (left, right_half)) in (0isize..).zip(upper.into_iter().zip(lower)) {
                        let to = to.offset((4 * right + line) * to_row);
                        _mm256_storeu_pd(to.cast(), left);
                        _mm256_storeu_pd(to.add(32).cast(), right_half);
                    }
                }
            }
        }
    }

    /// 4-byte elements in AVX2 registers of eight.
    pub(in super::super) struct Four;

    impl Tile for Four {
        const SIZE: usize = 4;

        #[inline(always)]
        unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize) {
            // SAFETY: passed on from the caller.
            unsafe {
                let row = |row: usize| _mm256_loadu_ps(from.offset(row.cast_signed() * from_row).cast());
                let rows: [__m256; SIDE] = std::array::from_fn(row);
                let pair = |first: usize, high: bool| {
                    let (a, b) = (rows[first], rows[first + 1]);
                    if high { _mm256_unpackhi_ps(a, b) } else { _mm256_unpacklo_ps(a, b) }
                };
                let (a, b, c, d) = (pair(0, false), pair(0, true), pair(2, false), pair(2, true));
                let (e, f, g, h) = (pair(4, false), pair(4, true), pair(6, false), pair(6, true));
                let quads = [
                    _mm256_shuffle_ps::<0x44>(a, c),
                    _mm256_shuffle_ps::<0xee>(a, c),
                    _mm256_shuffle_ps::<0x44>(b, d),
                    _mm256_shuffle_ps::<0xee>(b, d),
                    _mm256_shuffle_ps::<0x44>(e, g),
                    _mm256_shuffle_ps::<0xee>(e, g),
                    _mm256_shuffle_ps::<0x44>(f, h),
                    _mm256_shuffle_ps::<0xee>(f, h),
                ];
                for line in 0..4 {
                    let low = _mm256_permute2f128_ps::<0x20>(quads[line], quads[line + 4]);
                    let high = _mm256_permute2f128_ps::<0x31>(quads[line], quads[line + 4]);
                    _mm256_storeu_ps(to.offset(line.cast_signed() * to_row).cast(), low);
                    _mm256_storeu_ps(to.offset((line + 4).cast_signed() * to_row).cast(), high);
                }
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) use arm::{Eight, Four};

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;

    use super::{SIDE, Tile};

    /// 8-byte elements in NEON registers of two.
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

    /// 4-byte elements in NEON registers of four.
    pub(in super::super) struct Four;

    impl Tile for Four {
        const SIZE: usize = 4;

        #[inline(always)]
        unsafe fn transpose(to: *mut u8, to_row: isize, from: *const u8, from_row: isize) {
            // SAFETY: as above.
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
