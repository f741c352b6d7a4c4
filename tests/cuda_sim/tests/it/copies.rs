use crate::harness::*;
use fakecuda::api::copy::{self, Box3, BoxSide, Rows, RowsSide};
use fakecuda::entry::In;

const HOST: u32 = 1;
const DEVICE: u32 = 2;

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| index as u8).collect()
}

fn rows_of(kind: u32, address: u64, pitch: usize) -> RowsSide {
    RowsSide { x: 0, y: 0, kind, host: address, device: address, array: 0, pitch }
}

fn box_of(kind: u32, address: u64, pitch: usize, height: usize) -> BoxSide {
    BoxSide { x: 0, y: 0, z: 0, level: 0, kind, host: address, device: address, array: 0, context: 0, pitch, height }
}

#[test]
fn rows_keep_their_padding() {
    let _session = session();
    let (address, stream, host) = (allocate(4 * 16), make_stream(), bytes(12));
    let source = rows_of(HOST, host.as_ptr() as u64, 3);
    let destination = RowsSide { x: 2, y: 1, ..rows_of(DEVICE, address, 16) };
    let rows = Rows { source, destination, width: 3, height: 3 };
    cu!(copy::cuMemcpy2DAsync_v2(In::new(&rows), stream)).unwrap();
    synchronize(stream).unwrap();
    let mut expected = vec![0xCD; 64];
    for row in 0..3 {
        expected[16 * (row + 1) + 2..][..3].copy_from_slice(&host[3 * row..][..3]);
    }
    assert_eq!(peek(address, 64), expected);
    let mut back = vec![0u8; 9];
    let destination = rows_of(HOST, back.as_mut_ptr() as u64, 3);
    let rows = Rows { source: rows.destination, destination, ..rows };
    cu!(copy::cuMemcpy2D_v2(In::new(&rows))).unwrap();
    assert_eq!(back, host[..9]);
}

#[test]
fn rows_are_no_wider_than_their_pitch_and_end_with_their_last_byte() {
    let _session = session();
    let (address, host) = (allocate(16 + 3), bytes(16));
    let (source, destination) = (rows_of(HOST, host.as_ptr() as u64, 8), rows_of(DEVICE, address, 4));
    let rows = Rows { source, destination, width: 8, height: 2 };
    assert_eq!(cu!(copy::cuMemcpy2D_v2(In::new(&rows))), Err(INVALID_VALUE));
    let (source, destination) = (rows_of(HOST, host.as_ptr() as u64, 3), rows_of(DEVICE, address, 16));
    let rows = Rows { source, destination, width: 3, height: 2 };
    cu!(copy::cuMemcpy2D_v2(In::new(&rows))).unwrap();
    let rows = Rows { height: 3, ..rows };
    assert_eq!(cu!(copy::cuMemcpy2D_v2(In::new(&rows))), Err(INVALID_VALUE));
    assert_eq!(count("out_of_bounds"), 1);
}

#[test]
fn boxes_keep_their_padding() {
    let _session = session();
    // Boxes of 2 layers, 2 rows and 3 bytes; the device has rows of 8 bytes and layers of 4 rows.
    let (address, stream, host) = (allocate(2 * 4 * 8), make_stream(), bytes(12));
    let (source, destination) = (box_of(HOST, host.as_ptr() as u64, 3, 2), box_of(DEVICE, address, 8, 4));
    let copy = Box3 { source, destination, width: 3, height: 2, depth: 2 };
    cu!(copy::cuMemcpy3DAsync_v2(In::new(&copy), stream)).unwrap();
    synchronize(stream).unwrap();
    let mut expected = vec![0xCD; 64];
    for (index, row) in host.chunks(3).enumerate() {
        expected[index / 2 * 32 + index % 2 * 8..][..3].copy_from_slice(row);
    }
    assert_eq!(peek(address, 64), expected);
}

#[test]
fn bytes_and_boxes_travel_between_devices() {
    let session = session();
    let (from, stream) = (allocate(64), make_stream());
    poke(from, &bytes(64));
    session.make_current(1);
    let to = allocate(12);
    let [here, there] = session.contexts;
    cu!(copy::cuMemcpyPeerAsync(to, there, from, here, 8, stream)).unwrap();
    synchronize(stream).unwrap();
    assert_eq!((peek(to, 8), count("bytes_on_device")), (bytes(8), 8));
    let (source, destination) = (box_of(DEVICE, from, 8, 4), box_of(DEVICE, to, 3, 2));
    let copy = Box3 { source, destination, width: 3, height: 2, depth: 2 };
    cu!(copy::cuMemcpy3DPeerAsync(In::new(&copy), stream)).unwrap();
    synchronize(stream).unwrap();
    assert_eq!(peek(to, 12), [0, 1, 2, 8, 9, 10, 32, 33, 34, 40, 41, 42]);
}

#[test]
fn elements_of_each_size_are_set() {
    use fakecuda::api::set;
    let _session = session();
    let (address, stream) = (allocate(32), make_stream());
    cu!(set::cuMemsetD16Async(address, 0x0201, 2, stream)).unwrap();
    cu!(set::cuMemsetD2D32Async(address + 4, 8, 0x0403_0201, 1, 2, stream)).unwrap();
    synchronize(stream).unwrap();
    let (set, left) = ([1, 2, 3, 4], [0xCD; 4]);
    assert_eq!(peek(address, 16), [[1, 2, 1, 2], set, left, set].concat());
    assert_eq!(cu!(set::cuMemsetD32Async(address + 2, 0, 1, stream)), Err(INVALID_VALUE));
}

#[test]
fn nothing_is_copied_from_nowhere() {
    let _session = session();
    assert_eq!(move_bytes(0, 0, 0, NULL), Ok(()));
    assert_eq!(count("copies_on_host"), 0);
}
