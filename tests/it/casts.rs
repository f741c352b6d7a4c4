//! The oracle of casts: one element at a time, through the widest numbers, and by a search for the nearest value.

use dlfield::DType;

/// A number of any kind.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Real(f64),
    Complex(f64, f64),
}

/// Returns the bytes of `element` of type `from` after a cast to type `to`.
pub fn cast(element: &[u8], from: DType, to: DType) -> Vec<u8> {
    match (from, to) {
        _ if from == to => element.to_vec(),
        // Bits are kept where nothing is rounded, also those of signalling NaNs.
        (DType::BF16, DType::F32) => (u32::from(u16::from_ne_bytes(part(element, 0))) << 16).to_ne_bytes().to_vec(),
        (DType::BF16 | DType::F32, DType::C64) => [cast(element, from, DType::F32), vec![0; 4]].concat(),
        _ => write(read(element, from), to),
    }
}

fn part<const N: usize>(bytes: &[u8], nth: usize) -> [u8; N] {
    bytes[nth * N..(nth + 1) * N].try_into().unwrap()
}

fn read(bytes: &[u8], dtype: DType) -> Number {
    let real = |nth| match dtype {
        DType::C64 | DType::F32 => f64::from(f32::from_ne_bytes(part(bytes, nth))),
        _ => f64::from_ne_bytes(part(bytes, nth)),
    };
    match dtype {
        DType::BOOL => Number::Whole(i128::from(bytes[0] != 0)),
        DType::I8 => Number::Whole(i8::from_ne_bytes(part(bytes, 0)).into()),
        DType::I16 => Number::Whole(i16::from_ne_bytes(part(bytes, 0)).into()),
        DType::I32 => Number::Whole(i32::from_ne_bytes(part(bytes, 0)).into()),
        DType::I64 => Number::Whole(i64::from_ne_bytes(part(bytes, 0)).into()),
        DType::U8 => Number::Whole(bytes[0].into()),
        DType::U16 => Number::Whole(u16::from_ne_bytes(part(bytes, 0)).into()),
        DType::U32 => Number::Whole(u32::from_ne_bytes(part(bytes, 0)).into()),
        DType::U64 => Number::Whole(u64::from_ne_bytes(part(bytes, 0)).into()),
        DType::F16 => Number::Real(small(u16::from_ne_bytes(part(bytes, 0)), 10)),
        DType::BF16 => Number::Real(small(u16::from_ne_bytes(part(bytes, 0)), 7)),
        DType::C64 | DType::C128 => Number::Complex(real(0), real(1)),
        _ => Number::Real(real(0)),
    }
}

/// Returns the value of 16 bits: a sign, an exponent, and so many bits of a fraction.
fn small(bits: u16, fraction_bits: u16) -> f64 {
    let exponents = 1 << (15 - fraction_bits);
    let (exponent, fraction) = (bits >> fraction_bits & (exponents - 1), bits & ((1 << fraction_bits) - 1));
    let sign = u64::from(bits >> 15) << 63;
    let scaled = |fraction: u16, exponent: u16| {
        let power = i32::from(exponent) - i32::from(exponents / 2 - 1) - i32::from(fraction_bits);
        f64::from(fraction) * 2f64.powi(power)
    };
    let magnitude = match exponent {
        0 => scaled(fraction, 1),
        // A quiet NaN, with the fraction at the top of the payload.
        _ if exponent == exponents - 1 && fraction > 0 => {
            f64::from_bits(0x7ff8 << 48 | u64::from(fraction) << (52 - fraction_bits))
        }
        _ if exponent == exponents - 1 => f64::INFINITY,
        _ => scaled(fraction | 1 << fraction_bits, exponent),
    };
    f64::from_bits(magnitude.to_bits() | sign)
}

/// Returns the 16 bits whose value is nearest to `number`; of two, the even ones.
fn nearest(number: f64, fraction_bits: u16) -> u16 {
    let infinity = 0x7fff >> fraction_bits << fraction_bits;
    let sign = if number.is_sign_negative() { 0x8000 } else { 0 };
    if number.is_nan() {
        // The payload's upper bits, except in a bfloat16.
        let payload = u16::try_from(number.to_bits() >> (52 - fraction_bits) & ((1 << fraction_bits) - 1)).unwrap();
        return sign | infinity | 1 << (fraction_bits - 1) | if fraction_bits == 7 { 0 } else { payload };
    }
    // The pattern of infinity counts as the next number.
    let value = |bits: u16| match bits {
        _ if bits == infinity => small(infinity - 1, fraction_bits) * 2.0 - small(infinity - 2, fraction_bits),
        _ => small(bits, fraction_bits),
    };
    let (mut below, mut above) = (0, infinity);
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if value(middle) <= number.abs() { below = middle } else { above = middle }
    }
    let tie = (value(below) + value(above)) / 2.0;
    let even = if below % 2 == 0 { below } else { above };
    sign | match number.abs() {
        magnitude if magnitude < tie => below,
        magnitude if magnitude > tie => above,
        _ => even,
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "expected the nearest")]
fn write(number: Number, dtype: DType) -> Vec<u8> {
    let single = |number| match number {
        Number::Whole(whole) => whole as f32,
        Number::Real(real) | Number::Complex(real, _) => real as f32,
    };
    let double = |number| match number {
        Number::Whole(whole) => whole as f64,
        Number::Real(real) | Number::Complex(real, _) => real,
    };
    let imaginary = Number::Real(if let Number::Complex(_, imaginary) = number { imaginary } else { 0.0 });
    match dtype {
        DType::F16 => nearest(double(number), 10).to_ne_bytes().to_vec(),
        DType::BF16 => nearest(single(number).into(), 7).to_ne_bytes().to_vec(),
        DType::F32 => single(number).to_ne_bytes().to_vec(),
        DType::F64 => double(number).to_ne_bytes().to_vec(),
        DType::C64 => [single(number), single(imaginary)].map(f32::to_ne_bytes).concat(),
        DType::C128 => [double(number), double(imaginary)].map(f64::to_ne_bytes).concat(),
        _ => {
            let Number::Whole(whole) = number else { panic!("no cast to {dtype}") };
            let bytes = whole.to_le_bytes()[..dtype.itemsize()].to_vec();
            if cfg!(target_endian = "big") { bytes.into_iter().rev().collect() } else { bytes }
        }
    }
}

/// Elements at which casts go wrong: limits, zeros, NaNs, ties and their neighbours.
pub fn specials(dtype: DType) -> Vec<Vec<u8>> {
    let reals: Vec<f64> =
        [0.0, 1.0, 1.5, f64::INFINITY, f64::NAN, f64::from_bits(0x7ff8_1234_5678_9abc), 1e-320, 1e300]
            .into_iter()
            .chain([7, 8, 9, 10, 11, 12, 23, 24, 25].into_iter().flat_map(|bits| {
                let unit = 2f64.powi(-bits);
                [
                    unit,
                    1.0 + unit,
                    1.0 + 3.0 * unit,
                    1.0 + unit + 2f64.powi(-45),
                    1.0 + unit - 2f64.powi(-45),
                    1.0 - unit,
                ]
            }))
            .chain([-14, -15, -24, -25, -26, -126, -133, -134, -149, -150].into_iter().flat_map(|power| {
                let small = 2f64.powi(power);
                [small, small * 1.5, small * (1.0 + 2f64.powi(-40)), small * (1.0 - 2f64.powi(-40))]
            }))
            .chain([65504.0, 65_519.999_999, 65520.0, 65536.0, f64::from(f32::MAX), 3.402_823_567_797_337e38, f64::MAX])
            .flat_map(|real| [real, -real])
            .collect();
    match dtype {
        DType::BOOL => (0..=255u8).map(|byte| vec![byte]).collect(),
        DType::F16 | DType::BF16 => {
            let quiet = |bits: &u16| {
                let (infinity, first) = if dtype == DType::F16 { (0x7c00, 0x200) } else { (0x7f80, 0x40) };
                bits & infinity != infinity || bits & (infinity >> 15 | (first * 2 - 1)) == 0 || bits & first != 0
            };
            (0..=u16::MAX).step_by(29).filter(quiet).map(|bits| bits.to_ne_bytes().to_vec()).collect()
        }
        #[allow(clippy::cast_possible_truncation, reason = "expected the nearest")]
        DType::F32 => reals.iter().map(|real| (*real as f32).to_ne_bytes().to_vec()).collect(),
        DType::F64 => reals.iter().map(|real| real.to_ne_bytes().to_vec()).collect(),
        DType::C64 => pairs(&specials(DType::F32)),
        DType::C128 => pairs(&specials(DType::F64)),
        _ => {
            let wholes = (0..65u32).flat_map(|bits| (-2..=2).map(move |off| (1i128 << bits) + off));
            let ties = (8..63).flat_map(|bits| {
                [7, 8, 11, 23, 24, 52, 53]
                    .into_iter()
                    .filter(move |below| *below < bits)
                    .flat_map(move |below| [0, 1].map(|off| (1i128 << bits) + (1i128 << (bits - below)) + off))
            });
            let all = wholes.chain(ties).flat_map(|whole| [whole, -whole]);
            all.map(|whole| write(Number::Whole(whole), dtype)).collect()
        }
    }
}

/// Joins each element with the next one.
fn pairs(parts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    parts.iter().zip(parts.iter().skip(1)).map(|(re, im)| [&re[..], &im[..]].concat()).collect()
}
