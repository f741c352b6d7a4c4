//! The interface of the double for tests. These functions work before `cuInit` too.

use crate::clocks::{Area, HOST, Moment, Touch};
use crate::codes::{Failure, Outcome};
use crate::driver;
use crate::entry::{In, Out};
use crate::memory::Life;
use crate::report::{Counters, plain_name};
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of one of these functions; returns 0, or the code of its failure.
fn control(body: impl FnOnce() -> Outcome) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failure.0,
        Err(_) => Failure::UNKNOWN.0,
    }
}

/// Writes the counters as JSON, cut to the buffer, and returns their length without the final zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_report(out: Out<c_char>, room: usize) -> usize {
    let json = driver::lock().map(|driver| driver.json()).unwrap_or_default();
    let _ = out.put_text(room, &json);
    json.len()
}

/// Clears counters, messages and requested failures, and heals contexts. Allocations stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_reset() -> c_int {
    control(|| {
        let mut driver = driver::lock()?;
        driver.counters = Counters::default();
        driver.messages.clear();
        driver.failures.clear();
        driver.allocations_left = None;
        for device in &mut driver.devices {
            device.fault = None;
        }
        Ok(())
    })
}

/// Makes the allocation after the next `after` ones fail; -1 makes none fail.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_fail_allocations(after: i64) -> c_int {
    control(|| {
        driver::lock()?.allocations_left = u64::try_from(after).ok();
        Ok(())
    })
}

/// Makes the next call of a function, in any of its versions, return this code; 0 cancels that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_fail(name: In<c_char>, code: c_int) -> c_int {
    control(|| {
        let name = name.text()?;
        let mut driver = driver::lock()?;
        match code {
            0 => driver.failures.remove(plain_name(&name)),
            code => driver.failures.insert(plain_name(&name).to_owned(), Failure(code)),
        };
        Ok(())
    })
}

/// Copies the present contents of memory, without waiting for work and without counting as an access.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_peek(address: u64, out: *mut u8, bytes: usize) -> c_int {
    control(|| {
        let driver = driver::lock()?;
        check_range(&driver, address, bytes)?;
        if driver.memory.copy(out as u64, address, bytes as u64) { Ok(()) } else { Err(Failure::INVALID_VALUE) }
    })
}

/// Changes the present contents of memory in the same way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_poke(address: u64, from: *const u8, bytes: usize) -> c_int {
    control(|| {
        let driver = driver::lock()?;
        check_range(&driver, address, bytes)?;
        if driver.memory.copy(address, from as u64, bytes as u64) { Ok(()) } else { Err(Failure::INVALID_VALUE) }
    })
}

/// Rejects addresses that were never an allocation. Freed memory is allowed.
fn check_range(driver: &driver::Driver, address: u64, bytes: usize) -> Outcome {
    match driver.memory.find(address) {
        Some(found) if found.life != Life::Unborn && address + bytes as u64 <= found.base + found.size => Ok(()),
        _ => Err(Failure::INVALID_VALUE),
    }
}

/// Sets whether the devices have memory pools.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_set_pools(supported: bool) -> c_int {
    control(|| {
        driver::lock()?.pools_supported = supported;
        Ok(())
    })
}

/// Sets the result of `cuDriverGetVersion`, such as 12040.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_set_version(version: c_int) -> c_int {
    control(|| {
        driver::lock()?.version = version;
        Ok(())
    })
}

/// Sets whether copies are done with pageable memory when the call returns, as with most drivers, or may use it later, as CUDA
/// allows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_set_staging(staging: bool) -> c_int {
    control(|| {
        driver::lock()?.staging = staging;
        Ok(())
    })
}

/// Sets whether the handle of a destroyed stream becomes that of the next stream, or handles are never reused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_set_reused_streams(reuses: bool) -> c_int {
    control(|| {
        driver::lock()?.reuses_streams = reuses;
        Ok(())
    })
}

/// Tells the race detector that the host reads or writes pinned, registered or managed memory now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_host_access(address: u64, bytes: usize, write: bool) -> c_int {
    control(|| {
        let mut driver = driver::lock()?;
        driver.host_accesses += 1;
        let number = driver.host_accesses;
        driver.host.advance(HOST, number);
        let moment = Moment { actor: HOST, number, clock: driver.host.clone() };
        let touch = Touch { area: Area::block(address, bytes as u64), write };
        driver.touch(&moment, &touch, "the host")
    })
}
