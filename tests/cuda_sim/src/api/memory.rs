//! Allocations: on a device, managed, pinned, registered, and in stream order.

use crate::clocks::{Area, HOST, Moment, Touch};
use crate::codes::{Failure, Outcome};
use crate::driver::{self, Handle};
use crate::entry::Out;
use crate::memory::{Kind, Life};
use crate::stream::Operation;
use crate::work::Work;
use crate::{export, export_on};
use std::ffi::c_uint;

fn allocate(address: Out<u64>, size: usize, kind: Kind) -> Outcome {
    let mut driver = driver::lock()?;
    let device = driver.usable_device()?;
    driver.note_unsafe()?;
    let made = driver.allocate(device, size as u64, kind, None, Life::Live)?;
    address.put(made)
}

/// Frees memory without a stream, after waiting for the device; for pool memory it does not wait. The error of a failed kernel
/// does not prevent it.
fn free(address: u64, kinds: &[Kind], what: &str) -> Outcome {
    let (device, points, pooled) = {
        let mut driver = driver::lock()?;
        driver.note_unsafe()?;
        driver.current_device()?;
        let device = driver.check_free(address, kinds, what)?;
        driver.note_foreign(device, what);
        let pooled = driver.memory.find(address).is_some_and(|found| found.pool.is_some());
        (device, if pooled { vec![] } else { driver.tails(device) }, pooled)
    };
    driver::wait(&points)?;
    let mut driver = driver::lock()?;
    driver.check_free(address, kinds, what)?;
    if pooled && let Some(found) = driver.memory.find(address) {
        let touch = Touch::write(Area::block(address, found.size));
        let moment = Moment { actor: HOST, number: driver.host_accesses + 1, clock: driver.host.clone() };
        driver.touch(&moment, &touch, what)?;
    }
    driver.counters.frees += 1;
    driver.release(address);
    driver.check_fault(device)
}

fn allocate_in_stream(address: Out<u64>, size: usize, pool: Option<Handle>, stream: Handle) -> Outcome {
    let mut driver = driver::lock()?;
    driver.require_pools()?;
    let stream = driver.resolve(stream)?;
    driver.check_implicit(stream)?;
    let found = driver.streams.get(&stream).ok_or(Failure::INVALID_HANDLE)?;
    let (device, capturing) = (found.device, found.capture.is_some());
    let pool = pool.unwrap_or(driver.devices[device].pool);
    let owner = driver.pool(pool)?.device;
    let life = if capturing { Life::Unborn } else { Life::Live };
    let made = driver.allocate(owner, size as u64, Kind::Device, Some(pool), life)?;
    let touch = Touch::write(Area::block(made, size as u64));
    let work = if capturing { Work::Birth(made) } else { Work::Nothing };
    driver.submit(stream, Operation::new("cuMemAllocAsync", vec![touch], work))?;
    address.put(made)
}

fn free_in_stream(address: u64, stream: Handle) -> Outcome {
    let mut driver = driver::lock()?;
    driver.require_pools()?;
    let stream = driver.resolve(stream)?;
    if address == 0 {
        return Ok(());
    }
    let found = driver.streams.get(&stream).ok_or(Failure::INVALID_HANDLE)?;
    let (stream_device, capturing) = (found.device, found.capture.is_some());
    let unborn = driver.memory.allocations.get(&address).is_some_and(|found| found.life == Life::Unborn);
    if !(capturing && unborn) {
        let device = driver.check_free(address, &[Kind::Device], "cuMemFreeAsync")?;
        if device != stream_device {
            driver.note_foreign(device, "cuMemFreeAsync");
        }
    }
    let size = driver.memory.find(address).map_or(0, |found| found.size);
    let touch = Touch::write(Area::block(address, size));
    driver.submit(stream, Operation::new("cuMemFreeAsync", vec![touch], Work::Free(address)))?;
    if !capturing {
        driver.end_life(address);
    }
    Ok(())
}

export! {
    fn cuMemAlloc_v2(address: Out<u64>, size: usize) {
        allocate(address, size, Kind::Device)
    }

    fn cuMemAllocManaged(address: Out<u64>, size: usize, flags: c_uint) {
        if !matches!(flags, 1 | 2 | 4) {
            return Err(Failure::INVALID_VALUE);
        }
        allocate(address, size, Kind::Managed)
    }

    fn cuMemHostAlloc(address: Out<u64>, size: usize, _flags: c_uint) {
        allocate(address, size, Kind::Pinned)
    }

    fn cuMemFree_v2(address: u64) {
        if address == 0 {
            return Ok(());
        }
        free(address, &[Kind::Device, Kind::Managed], "cuMemFree")
    }

    fn cuMemFreeHost(address: u64) {
        free(address, &[Kind::Pinned], "cuMemFreeHost")
    }
}

export! { driver:
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let device = driver.usable_device()?;
        let (left, all) = driver.device_bytes(device);
        free.put(left as usize)?;
        total.put(all as usize)
    }

    fn cuMemHostRegister_v2(address: u64, size: usize, _flags: c_uint) {
        let device = driver.usable_device()?;
        driver.note_unsafe()?;
        if address == 0 || size == 0 {
            return Err(Failure::INVALID_VALUE);
        }
        driver.memory.register(address, size as u64, device)
    }

    fn cuMemHostUnregister(address: u64) {
        let device = driver.current_device()?;
        driver.note_unsafe()?;
        match driver.memory.allocations.get(&address) {
            Some(found) if found.kind == Kind::Registered => driver.memory.release(address),
            _ => return Err(Failure::HOST_MEMORY_NOT_REGISTERED),
        }
        driver.check_fault(device)
    }
}

export_on! { stream:
    fn cuMemAllocAsync(address: Out<u64>, size: usize, stream: Handle) {
        allocate_in_stream(address, size, None, stream)
    }

    fn cuMemAllocFromPoolAsync(address: Out<u64>, size: usize, pool: Handle, stream: Handle) {
        allocate_in_stream(address, size, Some(pool), stream)
    }

    fn cuMemFreeAsync(address: u64, stream: Handle) {
        free_in_stream(address, stream)
    }
}
