//! Events.

use crate::codes::Failure;
use crate::driver::{self, Handle};
use crate::entry::Out;
use crate::{export, export_on};
use std::ffi::c_uint;

export! {
    fn cuEventSynchronize(event: Handle) {
        let point = {
            let mut driver = driver::lock()?;
            driver.counters.event_syncs += 1;
            driver.event_point(event)?
        };
        driver::wait(point.as_slice())
    }

    fn cuEventQuery(event: Handle) {
        let Some(point) = driver::lock()?.event_point(event)? else { return Ok(()) };
        if driver::poll(&point)? { Ok(()) } else { Err(Failure::NOT_READY) }
    }
}

export! { driver:
    fn cuEventCreate(event: Out<Handle>, flags: c_uint) {
        let device = driver.usable_device()?;
        let made = driver.make_event(device, flags);
        event.put(made)
    }

    fn cuEventDestroy_v2(event: Handle) {
        driver.destroy_event(event)
    }

    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: Handle, end: Handle) {
        let elapsed = driver.elapsed(start, end)?;
        milliseconds.put(elapsed)
    }
}

export_on! { driver, stream:
    fn cuEventRecord(event: Handle, stream: Handle) {
        driver.record(event, stream)
    }

    fn cuEventRecordWithFlags(event: Handle, stream: Handle, _flags: c_uint) {
        driver.record(event, stream)
    }
}
