use crate::harness::*;
use fakecuda::api::{control, memory, pointer, set};
use std::ffi::c_void;

#[test]
fn fresh_and_freed_memory_hold_patterns() {
    let _session = session();
    for bytes in [1000, (3 << 20) + 5] {
        let address = allocate(bytes);
        let (first, last) = (peek(address, 1000), peek(address + bytes as u64 - 5, 5));
        assert_eq!((first, last), (vec![0xCD; 1000], vec![0xCD; 5]));
        free(address).unwrap();
        assert_eq!(peek(address, 1000), vec![0xDD; 1000]);
    }
    assert_eq!(report()["used"], serde_json::json!([0, 0]));
}

#[test]
fn addresses_are_aligned_to_256_apart_and_never_used_again() {
    let _session = session();
    let mut end = 0;
    for bytes in [1, 255, 256, 257, 4096, 1] {
        let address = allocate(bytes);
        assert_eq!(address % 512, 256);
        assert!(address > end);
        end = address + bytes as u64;
        free(address).unwrap();
    }
}

#[test]
fn nothing_and_too_much_cannot_be_allocated() {
    let _session = session();
    assert_eq!(get!(|out| memory::cuMemAlloc_v2(out, 0)), Err(INVALID_VALUE));
    assert_eq!(get!(|out| memory::cuMemAlloc_v2(out, 1 << 40)), Err(OUT_OF_MEMORY));
    assert_eq!(count("leaks"), 0);
}

#[test]
fn an_allocation_or_a_named_function_fails_on_demand() {
    let _session = session();
    cu!(control::fakecuda_fail_allocations(1)).unwrap();
    let address = allocate(8);
    assert_eq!(get!(|out| memory::cuMemHostAlloc(out, 8, 0)), Err(OUT_OF_MEMORY));
    allocate(8);
    assert_eq!(count("failed_on_demand"), 1);
    fail("cuMemsetD8", NOT_SUPPORTED);
    assert_eq!(cu!(set::cuMemsetD8_v2(address, 0, 8)), Err(NOT_SUPPORTED));
    assert_eq!(cu!(set::cuMemsetD8_v2(address, 0, 8)), Ok(()));
}

#[test]
fn free_and_total_bytes_follow_allocations() {
    let _session = session();
    let info = || {
        let (mut left, mut total) = (0, 0);
        let (left_out, total_out) = (fakecuda::entry::Out::new(&mut left), fakecuda::entry::Out::new(&mut total));
        cu!(memory::cuMemGetInfo_v2(left_out, total_out)).unwrap();
        (left, total)
    };
    let before = info();
    let address = allocate(1 << 20);
    assert_eq!(info(), (before.0 - (1 << 20), before.1));
    free(address).unwrap();
    assert_eq!(info(), before);
}

fn attribute<T: Default>(number: u32, address: u64) -> Answer<T> {
    result(|out: fakecuda::entry::Out<T>| {
        // SAFETY: each attribute is queried with its type.
        unsafe { pointer::cuPointerGetAttribute(out.cast::<c_void>(), number, address) }
    })
}

#[test]
fn addresses_are_known_with_their_kind() {
    let session = session();
    session.make_current(1);
    let device = allocate(100);
    let host = pinned(100);
    let managed = get!(|out| memory::cuMemAllocManaged(out, 100, 1)).unwrap();
    for (address, kind, is_managed) in [(device, 2, 0), (host, 1, 0), (managed, 2, 1)] {
        assert_eq!(attribute::<u32>(2, address), Ok(kind));
        assert_eq!(attribute::<u32>(8, address), Ok(is_managed));
        assert_eq!(attribute::<i32>(9, address), Ok(1));
        assert_eq!(attribute::<u64>(1, address + 99), Ok(session.contexts[1]));
        assert_eq!(attribute::<u64>(11, address + 99), Ok(address));
        assert_eq!(attribute::<u64>(1, address + 100), Err(INVALID_VALUE));
    }
    let mut base = 0;
    let base_out = fakecuda::entry::Out::new(&mut base);
    let size = get!(|out| pointer::cuMemGetAddressRange_v2(base_out, out, device + 7)).unwrap();
    assert_eq!((base, size), (device, 100));
    free(device).unwrap();
    assert_eq!(attribute::<u32>(2, device), Err(INVALID_VALUE));
    free(managed).unwrap();
}

#[test]
fn registered_memory_is_known_until_it_is_not() {
    let _session = session();
    let host = [0u8; 64];
    let address = host.as_ptr() as u64;
    assert_eq!(attribute::<u32>(2, address), Err(INVALID_VALUE));
    cu!(memory::cuMemHostRegister_v2(address, 64, 0)).unwrap();
    assert_eq!(cu!(memory::cuMemHostRegister_v2(address + 8, 8, 0)), Err(712));
    assert_eq!(attribute::<u32>(2, address), Ok(1));
    cu!(memory::cuMemHostUnregister(address)).unwrap();
    assert_eq!(cu!(memory::cuMemHostUnregister(address)), Err(713));
}
