//! What a test asks of the double. These work before `cuInit` too.

use crate::clocks::{Area, HOST, Moment, Touch};
use crate::codes::{Failure, Outcome};
use crate::driver;
use crate::entry::{In, Out};
use crate::memory::Life;
use crate::report::{Counters, plain_name};
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of one of these functions: 0, or the code of its failure.
fn control(body: impl FnOnce() -> Outcome) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failure.0,
        Err(_) => Failure::UNKNOWN.0,
    }
}

/// Writes the counters as JSON, cut to the buffer, and returns how long they are without the zero at the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_report(out: Out<c_char>, room: usize) -> usize {
    let json = driver::lock().map(|driver| driver.json()).unwrap_or_default();
    let _ = out.put_text(room, &json);
    json.len()
}

/// Sets counters and messages to nothing, takes back failures that were asked for, and heals contexts. What is
/// allocated stays.
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

/// The allocation after the next `after` ones fails; with -1 none does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_fail_allocations(after: i64) -> c_int {
    control(|| {
        driver::lock()?.allocations_left = u64::try_from(after).ok();
        Ok(())
    })
}

/// The next call of a function, in any of its versions, returns this code; 0 takes that back.
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

/// Copies what memory holds now, without waiting for anything and without counting as an access.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_peek(address: u64, out: *mut u8, bytes: usize) -> c_int {
    control(|| {
        let driver = driver::lock()?;
        check_range(&driver, address, bytes)?;
        if driver.memory.copy(out as u64, address, bytes as u64) { Ok(()) } else { Err(Failure::INVALID_VALUE) }
    })
}

/// Changes what memory holds now, in the same way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_poke(address: u64, from: *const u8, bytes: usize) -> c_int {
    control(|| {
        let driver = driver::lock()?;
        check_range(&driver, address, bytes)?;
        if driver.memory.copy(address, from as u64, bytes as u64) { Ok(()) } else { Err(Failure::INVALID_VALUE) }
    })
}

/// Also memory that was freed can be looked at, but nothing that was never an allocation.
fn check_range(driver: &driver::Driver, address: u64, bytes: usize) -> Outcome {
    match driver.memory.find(address) {
        Some(found) if found.life != Life::Unborn && address + bytes as u64 <= found.base + found.size => Ok(()),
        _ => Err(Failure::INVALID_VALUE),
    }
}

/// Whether the devices have pools of memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_set_pools(supported: bool) -> c_int {
    control(|| {
        driver::lock()?.pools_supported = supported;
        Ok(())
    })
}

/// What `cuDriverGetVersion` answers, such as 12040.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_set_version(version: c_int) -> c_int {
    control(|| {
        driver::lock()?.version = version;
        Ok(())
    })
}

/// Whether copies of pageable memory are done with it when the call returns, as with most drivers, or may not be, as
/// CUDA has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_set_staging(staging: bool) -> c_int {
    control(|| {
        driver::lock()?.staging = staging;
        Ok(())
    })
}

/// Whether the handle of a stream that was destroyed becomes that of the next one, or no handle is used twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_set_reused_streams(reuses: bool) -> c_int {
    control(|| {
        driver::lock()?.reuses_streams = reuses;
        Ok(())
    })
}

/// Says that the host reads or writes pinned, registered or managed memory now, for the race detector.
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
