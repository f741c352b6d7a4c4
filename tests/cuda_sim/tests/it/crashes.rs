//! Accesses that crash with a GPU crash with the double; each runs in its own process.

use crate::harness::{allocate, cu, free, get, pinned, session};
use fakecuda::api::memory;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const INSIDE: &str = "FAKECUDA_TEST_CRASH";
const SEGMENTATION_FAULT: i32 = 11;

/// Runs one test of this file again in a new process, and returns the signal that ended it.
fn signal_of(test: &str) -> Option<i32> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("crashes::{test}"), "--test-threads=1"]).env(INSIDE, "1");
    command.output().unwrap().status.signal()
}

fn inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

fn read(address: u64) -> u8 {
    // SAFETY: none; this ends the process.
    unsafe { (address as *const u8).read_volatile() }
}

#[test]
fn host_reads_memory_of_a_device() {
    if inside() {
        let _session = session();
        read(allocate(64));
        return;
    }
    assert_eq!(signal_of("host_reads_memory_of_a_device"), Some(SEGMENTATION_FAULT));
}

#[test]
fn host_reads_pinned_memory_that_was_freed() {
    if inside() {
        let _session = session();
        let address = pinned(64);
        cu!(memory::cuMemFreeHost(address)).unwrap();
        read(address);
        return;
    }
    assert_eq!(signal_of("host_reads_pinned_memory_that_was_freed"), Some(SEGMENTATION_FAULT));
}

#[test]
fn host_reads_memory_of_its_own_kinds() {
    if inside() {
        let _session = session();
        let managed = get!(|out| memory::cuMemAllocManaged(out, 64, 1)).unwrap();
        assert_eq!(read(managed), 0xCD);
        assert_eq!(read(pinned(64)), 0xCD);
        free(managed).unwrap();
        return;
    }
    assert_eq!(signal_of("host_reads_memory_of_its_own_kinds"), None);
}
