//! What each framework accepts without a copy: one row per rule, and the layouts that JAX calls compact.

use std::ptr::without_provenance_mut;

use dlfield::testing::{Extents, is_compact};
use dlfield::{DType, Descriptor, Device, Support, Target, Verdict, preflight};
use proptest::prelude::*;

use crate::naive::{offsets, size};
use crate::strategies::{config, permutation};

const BASE: usize = 0x10_0000;

fn at(address: usize, device: &str, readonly: bool, shape: &[i64], strides: &[i64]) -> Descriptor {
    let (shape, strides) = (Extents::from_slice(shape), Extents::from_slice(strides));
    let device: Device = device.parse().unwrap();
    Descriptor::new(without_provenance_mut(address), device, DType::F64, readonly, &shape, &strides).unwrap()
}

fn verdict(field: &Descriptor, target: Target, write: bool) -> Verdict {
    preflight(field, target, write, Support::Shares).verdict
}

/// Returns the verdicts for NumPy, PyTorch, JAX and CuPy, as z, c and i.
fn verdicts(field: &Descriptor, write: bool) -> String {
    Target::ALL.iter().map(|target| verdict(field, *target, write).to_string()[..1].to_owned()).collect()
}

/// Name, address, device, read-only, shape, strides; the verdicts, and those for a writable array.
type Row = (&'static str, usize, &'static str, bool, &'static [i64], &'static [i64], &'static str, &'static str);

#[test]
fn each_rule_has_its_row() {
    let rows: [Row; 19] = [
        ("C order", BASE, "cpu", false, &[3, 4], &[4, 1], "zzzc", "zzic"),
        ("F order", BASE, "cpu", false, &[3, 4], &[1, 3], "zzzc", "zzic"),
        ("padded", BASE, "cpu", false, &[3, 4], &[8, 1], "zzcc", "zzic"),
        ("every other", BASE, "cpu", false, &[4], &[2], "zzcc", "zzic"),
        ("broadcast", BASE, "cpu", false, &[3, 4], &[0, 1], "zzcc", "zzic"),
        ("backwards", BASE, "cpu", false, &[3, 4], &[-4, 1], "zccc", "zcic"),
        ("one row backwards", BASE, "cpu", false, &[1, 4], &[-4, 1], "zzzc", "zzic"),
        ("nothing backwards", BASE, "cpu", false, &[0, 4], &[-4, 1], "zzzc", "zzic"),
        ("one element", BASE, "cpu", false, &[], &[], "zzzc", "zzic"),
        ("16 bytes off", BASE + 16, "cpu", false, &[3, 4], &[4, 1], "zzcc", "zzic"),
        ("nothing, off", BASE + 8, "cpu", false, &[0], &[1], "zzzc", "zzic"),
        ("read-only", BASE, "cpu", true, &[3, 4], &[4, 1], "zczc", "ccic"),
        ("read-only F order", BASE, "cpu", true, &[3, 4], &[1, 3], "zccc", "ccic"),
        ("read-only nothing", BASE, "cpu", true, &[0, 4], &[1, 3], "zzzc", "czic"),
        ("on the GPU", BASE, "cuda:1", false, &[3, 4], &[-8, 1], "iccz", "iciz"),
        ("read-only on the GPU", BASE, "cuda:0", true, &[3, 4], &[4, 1], "iccc", "icic"),
        ("managed", BASE, "cuda_managed", false, &[3], &[1], "zzzz", "zziz"),
        ("pinned", BASE, "cuda_host", false, &[3], &[1], "zzzc", "zzic"),
        ("another GPU", BASE, "rocm:0", false, &[3], &[1], "iiii", "iiii"),
    ];
    for (name, address, device, readonly, shape, strides, read, write) in rows {
        let field = at(address, device, readonly, shape, strides);
        assert_eq!(verdicts(&field, false), read, "{name}");
        assert_eq!(verdicts(&field, true), write, "{name}, written");
    }
}

#[test]
fn what_is_not_shared_has_a_reason_and_a_fix() {
    let field = at(BASE, "cpu", true, &[3, 4], &[-8, 1]);
    for target in Target::ALL {
        for support in [Support::Shares, Support::Copies, Support::Lacks] {
            for write in [false, true] {
                let found = preflight(&field, target, write, support);
                assert_eq!(found.is_zero_copy(), found.reason.is_empty());
                assert_eq!(found.is_zero_copy(), found.fix.is_empty());
                assert!(found.to_string().starts_with(&found.verdict.to_string()));
                let warned = found.reason.contains("does not reach obj");
                assert_eq!(warned, write && found.verdict == Verdict::Copy, "{found}");
            }
        }
    }
}

#[test]
fn an_element_type_can_only_make_it_worse() {
    let (shared, padded) = (at(BASE, "cpu", false, &[4], &[1]), at(BASE, "cpu", false, &[4], &[2]));
    let judge = |field, support| preflight(field, Target::Jax, false, support).verdict;
    assert_eq!(judge(&shared, Support::Copies), Verdict::Copy);
    assert_eq!(judge(&padded, Support::Copies), Verdict::Copy);
    assert_eq!(judge(&shared, Support::Lacks), Verdict::Impossible);
}

#[test]
fn messages_say_what_was_found() {
    let field = at(BASE + 8, "cpu", true, &[4], &[-1]);
    let reason = |target| preflight(&field, target, false, Support::Shares).reason;
    assert_eq!(reason(Target::Jax), "JAX takes compact strides only, found (-8,) bytes for shape (4,)");
    assert_eq!(reason(Target::Torch), "the memory is read-only and PyTorch would write into it");
    let aligned = preflight(&at(BASE + 8, "cpu", false, &[4], &[1]), Target::Jax, false, Support::Shares);
    let expected = "copy: JAX takes addresses that are a multiple of 64 bytes only, found 0x100008; pass copy=None for \
                    a copy, or a whole field allocated with backend='jax'";
    assert_eq!(aligned.to_string(), expected);
}

proptest! {
    #![proptest_config(config(1))]

    /// Compact strides fill one block of memory: every element has its own place, and no place is left over.
    #[test]
    fn compact_strides_fill_a_block(
        shape in proptest::collection::vec(0i64..4, 0..4),
        order in permutation(4),
        steps in proptest::collection::vec(-3i64..9, 4),
        honest in any::<bool>(),
    ) {
        let mut strides: Vec<i64> = steps[..shape.len()].to_vec();
        if honest {
            let mut next = 1;
            for axis in order.iter().map(|axis| size(*axis)).filter(|axis| *axis < shape.len()) {
                if shape[axis] != 1 {
                    strides[axis] = next;
                    next *= shape[axis];
                }
            }
        }
        let places = offsets(&shape, &strides, 1);
        let filled = places.iter().copied().eq(0..i128::try_from(places.len()).unwrap());
        prop_assert_eq!(is_compact(&shape, &strides), filled);
    }
}
