//! Memory between processes. The other process runs the same test again.

use crate::harness::*;
use fakecuda::api::{ipc, memory};
use fakecuda::entry::Out;
use fakecuda::ipc::MemHandle;

/// Of the other process: what it does with a handle.
const ROLE: &str = "FAKECUDA_TEST_IPC";
const MAP_FAILED: Code = 205;

fn export(address: u64) -> Answer<MemHandle> {
    get!(|out| ipc::cuIpcGetMemHandle(out, address))
}

fn open(handle: MemHandle) -> Answer<u64> {
    get!(|out| ipc::cuIpcOpenMemHandle_v2(out, handle, 1))
}

fn close(address: u64) -> Answer {
    cu!(ipc::cuIpcCloseMemHandle(address))
}

/// Runs a test of this file in a new process, with a handle.
fn elsewhere(test: &str, handle: MemHandle) {
    let text: String = handle.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let output = rerun(&format!("ipc::{test}"), &[(ROLE, &text)]);
    assert!(output.status.success(), "{output:?}");
}

/// Returns the handle that another process has given to this one.
fn given() -> Option<MemHandle> {
    let text = std::env::var(ROLE).ok()?;
    let mut handle = MemHandle::default();
    for (index, byte) in handle.0.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).unwrap();
    }
    Some(handle)
}

#[test]
fn processes_share_memory() {
    let _session = session();
    if let Some(handle) = given() {
        let address = open(handle).unwrap();
        assert_eq!(open(handle), Ok(address));
        assert_eq!((address % 512, count("live_opened"), count("leaks")), (256, 1, 0));
        assert_eq!(peek(address, 3), [7; 3]);
        fill(address + 1, 9, 1, NULL).unwrap();
        synchronize(NULL).unwrap();
        // What lies behind it is not there.
        assert_eq!(fill(address + 5000, 0, 1, NULL), Err(INVALID_VALUE));
        close(address).unwrap();
        assert_eq!(count("live_opened"), 1);
        close(address).unwrap();
        assert_eq!(count("live_opened"), 0);
        assert_eq!(fill(address, 0, 1, NULL), Err(INVALID_VALUE));
        return;
    }
    let (address, other) = (allocate(5000), allocate(16));
    poke(other, &[1; 16]);
    poke(address, &[7; 3]);
    let handle = export(address).unwrap();
    assert_eq!(export(address), Ok(handle));
    elsewhere("processes_share_memory", handle);
    assert_eq!((peek(address, 3), peek(other, 16)), (vec![7, 9, 7], vec![1; 16]));
}

#[test]
fn memory_of_pools_has_no_handle() {
    let _session = session();
    let address = get!(|out| memory::cuMemAllocAsync(out, 64, NULL)).unwrap();
    assert_eq!(export(address), Err(INVALID_VALUE));
    cu!(memory::cuMemFreeAsync(address, NULL)).unwrap();
    synchronize(NULL).unwrap();
    let address = allocate(64);
    assert_eq!(export(address + 1), Err(INVALID_VALUE));
    free(address).unwrap();
    assert_eq!(export(address), Err(INVALID_VALUE));
    let host = pinned(64);
    assert_eq!(export(host), Err(INVALID_VALUE));
}

#[test]
fn wrong_handles_and_those_of_this_process_are_refused() {
    let _session = session();
    assert_eq!(open(MemHandle::default()), Err(INVALID_VALUE));
    assert_eq!(open(MemHandle([1; 64])), Err(INVALID_VALUE));
    let mut address = 0;
    let handle = MemHandle::default();
    assert_eq!(cu!(ipc::cuIpcOpenMemHandle_v2(Out::new(&mut address), handle, 0)), Err(INVALID_VALUE));
    assert_eq!(open(export(allocate(64)).unwrap()), Err(INVALID_CONTEXT));
    assert_eq!(count("opened_at_home"), 1);
}

#[test]
fn freed_memory_is_not_opened() {
    let _session = session();
    if let Some(handle) = given() {
        assert_eq!(open(handle), Err(MAP_FAILED));
        return;
    }
    let address = allocate(64);
    let handle = export(address).unwrap();
    free(address).unwrap();
    elsewhere("freed_memory_is_not_opened", handle);
}

#[test]
fn only_opened_memory_is_closed_and_never_freed() {
    let _session = session();
    if let Some(handle) = given() {
        let address = open(handle).unwrap();
        assert_eq!((free(address), count("bad_frees")), (Err(INVALID_VALUE), 1));
        assert_eq!(export(address), Err(INVALID_VALUE));
        close(address).unwrap();
        assert_eq!((close(address), count("bad_closes")), (Err(INVALID_VALUE), 1));
        return;
    }
    let address = allocate(64);
    assert_eq!((close(address), count("bad_closes")), (Err(INVALID_VALUE), 1));
    let handle = export(address).unwrap();
    elsewhere("only_opened_memory_is_closed_and_never_freed", handle);
    free(address).unwrap();
}

#[test]
fn closing_does_not_wait_for_work() {
    let _session = session();
    if let Some(handle) = given() {
        let (address, stream) = (open(handle).unwrap(), make_stream());
        fill(address, 0, 64, stream).unwrap();
        close(address).unwrap();
        assert_eq!(count("races"), 1);
        return;
    }
    let address = allocate(64);
    elsewhere("closing_does_not_wait_for_work", export(address).unwrap());
}
