//! Memory pools. A device may get its pool when it is first asked for, so this and the pool's attributes count as a first use.

use crate::codes::Failure;
use crate::driver::Handle;
use crate::entry::{In, Out};
use crate::export;
use crate::pool::Pool;
use std::ffi::{c_int, c_void};

const PINNED: c_int = 1;
const ON_DEVICE: c_int = 1;
const READ_WRITE: c_int = 3;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Location {
    kind: c_int,
    id: c_int,
}

/// The start of `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Properties {
    allocation: c_int,
    _handles: c_int,
    location: Location,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Access {
    location: Location,
    flags: c_int,
}

export! { driver:
    fn cuDeviceGetDefaultMemPool(pool: Out<Handle>, device: c_int) {
        let index = driver.device(device)?;
        driver.require_pools()?;
        driver.refuse_first_use()?;
        pool.put(driver.devices[index].default_pool)
    }

    fn cuDeviceGetMemPool(pool: Out<Handle>, device: c_int) {
        let index = driver.device(device)?;
        driver.require_pools()?;
        driver.refuse_first_use()?;
        pool.put(driver.devices[index].pool)
    }

    fn cuMemPoolCreate(pool: Out<Handle>, properties: In<Properties>) {
        driver.require_pools()?;
        let properties = properties.get()?;
        if properties.allocation != PINNED || properties.location.kind != ON_DEVICE {
            return Err(Failure::INVALID_VALUE);
        }
        let device = driver.device(properties.location.id)?;
        let handle = driver.handle();
        driver.pools.insert(handle, Pool::new(device));
        pool.put(handle)
    }

    fn cuMemPoolDestroy(pool: Handle) {
        if driver.devices.iter().any(|device| device.default_pool == pool) {
            return Err(Failure::INVALID_VALUE);
        }
        let found = driver.pool(pool)?;
        found.destroyed = true;
        let device = found.device;
        if driver.devices[device].pool == pool {
            driver.devices[device].pool = driver.devices[device].default_pool;
        }
        driver.settle_pools();
        Ok(())
    }

    fn cuMemPoolGetAttribute(pool: Handle, number: c_int, value: Out<c_void>) {
        driver.refuse_first_use()?;
        let found = driver.pool(pool)?.attribute(number)?;
        if number <= 3 { value.cast().put(found as u32) } else { value.cast().put(found) }
    }

    fn cuMemPoolSetAttribute(pool: Handle, number: c_int, value: In<u8>) {
        driver.refuse_first_use()?;
        let value = if number <= 3 { u64::from(value.cast::<u32>().get()?) } else { value.cast::<u64>().get()? };
        driver.pool(pool)?.set_attribute(number, value)
    }

    fn cuMemPoolTrimTo(pool: Handle, keep: usize) {
        driver.pool(pool)?.trim(keep as u64);
        Ok(())
    }

    fn cuMemPoolSetAccess(pool: Handle, entries: In<Access>, count: usize) {
        for index in 0..count {
            let entry = entries.at(index)?;
            if entry.location.kind != ON_DEVICE {
                return Err(Failure::INVALID_VALUE);
            }
            let device = driver.device(entry.location.id)?;
            let found = driver.pool(pool)?;
            if found.device == device && entry.flags != READ_WRITE {
                return Err(Failure::INVALID_VALUE);
            }
            found.access.retain(|&known| known != device);
            if entry.flags == READ_WRITE {
                found.access.push(device);
            }
        }
        Ok(())
    }
}
