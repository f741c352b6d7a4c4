//! Streams.

use crate::codes::{Failure, Outcome};
use crate::driver::{self, Handle};
use crate::entry::Out;
use crate::stream::Operation;
use crate::work::{HostFunction, Work};
use crate::{export, export_on};
use std::ffi::{c_int, c_uint, c_void};

const NON_BLOCKING: c_uint = 1;

fn create(stream: Out<Handle>, flags: c_uint, priority: c_int) -> Outcome {
    let mut driver = driver::lock()?;
    let device = driver.usable_device()?;
    if flags > NON_BLOCKING {
        return Err(Failure::INVALID_VALUE);
    }
    let made = driver.make_stream(device, flags, priority.clamp(-5, 0));
    stream.put(driver.name_stream(made))
}

/// Returns the point that a wait for a stream reaches, and the device whose errors it returns.
fn point(stream: Handle) -> Outcome<(crate::stream::Point, usize)> {
    let mut driver = driver::lock()?;
    let stream = driver.resolve(stream)?;
    driver.refuse_in_capture(stream)?;
    driver.check_implicit(stream)?;
    let device = driver.streams.get(&stream).ok_or(Failure::INVALID_HANDLE)?.device;
    if driver.streams.get(&stream).is_some_and(|found| found.legacy) {
        driver.next_moment(stream)?;
    }
    Ok((driver.tail(stream), device))
}

export! {
    fn cuStreamCreate(stream: Out<Handle>, flags: c_uint) {
        create(stream, flags, 0)
    }

    fn cuStreamCreateWithPriority(stream: Out<Handle>, flags: c_uint, priority: c_int) {
        create(stream, flags, priority)
    }
}

export! { driver:
    fn cuStreamDestroy_v2(stream: Handle) {
        driver.destroy_stream(stream)
    }
}

export_on! { stream:
    fn cuStreamSynchronize(stream: Handle) {
        let (point, device) = point(stream)?;
        driver::lock()?.counters.stream_syncs += 1;
        driver::wait(&[point])?;
        driver::lock()?.check_fault(device)
    }

    fn cuStreamQuery(stream: Handle) {
        let (point, _) = point(stream)?;
        if driver::poll(&point)? { Ok(()) } else { Err(Failure::NOT_READY) }
    }
}

export_on! { driver, stream:
    fn cuStreamWaitEvent(stream: Handle, event: Handle, _flags: c_uint) {
        driver.wait_for_event(stream, event)
    }

    fn cuStreamGetCtx_v2(stream: Handle, context: Out<Handle>, green: Out<Handle>) {
        let stream = driver.resolve(stream)?;
        driver.check_capture(stream)?;
        green.put_if_wanted(0);
        context.put(driver.streams[&stream].context)
    }

    fn cuStreamGetCtx(stream: Handle, context: Out<Handle>) {
        let stream = driver.resolve(stream)?;
        driver.check_capture(stream)?;
        context.put(driver.streams[&stream].context)
    }

    fn cuStreamGetId(stream: Handle, id: Out<u64>) {
        let stream = driver.resolve(stream)?;
        driver.refuse_in_capture(stream)?;
        id.put(stream)
    }

    fn cuLaunchHostFunc(stream: Handle, function: Option<HostFunction>, argument: *mut c_void) {
        let stream = driver.resolve(stream)?;
        let function = function.ok_or(Failure::INVALID_VALUE)?;
        let work = Work::Host(function, argument as usize);
        driver.submit(stream, Operation::new("cuLaunchHostFunc", vec![], work))?;
        Ok(())
    }
}

/// Exports functions that return a property of a stream, which invalidates a capture of it.
macro_rules! properties {
    ($($name:ident: $type:ty = $property:ident;)*) => {
        export_on! { driver, stream: $(
            fn $name(stream: Handle, out: Out<$type>) {
                let stream = driver.resolve(stream)?;
                driver.refuse_in_capture(stream)?;
                out.put(driver.streams[&stream].$property as $type)
            }
        )*}
    };
}

properties! {
    cuStreamGetDevice: c_int = device;
    cuStreamGetFlags: c_uint = flags;
    cuStreamGetPriority: c_int = priority;
}
