//! Attributes of an address.

use crate::codes::{Failure, Outcome};
use crate::driver::Driver;
use crate::entry::{In, Out};
use crate::export;
use crate::memory::Kind;
use std::ffi::{c_int, c_uint, c_void};

const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const READ_WRITE: c_uint = 3;
/// The attributes by number, in the order of `CUpointer_attribute`.
const MEMORY_TYPE: c_uint = 2;
const DEVICE_ORDINAL: c_uint = 9;

fn attribute(driver: &Driver, out: Out<c_void>, number: c_uint, address: u64) -> Outcome {
    let found = driver.memory.known(address).ok_or(Failure::INVALID_VALUE)?;
    driver.check_fault(found.device)?;
    let context = driver.devices[found.device].context;
    let on_host = matches!(found.kind, Kind::Pinned | Kind::Registered);
    match number {
        1 => out.cast().put(if found.pool.is_some() { 0 } else { context }),
        MEMORY_TYPE => out.cast().put(if on_host { HOST } else { DEVICE }),
        3 => out.cast().put(address),
        4 if matches!(found.kind, Kind::Device | Kind::Opened) => Err(Failure::INVALID_VALUE),
        4 => out.cast().put(address),
        7 => out.cast().put(found.number),
        8 => out.cast().put(c_uint::from(found.kind == Kind::Managed)),
        DEVICE_ORDINAL => out.cast().put(found.device as c_int),
        11 => out.cast().put(found.base),
        12 => out.cast().put(found.size),
        13 => out.cast().put(1 as c_uint),
        6 | 10 | 15 => out.cast().put(0 as c_uint),
        14 => out.cast().put(0u64),
        16 => out.cast().put(READ_WRITE),
        17 => out.cast().put(found.pool.unwrap_or(0)),
        _ => Err(Failure::INVALID_VALUE),
    }
}

/// Writes the value that a query of several attributes returns for one that does not apply.
fn absent(out: Out<c_void>, number: c_uint) -> Outcome {
    match number {
        MEMORY_TYPE | 6 | 8 | 10 | 13 | 15 | 16 => out.cast().put(0 as c_uint),
        DEVICE_ORDINAL => out.cast().put(-2 as c_int),
        1..=17 => out.cast().put(0u64),
        _ => Err(Failure::INVALID_VALUE),
    }
}

export! { driver:
    fn cuPointerGetAttribute(out: Out<c_void>, number: c_uint, address: u64) {
        attribute(driver, out, number, address)
    }

    fn cuPointerGetAttributes(count: c_uint, numbers: In<c_uint>, outs: In<Out<c_void>>, address: u64) {
        if let Some(found) = driver.memory.known(address) {
            driver.check_fault(found.device)?;
        }
        for index in 0..count as usize {
            let (number, out) = (numbers.at(index)?, outs.at(index)?);
            if attribute(driver, out, number, address).is_err() {
                absent(out, number)?;
            }
        }
        Ok(())
    }

    fn cuMemGetAddressRange_v2(base: Out<u64>, size: Out<usize>, address: u64) {
        let found = driver.memory.known(address).ok_or(Failure::NOT_FOUND)?;
        driver.check_fault(found.device)?;
        base.put_if_wanted(found.base);
        size.put_if_wanted(found.size as usize);
        Ok(())
    }
}
