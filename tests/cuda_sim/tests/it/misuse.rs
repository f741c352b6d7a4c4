use crate::harness::*;
use fakecuda::api::{device, memory};

#[test]
fn bad_frees_and_uses_of_freed_memory_are_counted() {
    let _session = session();
    let (kept, address) = (allocate(64), allocate(64));
    assert_eq!(free(address + 8), Err(INVALID_VALUE));
    assert_eq!(cu!(memory::cuMemFreeHost(address)), Err(INVALID_VALUE));
    assert_eq!(count("bad_frees"), 2);
    free(address).unwrap();
    assert_eq!(free(address), Err(INVALID_VALUE));
    assert_eq!((count("double_frees"), count("frees")), (1, 1));
    assert_eq!(move_bytes(kept, address, 64, NULL), Err(INVALID_VALUE));
    assert_eq!(count("use_after_free"), 1);
    fill(kept, 0, 64, NULL).unwrap();
    assert_eq!(count("use_after_free"), 1);
}

#[test]
fn one_byte_out_of_bounds_is_counted() {
    let _session = session();
    let address = allocate(64);
    fill(address, 0, 64, NULL).unwrap();
    assert_eq!(fill(address, 0, 65, NULL), Err(INVALID_VALUE));
    assert_eq!(fill(address - 1, 0, 1, NULL), Err(INVALID_VALUE));
    assert_eq!(count("out_of_bounds"), 2);
}

#[test]
fn leaks_are_counted_until_the_context_ends() {
    let _session = session();
    allocate(64);
    pinned(64);
    assert_eq!(count("leaks"), 2);
    for index in 0..2 {
        cu!(device::cuDevicePrimaryCtxRelease_v2(index)).unwrap();
    }
    assert_eq!(count("lost_with_context"), 2);
    assert_eq!(count("leaks"), 0);
}

#[test]
fn memory_queued_to_be_freed_cannot_be_used_nor_freed() {
    let _session = session();
    let stream = make_stream();
    let address = get!(|out| memory::cuMemAllocAsync(out, 64, stream)).unwrap();
    cu!(memory::cuMemFreeAsync(address, stream)).unwrap();
    assert_eq!((count("leaks"), count("leaving")), (0, 1));
    assert_eq!(fill(address, 0, 64, stream), Err(INVALID_VALUE));
    assert_eq!(cu!(memory::cuMemFreeAsync(address, stream)), Err(INVALID_VALUE));
    assert_eq!((count("use_after_free"), count("double_frees")), (1, 1));
    synchronize(stream).unwrap();
    assert_eq!(count("leaving"), 0);
}

#[test]
fn pageable_memory_that_is_unmapped_before_a_copy_runs_is_counted() {
    let _session = session();
    let bytes = 1 << 16;
    // SAFETY: a new mapping.
    let host = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    let (address, stream) = (allocate(bytes), make_stream());
    move_bytes(address, host as u64, bytes, stream).unwrap();
    // SAFETY: the mapping from above, which only the queued copy uses.
    unsafe { libc::munmap(host, bytes) };
    synchronize(stream).unwrap();
    assert_eq!(count("host_memory_gone"), 1);
}

#[test]
fn handles_that_are_none_are_counted_on_request() {
    let _session = session();
    count_dead_handles();
    assert_eq!(synchronize(0x1234), Err(INVALID_HANDLE));
    assert_eq!(wait(NULL, 0x1234), Err(INVALID_HANDLE));
    assert_eq!(count("bad_handles"), 2);
}
