use crate::harness::*;
use fakecuda::api::{capture, context, device, event, memory, module, pointer as pointer_api, stream};
use fakecuda::entry::In;
use std::ffi::{CString, c_void};

const PTX: &str = ".version 7.0\n.target sm_52\n.visible .entry dlfield_copy()\n.visible .entry dlfield_transpose()\n";

/// `Grid` in kernels.cu.
#[repr(C)]
#[derive(Default)]
struct Grid {
    shape: [i64; 7],
    to: [i64; 7],
    from: [i64; 7],
    /// Elements, and their distances on both sides.
    right: [i64; 3],
    down: [i64; 3],
    ndim: u32,
    across: u32,
    count: u32,
    /// Bytes of an element on both sides, twice.
    sizes: [[u32; 2]; 2],
    kinds: [u32; 2],
}

/// Elements of so many bytes in rows, for blocks of 32 threads: their numbers, and their distances on both sides.
fn grid(size: u32, right: [i64; 3], down: [i64; 3]) -> Grid {
    let mut grid = Grid { right, down: [1, 0, 0], ndim: 1, sizes: [[size; 2]; 2], ..Grid::default() };
    [grid.shape[0], grid.to[0], grid.from[0]] = down;
    grid.across = (right[0] as u32).div_ceil(128);
    grid.count = grid.across * down[0] as u32;
    grid
}

/// Elements without gaps.
fn run(size: u32, count: i64) -> Grid {
    grid(size, [count, size.into(), 0], [1, 0, 0])
}

fn load(ptx: &str) -> Answer<u64> {
    let image = CString::new(ptx).unwrap();
    get!(|out| module::cuModuleLoadData(out, In::new(image.as_ptr().cast())))
}

fn function(module: u64, name: &str) -> Answer<u64> {
    let name = CString::new(name).unwrap();
    get!(|out| module::cuModuleGetFunction(out, module, In::new(name.as_ptr())))
}

fn launch(name: &str, block: u32, stream: u64, parameters: &[*const c_void]) -> Answer {
    let function = function(load(PTX).unwrap(), name).unwrap();
    let parameters = In::new(parameters.as_ptr()).cast();
    cu!(module::cuLaunchKernel(function, 1, 1, 1, block, 1, 1, 0, stream, parameters, In::new(std::ptr::null())))
}

/// Fills elements with the first bytes of a value.
fn fill_by_kernel(to: u64, over: &Grid, value: [u8; 16], stream: u64) -> Answer {
    launch("dlfield_copy", 32, stream, &[pointer(&to), pointer(&0u64), pointer(over), pointer(&value)])
}

fn pointer<T>(value: &T) -> *const c_void {
    (value as *const T).cast()
}

#[test]
fn fills_run_in_the_order_of_their_stream() {
    let _session = session();
    let (address, stream) = (allocate(48), make_stream());
    fill(address, 0, 48, stream).unwrap();
    fill_by_kernel(address, &run(8, 2), 0x0102u128.to_le_bytes(), stream).unwrap();
    fill_by_kernel(address + 16, &run(16, 1), [7; 16], stream).unwrap();
    assert_eq!(peek(address, 48), [0xCD; 48]);
    synchronize(stream).unwrap();
    let expected = [[2, 1, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0], [7; 16], [0; 16]].concat();
    assert_eq!(peek(address, 48), expected);
}

#[test]
fn a_copy_turns_its_axes() {
    let _session = session();
    let (from, to, stream) = (allocate(24), allocate(24), make_stream());
    let numbers: Vec<u8> = (0..6u32).flat_map(u32::to_ne_bytes).collect();
    poke(from, &numbers);
    let turned = grid(4, [3, 8, 4], [2, 4, 12]);
    let value = [0u8; 16];
    launch("dlfield_copy", 32, stream, &[pointer(&to), pointer(&from), pointer(&turned), pointer(&value)]).unwrap();
    synchronize(stream).unwrap();
    let expected: Vec<u8> = [0u32, 3, 1, 4, 2, 5].into_iter().flat_map(u32::to_ne_bytes).collect();
    assert_eq!(peek(to, 24), expected);
    assert_eq!(count("kernels"), 1);
}

#[test]
fn a_strided_fill_leaves_what_is_between() {
    let _session = session();
    let (address, stream) = (allocate(16), make_stream());
    let value = [1u8, 2, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9];
    fill_by_kernel(address + 8, &grid(2, [3, -4, 0], [1, 0, 0]), value, stream).unwrap();
    synchronize(stream).unwrap();
    let (set, left) = ([1, 2], [0xCD; 2]);
    assert_eq!(peek(address, 16), [set, left, set, left, set, left, left, left].concat());
}

#[test]
fn kernels_are_in_modules() {
    let _session = session();
    assert_eq!(load("no code"), Err(200));
    let module = load(PTX).unwrap();
    assert!(function(module, "dlfield_copy").is_ok());
    assert_eq!(function(module, "dlfield_transpose_4"), Err(NOT_FOUND));
    assert_eq!(function(module, "another"), Err(NOT_FOUND));
    cu!(module::cuModuleUnload(module)).unwrap();
    assert_eq!(function(module, "dlfield_copy"), Err(INVALID_HANDLE));
}

#[test]
fn blocks_have_at_most_1024_threads() {
    let _session = session();
    let address = allocate(8);
    let (one, value) = (run(8, 1), [0u8; 16]);
    let parameters = [pointer(&address), pointer(&0u64), pointer(&one), pointer(&value)];
    assert_eq!(launch("dlfield_copy", 1025, NULL, &parameters), Err(INVALID_VALUE));
    assert_eq!(launch("dlfield_copy", 0, NULL, &parameters), Err(INVALID_VALUE));
}

#[test]
fn a_kernel_that_goes_wrong_fails_what_comes_after_it() {
    let _session = session();
    let (address, stream) = (allocate(8), make_stream());
    fail_a_kernel(address, stream);
    assert_eq!(count("out_of_bounds"), 1);
    assert_eq!(synchronize(stream), Err(ILLEGAL_ADDRESS));
    assert_eq!(cu!(context::cuCtxSynchronize()), Err(ILLEGAL_ADDRESS));
    cu!(fakecuda::api::control::fakecuda_reset()).unwrap();
    assert_eq!(synchronize(stream), Ok(()));
    assert_eq!(peek(address, 8), [0xCD; 8]);
}

/// Makes a kernel fail, as one does that writes past its memory.
fn fail_a_kernel(address: u64, stream: u64) {
    fill_by_kernel(address, &run(8, 2), [1; 16], stream).unwrap();
}

#[test]
fn every_call_in_the_context_of_a_failed_kernel_returns_its_error() {
    let session = session();
    let (address, stream, event) = (allocate(8), make_stream(), make_event());
    let (other, unused, module) = (make_event(), make_stream(), load(PTX).unwrap());
    fail_a_kernel(address, stream);
    let mut kind = 0u32;
    let kind = fakecuda::entry::Out::new(&mut kind).cast();
    let calls = [
        get!(|out| stream::cuStreamGetCtx(stream, out)).map(drop),
        get!(|out| stream::cuStreamGetId(NULL, out)).map(drop),
        get!(|out| capture::cuStreamIsCapturing(stream, out)).map(drop),
        cu!(stream::cuStreamQuery(unused)),
        wait(unused, event),
        cu!(event::cuEventRecord(event, stream)),
        cu!(event::cuEventQuery(event)),
        cu!(event::cuEventDestroy_v2(other)),
        get!(|out| event::cuEventCreate(out, 0)).map(drop),
        get!(|out| stream::cuStreamCreate(out, 0)).map(drop),
        get!(|out| memory::cuMemAlloc_v2(out, 8)).map(drop),
        get!(|out| memory::cuMemAllocAsync(out, 8, stream)).map(drop),
        fill(address, 1, 8, stream),
        move_bytes(address, address, 8, stream),
        cu!(pointer_api::cuPointerGetAttribute(kind, 2, address)),
        load(PTX).map(drop),
        function(module, "dlfield_copy").map(drop),
        cu!(context::cuCtxSynchronize()),
        cu!(stream::cuStreamDestroy_v2(unused)),
        free(address),
    ];
    assert_eq!(calls, [Err(ILLEGAL_ADDRESS); 20]);
    // What was destroyed and freed is gone, and the other device works.
    assert_eq!((count("live_streams"), count("live_events"), count("leaks")), (1, 1, 0));
    session.make_current(1);
    allocate(8);
    // The current context is known, and it heals only when it ends.
    session.make_current(0);
    assert_eq!(get!(|out| context::cuCtxGetDevice(out)), Ok(0));
    cu!(device::cuDevicePrimaryCtxReset_v2(0)).unwrap();
    allocate(8);
}

#[test]
fn a_kernel_cannot_follow_the_host_nor_a_device_that_is_no_peer() {
    let session = session();
    let host = [0u64; 1];
    let pageable = host.as_ptr() as u64;
    fill_by_kernel(pageable, &run(8, 1), [1; 16], NULL).unwrap();
    assert_eq!(synchronize(NULL), Err(ILLEGAL_ADDRESS));
    cu!(fakecuda::api::control::fakecuda_reset()).unwrap();

    let address = allocate(8);
    session.make_current(1);
    fill_by_kernel(address, &run(8, 1), [5; 16], NULL).unwrap();
    assert_eq!(synchronize(NULL), Err(ILLEGAL_ADDRESS));
    assert_eq!(count("no_peer_access"), 1);
    cu!(fakecuda::api::control::fakecuda_reset()).unwrap();
    cu!(context::cuCtxEnablePeerAccess(session.contexts[0], 0)).unwrap();
    fill_by_kernel(address, &run(8, 1), [5; 16], NULL).unwrap();
    synchronize(NULL).unwrap();
    assert_eq!(peek(address, 8), [5; 8]);
}

#[test]
fn kernels_race_like_copies() {
    let _session = session();
    let address = allocate(32);
    let (even, odd) = (address, address + 2);
    let places = grid(2, [8, 4, 0], [1, 0, 0]);
    for (start, races) in [(even, 0), (odd, 0), (odd, 1)] {
        fill_by_kernel(start, &places, [0; 16], make_stream()).unwrap();
        assert_eq!(count("races"), races);
    }
}
