//! Accesses that crash with a GPU crash with the double; each runs in its own process.

use crate::harness::{allocate, cu, get, pinned, rerun, session};
use fakecuda::api::memory;
use std::os::unix::process::ExitStatusExt;

const INSIDE: &str = "FAKECUDA_TEST_CRASH";
const SEGMENTATION_FAULT: Option<i32> = Some(11);

fn read(address: u64) -> u8 {
    // SAFETY: none; this ends the process.
    unsafe { (address as *const u8).read_volatile() }
}

/// What the host reads, and the signal that ends it.
type Access = (&'static str, Option<i32>, fn());

const ACCESSES: [Access; 3] = [
    ("memory of a device", SEGMENTATION_FAULT, || {
        read(allocate(64));
    }),
    ("pinned memory that was freed", SEGMENTATION_FAULT, || {
        let address = pinned(64);
        cu!(memory::cuMemFreeHost(address)).unwrap();
        read(address);
    }),
    ("memory of its own kinds", None, || {
        let managed = get!(|out| memory::cuMemAllocManaged(out, 64, 1)).unwrap();
        assert_eq!((read(managed), read(pinned(64))), (0xCD, 0xCD));
    }),
];

#[test]
fn the_host_reads_no_memory_but_its_own() {
    if let Ok(name) = std::env::var(INSIDE) {
        let _session = session();
        let (_, _, access) = ACCESSES.iter().find(|(known, ..)| *known == name).unwrap();
        return access();
    }
    for (name, signal, _) in ACCESSES {
        let ended = rerun("crashes::the_host_reads_no_memory_but_its_own", &[(INSIDE, name)]).status;
        assert_eq!((ended.signal(), ended.success()), (signal, signal.is_none()), "{name}");
    }
}
