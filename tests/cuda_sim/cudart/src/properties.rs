//! The properties of a device, in the layout of CUDA 13.

use crate::driver;
use std::ffi::c_int;

/// `cudaDeviceProp`.
#[repr(C, align(8))]
pub struct Properties([u8; 1008]);

const NAME: usize = 256;
const UUID: usize = 256;
const TOTAL_MEMORY: usize = 288;

/// Fields of type `int`: offset, and number of the driver's attribute.
const INTS: &[(usize, c_int)] = &[
    (304, 12), // registers of a block
    (308, 10), // threads of a warp
    (320, 1),  // threads of a block
    (324, 2),  // and of its sides
    (328, 3),
    (332, 4),
    (336, 5), // blocks of a grid's sides
    (340, 6),
    (344, 7),
    (360, 75), // compute capability
    (364, 76),
    (384, 16), // multiprocessors
    (388, 18), // integrated
    (392, 19), // maps memory of the host
    (560, 31), // kernels at once
    (564, 32), // error correction
    (568, 33), // PCI bus, device and domain
    (572, 34),
    (576, 50),
    (584, 40),  // copy engines
    (588, 41),  // unified addresses
    (592, 37),  // width of the memory's bus
    (596, 38),  // second cache
    (604, 39),  // threads of a multiprocessor
    (608, 78),  // priorities of streams
    (632, 82),  // registers of a multiprocessor
    (636, 83),  // managed memory
    (652, 88),  // pageable memory
    (656, 89),  // managed memory at once
    (668, 95),  // cooperative launches
    (688, 106), // blocks of a multiprocessor
    (720, 115), // pools
];

/// The same for fields of type `size_t`.
const SIZES: &[(usize, c_int)] = &[
    (296, 8),  // shared memory of a block
    (312, 11), // pitch
    (352, 9),  // constant memory
    (368, 14), // alignment of textures
    (376, 51),
    (624, 81), // shared memory of a multiprocessor
    (672, 97), // and of a block that asks for it
];

impl Properties {
    pub fn of(device: c_int) -> Result<Properties, c_int> {
        let mut bytes = [0; 1008];
        driver::cuDeviceGetName(bytes.as_mut_ptr().cast(), NAME as c_int, device)?;
        let (mut uuid, mut memory) = ([0; 16], 0usize);
        driver::cuDeviceGetUuid_v2(&mut uuid, device)?;
        driver::cuDeviceTotalMem_v2(&mut memory, device)?;
        bytes[UUID..UUID + 16].copy_from_slice(&uuid);
        bytes[TOTAL_MEMORY..TOTAL_MEMORY + 8].copy_from_slice(&memory.to_ne_bytes());
        for &(at, number) in INTS {
            bytes[at..at + 4].copy_from_slice(&attribute(number, device)?.to_ne_bytes());
        }
        for &(at, number) in SIZES {
            bytes[at..at + 8].copy_from_slice(&(attribute(number, device)? as usize).to_ne_bytes());
        }
        Ok(Properties(bytes))
    }
}

fn attribute(number: c_int, device: c_int) -> Result<c_int, c_int> {
    let mut value = 0;
    driver::cuDeviceGetAttribute(&mut value, number, device)?;
    Ok(value)
}
