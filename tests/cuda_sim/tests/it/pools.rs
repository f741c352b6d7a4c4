use crate::harness::*;
use fakecuda::api::{device, memory, pool};
use fakecuda::entry::{In, Out};

const THRESHOLD: i32 = 4;
const RESERVED: i32 = 5;
const USED: i32 = 7;
const USED_HIGH: i32 = 8;

fn default_pool() -> u64 {
    get!(|out| pool::cuDeviceGetDefaultMemPool(out, 0)).unwrap()
}

fn attribute(pool: u64, number: i32) -> u64 {
    result(|out: Out<u64>| {
        // SAFETY: these attributes have 64 bits.
        unsafe { pool::cuMemPoolGetAttribute(pool, number, out.cast()) }
    })
    .unwrap()
}

fn set_threshold(pool: u64, bytes: u64) {
    let value = In::new((&raw const bytes).cast());
    cu!(pool::cuMemPoolSetAttribute(pool, THRESHOLD, value)).unwrap();
}

#[test]
fn memory_is_in_use_until_its_stream_frees_it_and_kept_up_to_the_threshold() {
    let _session = session();
    let (pool, stream) = (default_pool(), make_stream());
    for kept in [0, 64] {
        set_threshold(pool, kept);
        let address = get!(|out| memory::cuMemAllocAsync(out, 100, stream)).unwrap();
        assert_eq!(attribute(pool, USED), 100);
        cu!(memory::cuMemFreeAsync(address, stream)).unwrap();
        assert_eq!(attribute(pool, USED), 100);
        synchronize(stream).unwrap();
        assert_eq!((attribute(pool, USED), attribute(pool, RESERVED)), (0, kept));
    }
    assert!(attribute(pool, USED_HIGH) >= 100);
    cu!(pool::cuMemPoolTrimTo(pool, 0)).unwrap();
    assert_eq!(attribute(pool, RESERVED), 0);
    set_threshold(pool, 0);
}

#[test]
fn pools_of_ones_own_outlive_their_handle() {
    let _session = session();
    let stream = make_stream();
    // allocation type, handle types, location type, device; then 72 bytes that are zero
    let mut properties = [0i32; 22];
    (properties[0], properties[2]) = (1, 1);
    let made = get!(|out| pool::cuMemPoolCreate(out, In::new(properties.as_ptr()).cast())).unwrap();
    let address = get!(|out| memory::cuMemAllocFromPoolAsync(out, 8, made, stream)).unwrap();
    assert_eq!((attribute(made, USED), attribute(default_pool(), USED)), (8, 0));
    cu!(pool::cuMemPoolDestroy(made)).unwrap();
    assert_eq!(get!(|out| memory::cuMemAllocFromPoolAsync(out, 8, made, stream)), Err(INVALID_VALUE));
    assert_eq!(count("live_pools"), 1);
    cu!(memory::cuMemFreeAsync(address, stream)).unwrap();
    synchronize(stream).unwrap();
    assert_eq!(count("live_pools"), 0);
}

#[test]
fn a_driver_may_have_no_pools() {
    let _session = session();
    let stream = make_stream();
    cu!(fakecuda::api::control::fakecuda_set_pools(false)).unwrap();
    assert_eq!(get!(|out| device::cuDeviceGetAttribute(out, 115, 0)), Ok(0));
    assert_eq!(get!(|out| memory::cuMemAllocAsync(out, 8, stream)), Err(NOT_SUPPORTED));
    assert_eq!(get!(|out| pool::cuDeviceGetDefaultMemPool(out, 0)), Err(NOT_SUPPORTED));
}
