//! The interface of the double for tests. These functions work before `cuInit` too.

use crate::clocks::{Area, HOST, Moment, Touch};
use crate::codes::{Failure, Outcome};
use crate::driver;
use crate::entry::{self, In, Out};
use crate::memory::Life;
use crate::report::{Counters, plain_name};
use std::ffi::{c_char, c_int};

/// Exports functions that hold the driver's lock, and return 0 or the code of their failure.
macro_rules! control {
    ($driver:ident: $($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $body:block)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            let body = || -> Outcome {
                let mut locked = driver::lock()?;
                let $driver = &mut *locked;
                $body
                Ok(())
            };
            entry::guard(body)
        }
    )*};
}

/// Writes the counters as JSON, cut to the buffer, and returns their length without the final zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_report(out: Out<c_char>, room: usize) -> usize {
    let json = driver::lock().map(|driver| driver.json()).unwrap_or_default();
    let _ = out.put_text(room, &json);
    json.len()
}

control! { driver:
    /// Clears counters, messages and requested failures, and heals contexts. Allocations stay.
    fn fakecuda_reset() {
        driver.counters = Counters::default();
        driver.messages.clear();
        driver.latest.clear();
        driver.failures.clear();
        driver.allocations_left = None;
        for device in &mut driver.devices {
            device.fault = None;
        }
    }

    /// Makes the allocation after the next `after` ones fail; -1 makes none fail.
    fn fakecuda_fail_allocations(after: i64) {
        driver.allocations_left = u64::try_from(after).ok();
    }

    /// Makes the next call of a function, in any of its versions, return this code; 0 cancels that.
    fn fakecuda_fail(name: In<c_char>, code: c_int) {
        let name = name.text()?;
        match code {
            0 => driver.failures.remove(plain_name(&name)),
            code => driver.failures.insert(plain_name(&name).to_owned(), Failure(code)),
        };
    }

    /// Copies the present contents of memory, without waiting for work and without counting as an access.
    fn fakecuda_peek(address: u64, out: *mut u8, bytes: usize) {
        check_range(driver, address, bytes)?;
        require(driver.memory.copy(out as u64, address, bytes as u64))?;
    }

    /// Changes the present contents of memory in the same way.
    fn fakecuda_poke(address: u64, from: *const u8, bytes: usize) {
        check_range(driver, address, bytes)?;
        require(driver.memory.copy(address, from as u64, bytes as u64))?;
    }

    /// Sets whether the devices have memory pools.
    fn fakecuda_set_pools(supported: bool) {
        driver.pools_supported = supported;
    }

    /// Sets the result of `cuDriverGetVersion`, such as 12040.
    fn fakecuda_set_version(version: c_int) {
        driver.version = version;
    }

    /// Sets whether copies are done with pageable memory when the call returns, as with most drivers, or may use it later, as
    /// CUDA allows.
    fn fakecuda_set_staging(staging: bool) {
        driver.staging = staging;
    }

    /// Sets whether the handle of a destroyed stream becomes that of the next stream, or handles are never reused.
    fn fakecuda_set_reused_streams(reuses: bool) {
        driver.reuses_streams = reuses;
    }

    /// Sets whether a call with the handle of a destroyed stream or event ends the process, as with a driver, or is counted and
    /// gets an error.
    fn fakecuda_set_crashes(crashes: bool) {
        driver.crashes = crashes;
    }

    /// Tells the race detector that the host reads or writes pinned, registered or managed memory now.
    fn fakecuda_host_access(address: u64, bytes: usize, write: bool) {
        driver.host_accesses += 1;
        let number = driver.host_accesses;
        driver.host.advance(HOST, number);
        let moment = Moment { actor: HOST, number, clock: driver.host.clone() };
        let touch = Touch { area: Area::block(address, bytes as u64), write };
        driver.touch(&moment, &touch, "the host")?;
    }
}

/// Rejects addresses that were never an allocation. Freed memory is allowed.
fn check_range(driver: &driver::Driver, address: u64, bytes: usize) -> Outcome {
    let found = driver.memory.find(address).filter(|found| found.life != Life::Unborn);
    require(found.is_some_and(|found| address + bytes as u64 <= found.base + found.size))
}

fn require(valid: bool) -> Outcome {
    if valid { Ok(()) } else { Err(Failure::INVALID_VALUE) }
}
