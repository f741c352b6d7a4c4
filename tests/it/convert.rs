//! Copies between element types against a cast of one element at a time, with every byte between the elements watched.

#![allow(unsafe_code, reason = "fields are laid over bytes that the test owns")]

use dlfield::{DType, Descriptor, Device, Owner, Spec, Tensor, can_cast};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::casts::{cast, specials};
use crate::naive::{indices, offset, size, wide};
use crate::strategies::config;

/// Element types that become others.
const NUMBERS: [DType; 15] = [
    DType::BOOL,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
];

fn pairs() -> Vec<(DType, DType)> {
    let all = NUMBERS.iter().flat_map(|from| NUMBERS.iter().map(move |to| (*from, *to)));
    all.filter(|(from, to)| can_cast(*from, *to)).collect()
}

/// Where the elements of a field lie in bytes that hold others too.
#[derive(Clone, Debug)]
struct Field {
    dtype: DType,
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// Bytes before element 0.
    start: usize,
    bytes: usize,
}

/// How a field lies: the dimensions in the order of their strides, elements left out after each, and which run backwards
/// or stand still.
#[derive(Clone, Debug)]
struct Placing {
    order: Vec<usize>,
    gaps: Vec<i64>,
    backwards: Vec<bool>,
    still: Vec<bool>,
    start: usize,
}

impl Placing {
    fn field(&self, shape: &[i64], dtype: DType) -> Field {
        let (mut strides, mut lowest, mut next) = (vec![0; shape.len()], 0, 1);
        for axis in self.order.iter().copied().filter(|axis| !self.still[*axis]) {
            let stride = next + self.gaps[axis];
            let reach = stride * (shape[axis] - 1).max(0);
            next += reach;
            strides[axis] = if self.backwards[axis] { -stride } else { stride };
            lowest += if self.backwards[axis] { reach } else { 0 };
        }
        let start = self.start + size(lowest) * dtype.itemsize();
        let bytes = self.start + size(next) * dtype.itemsize() + 16;
        Field { dtype, shape: shape.to_vec(), strides, start, bytes }
    }
}

impl Field {
    fn on(&self, bytes: &mut [u8]) -> Tensor {
        assert_eq!(bytes.len(), self.bytes);
        let ptr = bytes[self.start..].as_mut_ptr();
        let field = Descriptor::new(ptr, Device::CPU, self.dtype, false, &self.shape, &self.strides).unwrap();
        // SAFETY: the field lies in the bytes, which stay for as long as the test uses the tensor.
        unsafe { Tensor::from_parts(field, Owner::foreign(())) }
    }

    fn at(&self, index: &[i64]) -> std::ops::Range<usize> {
        let start = size(wide(self.start) + offset(index, &self.strides, self.dtype.itemsize()));
        start..start + self.dtype.itemsize()
    }
}

/// Converts one field into another and holds all bytes of the destination against the oracle's.
fn check(from: &Field, to: &Field, source: &mut [u8]) {
    let mut found: Vec<u8> = (0..251u8).cycle().take(to.bytes).collect();
    let mut expected = found.clone();
    for index in indices(&to.shape) {
        expected[to.at(&index)].copy_from_slice(&cast(&source[from.at(&index)], from.dtype, to.dtype));
    }
    // SAFETY: both fields lie in bytes of their own that nobody else uses.
    unsafe { to.on(&mut found).assign(&from.on(source)) }.unwrap();
    let differs = indices(&to.shape).into_iter().find(|index| found[to.at(index)] != expected[to.at(index)]);
    if let Some(index) = differs {
        let (was, is, should) = (&source[from.at(&index)], &found[to.at(&index)], &expected[to.at(&index)]);
        panic!("{} to {} at {index:?}: {was:02x?} became {is:02x?}, not {should:02x?}", from.dtype, to.dtype);
    }
    assert!(found == expected, "bytes between the elements were written: {from:?} to {to:?}");
}

/// Elements of a type, cycling through the special ones with some of the given bytes between them.
fn elements(dtype: DType, bytes: usize, raw: &[u8]) -> Vec<u8> {
    let specials = specials(dtype);
    let mut random = raw.iter().copied().cycle();
    let mut all = Vec::with_capacity(bytes + 32);
    for nth in 0.. {
        if all.len() >= bytes {
            break;
        }
        match (random.next(), specials.get(nth % (2 * specials.len()))) {
            (Some(pick), Some(special)) if pick % 4 > 0 => all.extend_from_slice(special),
            _ => all.extend(random.by_ref().take(dtype.itemsize())),
        }
    }
    all.truncate(bytes);
    all
}

fn placing(ndim: usize, may_stand_still: bool) -> impl Strategy<Value = Placing> {
    let order = Just((0..ndim).collect::<Vec<_>>()).prop_shuffle();
    let gaps = vec(prop_oneof![2 => Just(0i64), 1 => 0i64..3], ndim);
    let still = vec(if may_stand_still { prop::bool::weighted(0.15).boxed() } else { Just(false).boxed() }, ndim);
    let start = prop_oneof![Just(0usize), Just(16), 0usize..16];
    (order, gaps, vec(prop::bool::weighted(0.2), ndim), still, start)
        .prop_map(|(order, gaps, backwards, still, start)| Placing { order, gaps, backwards, still, start })
}

fn shape() -> impl Strategy<Value = Vec<i64>> {
    prop_oneof![
        vec(prop_oneof![1 => 0i64..2, 9 => 1i64..7], 0..5),
        vec(1i64..50, 2),
        // Longer than a piece of any kind.
        (0i64..9000).prop_map(|extent| vec![extent]),
        (1i64..300, 1i64..20, any::<bool>()).prop_map(|(a, b, turned)| if turned { vec![a, b] } else { vec![b, a] }),
    ]
}

fn case() -> impl Strategy<Value = (Field, Field, Vec<u8>)> {
    (shape(), select(pairs()), vec(any::<u8>(), 61)).prop_flat_map(|(shape, (from, to), raw)| {
        let ndim = shape.len();
        (placing(ndim, true), placing(ndim, false)).prop_map(move |(source, destination)| {
            (source.field(&shape, from), destination.field(&shape, to), raw.clone())
        })
    })
}

proptest! {
    #![proptest_config(config(4))]

    #[test]
    fn any_field_becomes_any_other((from, to, raw) in case()) {
        // Elements lie where the specials are whole.
        let mut source = vec![0; from.start % from.dtype.itemsize()];
        source.extend(elements(from.dtype, from.bytes - source.len(), &raw));
        check(&from, &to, &mut source);
    }
}

/// Every pair with all special values, in rows whose elements follow each other, and in others.
#[test]
fn every_pair_and_every_special_value() {
    for (from, to) in pairs() {
        let specials = specials(from);
        let count = i64::try_from(specials.len()).unwrap();
        for (gap, still) in [(0, false), (2, false), (0, true)] {
            let placing = |gap, still, start| Placing {
                order: vec![1, 0],
                gaps: vec![0, gap],
                backwards: vec![false; 2],
                still: vec![false, still],
                start,
            };
            let shape = if still { [count, 3] } else { [1, count] };
            let (source, target) =
                (placing(gap, still, 0).field(&shape, from), placing(gap, false, 5).field(&shape, to));
            let mut bytes = vec![0; source.bytes];
            for (nth, special) in (0..).zip(&specials) {
                bytes[source.at(&if still { [nth, 0] } else { [0, nth] })].copy_from_slice(special);
            }
            check(&source, &target, &mut bytes);
        }
    }
}

/// Large fields go past the caches, and are divided among threads.
#[test]
fn large_fields_are_converted_as_small_ones_are() {
    let raw: Vec<u8> = (0..=250u8).map(|byte| byte.wrapping_mul(97)).collect();
    let run = |order: [usize; 2], start| Placing {
        order: order.to_vec(),
        gaps: vec![0; 2],
        backwards: vec![false; 2],
        still: vec![false; 2],
        start,
    };
    for (from, to, order) in [
        (DType::F64, DType::F32, [1, 0]),
        (DType::F32, DType::F64, [0, 1]),
        (DType::I64, DType::C64, [1, 0]),
        (DType::F16, DType::C128, [0, 1]),
    ] {
        let rows = i64::try_from((17 << 20) / 1021 / to.itemsize()).unwrap();
        let source = run([1, 0], 0).field(&[rows, 1021], from);
        let target = run(order, to.itemsize()).field(&[rows, 1021], to);
        check(&source, &target, &mut elements(from, source.bytes, &raw));
    }
}

#[test]
fn a_copy_has_the_element_type_that_is_asked_for() {
    let source = Tensor::full(&Spec::new(&[3, 4], DType::I16), &(-7i16).to_ne_bytes()).unwrap();
    let copy = Tensor::copy_of(&Spec::new(&[3, 4], DType::F16), &source).unwrap();
    assert_eq!(copy.descriptor().dtype(), DType::F16);
    assert!(crate::elements::all(&copy).iter().all(|element| *element == 0xc700u16.to_ne_bytes()));
}
