//! Devices and their attributes.

use crate::driver::Handle;
use crate::entry::Out;
use crate::export;
use crate::memory::TOTAL;
use std::ffi::{c_char, c_int, c_uint};

/// `CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED`.
const POOLS: c_int = 115;

/// Returns an attribute of a device of compute capability 9.0.
fn attribute(number: c_int, device: usize) -> c_int {
    match number {
        1..=3 => 1024,                                                  // threads in a block, and in its x and y
        4 => 64,                                                        // threads in a block's z
        5 => c_int::MAX,                                                // blocks in a grid's x
        6 | 7 => 65_535,                                                // blocks in a grid's y and z
        8 | 81 | 97 => 49_152,                                          // shared memory
        10 => 32,                                                       // threads in a warp
        11 => c_int::MAX,                                               // pitch
        12 | 82 => 65_536,                                              // registers
        13 | 36 => 1_000_000,                                           // clocks
        14 => 512,                                                      // alignment of textures
        16 => 132,                                                      // multiprocessors
        33 => device as c_int + 1,                                      // PCI bus
        37 => 4096,                                                     // width of the memory bus
        38 => 50 << 20,                                                 // L2
        39 => 2048,                                                     // threads on a multiprocessor
        40 => 2,                                                        // copy engines
        75 => 9,                                                        // compute capability
        106 => 32,                                                      // blocks on a multiprocessor
        15 | 19 | 31 | 41 | 78 | 79 | 80 | 83 | 89 | 90 | 95 | 99 => 1, // overlap, map, concurrent, unified, managed
        _ => 0,
    }
}

fn identity(index: usize) -> [u8; 16] {
    let mut bytes = *b"dlfield-fake-gpu";
    bytes[15] = index as u8;
    bytes
}

export! { driver:
    fn cuDeviceGetCount(count: Out<c_int>) {
        count.put(driver.devices.len() as c_int)
    }

    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        driver.device(ordinal)?;
        device.put(ordinal)
    }

    fn cuDeviceGetName(name: Out<c_char>, room: c_int, device: c_int) {
        let index = driver.device(device)?;
        name.put_text(room.max(0) as usize, &format!("dlfield fake GPU {index}"))
    }

    fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: c_int) {
        uuid.put(identity(driver.device(device)?))
    }

    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: c_int) {
        uuid.put(identity(driver.device(device)?))
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) {
        driver.device(device)?;
        bytes.put(TOTAL as usize)
    }

    fn cuDeviceGetPCIBusId(id: Out<c_char>, room: c_int, device: c_int) {
        let index = driver.device(device)?;
        id.put_text(room.max(0) as usize, &format!("0000:{:02x}:00.0", index + 1))
    }

    fn cuDeviceGetAttribute(value: Out<c_int>, number: c_int, device: c_int) {
        let index = driver.device(device)?;
        value.put(if number == POOLS { c_int::from(driver.pools_supported) } else { attribute(number, index) })
    }

    fn cuDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) {
        can.put(c_int::from(driver.device(device)? != driver.device(peer)?))
    }

    fn cuDevicePrimaryCtxRetain(context: Out<Handle>, device: c_int) {
        let index = driver.device(device)?;
        if driver.devices[index].retained == 0 {
            driver.refuse_first_use()?;
        }
        context.put(driver.devices[index].context)?;
        driver.devices[index].retained += 1;
        Ok(())
    }

    fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        let index = driver.device(device)?;
        let (context, retained) = (driver.devices[index].context, driver.devices[index].retained);
        driver.check_handle(retained > 0, "retained context", context)?;
        driver.devices[index].retained -= 1;
        if driver.devices[index].retained == 0 {
            driver.destroy_context(index);
        }
        Ok(())
    }

    fn cuDevicePrimaryCtxReset_v2(device: c_int) {
        let index = driver.device(device)?;
        driver.destroy_context(index);
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) {
        let found = &driver.devices[driver.device(device)?];
        flags.put(found.flags)?;
        active.put(c_int::from(found.retained > 0))
    }
}
