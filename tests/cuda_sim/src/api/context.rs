//! Contexts: the current one, waiting for one, and peer access.

use crate::codes::{Failure, Outcome};
use crate::context::{current, pop, push};
use crate::driver::{self, Handle};
use crate::entry::Out;
use crate::export;
use std::ffi::{c_int, c_uint};

const GREATEST_PRIORITY: c_int = -5;

fn given_or_current(context: Handle) -> Outcome<usize> {
    let mut driver = driver::lock()?;
    if context == 0 { driver.current_device() } else { driver.device_of_context(context) }
}

fn synchronize(device: usize) -> Outcome {
    let points = {
        let mut driver = driver::lock()?;
        driver.refuse_while_capturing(device)?;
        driver.check_fault(device)?;
        driver.counters.context_syncs += 1;
        driver.tails(device)
    };
    driver::wait(&points)?;
    driver::lock()?.check_fault(device)
}

export! {
    fn cuCtxGetCurrent(context: Out<Handle>) {
        context.put(current())
    }

    fn cuCtxPopCurrent_v2(context: Out<Handle>) {
        let popped = pop().ok_or(Failure::INVALID_CONTEXT)?;
        context.put_if_wanted(popped);
        Ok(())
    }

    fn cuCtxGetDevice(device: Out<c_int>) {
        device.put(given_or_current(0)? as c_int)
    }

    fn cuCtxGetDevice_v2(device: Out<c_int>, context: Handle) {
        device.put(given_or_current(context)? as c_int)
    }

    fn cuCtxSynchronize() {
        synchronize(given_or_current(0)?)
    }

    fn cuCtxSynchronize_v2(context: Handle) {
        synchronize(given_or_current(context)?)
    }

    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        driver::lock()?.usable_device()?;
        least.put_if_wanted(0);
        greatest.put_if_wanted(GREATEST_PRIORITY);
        Ok(())
    }
}

export! { driver:
    fn cuCtxSetCurrent(context: Handle) {
        if context != 0 {
            driver.device_of_context(context)?;
        }
        pop();
        if context != 0 {
            push(context);
        }
        Ok(())
    }

    fn cuCtxPushCurrent_v2(context: Handle) {
        driver.device_of_context(context)?;
        push(context);
        Ok(())
    }

    fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) {
        let (device, peer) = (driver.usable_device()?, driver.device_of_context(peer)?);
        if flags != 0 || device == peer {
            return Err(Failure::INVALID_VALUE);
        }
        let peers = &mut driver.devices[device].peers;
        if peers.contains(&peer) {
            return Err(Failure::PEER_ACCESS_ALREADY_ENABLED);
        }
        peers.push(peer);
        Ok(())
    }

    fn cuCtxDisablePeerAccess(peer: Handle) {
        let (device, peer) = (driver.usable_device()?, driver.device_of_context(peer)?);
        let peers = &mut driver.devices[device].peers;
        let index = peers.iter().position(|&known| known == peer).ok_or(Failure::PEER_ACCESS_NOT_ENABLED)?;
        peers.remove(index);
        Ok(())
    }
}
