//! Casts of one element, with the results of NumPy and `ml_dtypes`.

/// A number that can be cast to a `T`.
pub(super) trait Cast<T>: Copy {
    fn cast(self) -> T;
}

/// A byte that is true unless it is 0.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bool(u8);

/// The upper half of an `f32`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bf16(u16);

/// An `f32` on the way to a 16-bit float: its last bit records what was already rounded off, so that the result is rounded
/// once.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Wide(pub(super) f32);

impl Bf16 {
    /// Rounds to nearest, ties to even. A NaN keeps only its sign, as in `ml_dtypes`.
    #[inline(always)]
    fn nearest(number: f32) -> Bf16 {
        let bits = number.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        let chosen = if number.is_nan() { bits >> 16 & 0x8000 | 0x7fc0 } else { rounded };
        #[allow(clippy::cast_possible_truncation, reason = "16 bits are left")]
        Bf16(chosen as u16)
    }

    #[inline(always)]
    fn number(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

impl Wide {
    /// Rounds to odd: an inexact result gets an odd last bit, so that no later rounding sees a tie.
    #[inline(always)]
    fn odd(number: f64) -> Wide {
        #[allow(clippy::cast_possible_truncation, reason = "what is lost is looked at below")]
        let near = number as f32;
        let back = f64::from(near);
        let towards_zero = near.to_bits() - u32::from(back.abs() > number.abs());
        // A NaN does not equal itself, and stays a NaN.
        Wide(if back == number { near } else { f32::from_bits(towards_zero | 1) })
    }
}

/// Casts as C does, by Rust's `as`: integers wrap around; floats are rounded once, to nearest, ties to even.
macro_rules! as_in_c {
    ($($from:ty),+ => $to:tt) => { $(as_in_c!(@ $from => $to);)+ };
    (@ $from:ty => ($($to:ty),+)) => {
        $(impl Cast<$to> for $from {
            #[inline(always)]
            #[allow(
                clippy::unnecessary_cast,
                clippy::cast_lossless,
                clippy::cast_possible_truncation,
                clippy::cast_possible_wrap,
                clippy::cast_sign_loss,
                reason = "NumPy's results, with the loss"
            )]
            fn cast(self) -> $to {
                self as $to
            }
        })+
    };
}

as_in_c!(u8, u16, u32, u64, i8, i16, i32, i64 => (u8, u16, u32, u64, f32, f64));
as_in_c!(f32, f64 => (f32, f64));

/// Casts by way of another type.
macro_rules! through {
    ($($from:ty: |$number:ident| $way:expr => ($($to:ty),+);)+) => {
        $($(impl Cast<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to {
                let $number = self;
                $way.cast()
            }
        })+)+
    };
}

through! {
    Bool: |flag| u8::from(flag.0 != 0) => (u8, u16, u32, u64, f32, f64);
    Bf16: |number| number.number() => (f32, f64);
}

/// Casts to `bfloat16` by way of `f32`, integers too: that is how NumPy and `ml_dtypes` round them.
macro_rules! narrow {
    ($($from:ty),+) => {
        $(impl Cast<Bf16> for $from {
            #[inline(always)]
            fn cast(self) -> Bf16 {
                Bf16::nearest(self.cast())
            }
        })+
    };
}

narrow!(Bool, u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

macro_rules! wide {
    ($($from:ty),+) => {
        $(impl Cast<Wide> for $from {
            #[inline(always)]
            fn cast(self) -> Wide {
                Wide(self.cast())
            }
        })+
    };
}

// An integer that `f32` has to round exceeds the largest `f16`.
wide!(Bool, u8, u16, u32, u64, i8, i16, i32, i64, f32);

impl Cast<Wide> for f64 {
    #[inline(always)]
    fn cast(self) -> Wide {
        Wide::odd(self)
    }
}

/// Casts to a complex number; real numbers get an imaginary part of 0.
macro_rules! complex {
    ($($part:ty: $($from:ty),+;)+) => {
        $($(impl Cast<[$part; 2]> for $from {
            #[inline(always)]
            fn cast(self) -> [$part; 2] {
                [self.cast(), 0.0]
            }
        })+)+
    };
}

complex! {
    f32: Bool, u8, u16, u32, u64, i8, i16, i32, i64, Bf16, f32, f64;
    f64: Bool, u8, u16, u32, u64, i8, i16, i32, i64, Bf16, f32, f64;
}

impl Cast<[f64; 2]> for [f32; 2] {
    #[inline(always)]
    fn cast(self) -> [f64; 2] {
        self.map(Cast::cast)
    }
}

impl Cast<[f32; 2]> for [f64; 2] {
    #[inline(always)]
    fn cast(self) -> [f32; 2] {
        self.map(Cast::cast)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signalling_nans_become_quiet() {
        let bf16 = [0x7f80_0001, 0xffc1_2345u32].map(|bits| Cast::<Bf16>::cast(f32::from_bits(bits)).0);
        assert_eq!(bf16, [0x7fc0, 0xffc0]);
    }

    #[test]
    fn what_is_rounded_to_odd_is_never_taken_for_a_tie() {
        let odd = |number: f64| Wide::odd(number).0;
        let smallest = f64::from(f32::from_bits(1));
        for exact in [0.0, -0.0, 1.5, f64::from(f32::MAX), f64::INFINITY, f64::NEG_INFINITY, smallest] {
            assert_eq!(f64::from(odd(exact)).to_bits(), exact.to_bits());
        }
        // Not by `powi`, which may be inexact.
        let (tie, little) = (1.0 + 1.0 / 2048.0, 4.0 * f64::EPSILON);
        assert!(f64::from(odd(tie + little)) > tie && f64::from(odd(tie - little)) < tie);
        assert_eq!([odd(1e-300), odd(-1e300)], [f32::from_bits(1), -f32::MAX]);
        assert!(odd(f64::NAN).is_nan());
    }
}
