//! Devices with their primary contexts, and each thread's current contexts.

use crate::clocks::Clock;
use crate::codes::{Failure, Outcome};
use crate::driver::{Driver, Handle};
use crate::memory::{Kind, Life, TOTAL};
use std::cell::RefCell;
use std::collections::BTreeMap;

const FIRST: Handle = 0x4000_0000_1000;

thread_local! {
    static STACK: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

/// A device and its primary context.
#[derive(Default)]
pub struct Device {
    pub context: Handle,
    /// How often the context was retained and not released; at 0 it does not exist.
    pub retained: u64,
    pub flags: u32,
    /// The error of a failed kernel, which every later call in the context returns.
    pub fault: Option<Failure>,
    /// Devices whose memory this one's kernels may use.
    pub peers: Vec<usize>,
    /// Bytes that are allocated outside pools.
    pub used: u64,
    pub default_pool: Handle,
    pub pool: Handle,
    pub null_stream: Option<Handle>,
    /// The default stream of each thread.
    pub thread_streams: BTreeMap<u64, Handle>,
}

impl Device {
    pub fn new(index: usize, pool: Handle) -> Device {
        let context = FIRST + index as Handle * 0x1000;
        Device { context, default_pool: pool, pool, ..Device::default() }
    }
}

/// Returns this thread's current context, or 0.
pub fn current() -> Handle {
    STACK.with(|stack| stack.borrow().last().copied().unwrap_or(0))
}

pub fn push(context: Handle) {
    STACK.with(|stack| stack.borrow_mut().push(context));
}

pub fn pop() -> Option<Handle> {
    STACK.with(|stack| stack.borrow_mut().pop())
}

impl Driver {
    pub fn device(&self, ordinal: i32) -> Outcome<usize> {
        usize::try_from(ordinal).ok().filter(|&index| index < self.devices.len()).ok_or(Failure::INVALID_DEVICE)
    }

    /// Returns the device of a context that exists.
    pub fn device_of_context(&self, context: Handle) -> Outcome<usize> {
        let index = self.devices.iter().position(|device| device.context == context);
        match index {
            Some(index) if self.devices[index].retained > 0 => Ok(index),
            Some(_) => Err(Failure::CONTEXT_IS_DESTROYED),
            None => Err(Failure::INVALID_CONTEXT),
        }
    }

    /// Returns the device of this thread's current context.
    pub fn current_device(&mut self) -> Outcome<usize> {
        let found = self.device_of_context(current());
        if found.is_err() {
            self.counters.no_context += 1;
            self.report("a call that needs a context was made on a thread without one".to_owned());
        }
        found
    }

    /// Returns it if no kernel of its context has failed.
    pub fn usable_device(&mut self) -> Outcome<usize> {
        let device = self.current_device()?;
        self.check_fault(device)?;
        Ok(device)
    }

    /// Counts a call on an object of `device` while another device's context is current, which the driver allows.
    pub fn note_foreign(&mut self, device: usize, what: &str) {
        let current = current();
        if current != self.devices[device].context {
            self.counters.foreign_context += 1;
            self.report(format!("{what}: belongs to device {device}, and another context ({current:#x}) is current"));
        }
    }

    /// Returns the error that an earlier kernel left in the context.
    pub fn check_fault(&self, device: usize) -> Outcome {
        self.devices[device].fault.map_or(Ok(()), Err)
    }

    /// Destroys a context with everything in it.
    pub fn destroy_context(&mut self, index: usize) {
        let context = self.devices[index].context;
        let device = &mut self.devices[index];
        device.null_stream = None;
        device.thread_streams.clear();
        device.peers.clear();
        device.fault = None;
        self.streams.retain(|_, stream| stream.device != index);
        let streams = &self.streams;
        self.stream_handles.retain(|_, stream| streams.contains_key(stream));
        self.drop_lost_captures();
        self.events.retain(|_, event| event.device != index);
        self.modules.retain(|_, module| module.context != context);
        self.functions.retain(|_, function| function.context != context);
        let lost: Vec<u64> = self
            .memory
            .allocations
            .values()
            .filter(|found| found.device == index && matches!(found.life, Life::Live | Life::Leaving))
            .map(|found| found.base)
            .collect();
        for base in lost {
            let live = self.memory.find(base).is_some_and(|found| found.life == Life::Live);
            self.counters.lost_with_context += u64::from(live);
            self.release(base);
        }
        self.settle_pools();
    }

    /// Returns free and total bytes of a device.
    pub fn device_bytes(&self, index: usize) -> (u64, u64) {
        let reserved: u64 = self.pools.values().filter(|pool| pool.device == index).map(|pool| pool.reserved).sum();
        (TOTAL.saturating_sub(self.devices[index].used + reserved), TOTAL)
    }

    /// Allocates memory, unless a failure was requested or the device is full.
    pub fn allocate(&mut self, device: usize, size: u64, kind: Kind, pool: Option<Handle>, life: Life) -> Outcome<u64> {
        if size == 0 {
            return Err(Failure::INVALID_VALUE);
        }
        if let Some(left) = &mut self.allocations_left {
            if *left == 0 {
                self.allocations_left = None;
                self.counters.failed_on_demand += 1;
                return Err(Failure::OUT_OF_MEMORY);
            }
            *left -= 1;
        }
        if kind == Kind::Device && size > self.device_bytes(device).0 {
            return Err(Failure::OUT_OF_MEMORY);
        }
        let base = self.memory.allocate(device, size, kind, pool, life)?;
        self.counters.allocations += 1;
        if life == Life::Live {
            self.account(base);
        }
        Ok(base)
    }

    /// Adds an allocation to the bytes in use of its pool or device.
    pub fn account(&mut self, base: u64) {
        let Some(found) = self.memory.allocations.get(&base) else { return };
        match found.pool.and_then(|pool| self.pools.get_mut(&pool)) {
            Some(pool) => pool.take(found.size),
            None if found.kind == Kind::Device => self.devices[found.device].used += found.size,
            None => {}
        }
    }

    /// Ends an allocation, and removes it from the bytes in use.
    pub fn release(&mut self, base: u64) {
        let Some(found) = self.memory.allocations.get(&base) else { return };
        match found.pool.and_then(|pool| self.pools.get_mut(&pool)) {
            Some(pool) => pool.used -= found.size.min(pool.used),
            None if found.kind == Kind::Device => self.devices[found.device].used -= found.size,
            None => {}
        }
        self.exported.remove(&base);
        self.opened.remove(&base);
        self.memory.release(base);
    }

    /// Returns the device of an allocation of one of these kinds that can be freed now; counts anything else as misuse.
    pub fn check_free(&mut self, base: u64, kinds: &[Kind], what: &str) -> Outcome<usize> {
        let found =
            self.memory.allocations.get(&base).map(|found| (found.life, found.kind, found.device, found.number));
        let message = match found {
            Some((Life::Live, kind, device, _)) if kinds.contains(&kind) => return Ok(device),
            Some((Life::Live | Life::Unborn, kind, _, number)) => {
                self.counters.bad_frees += 1;
                format!("{what}({base:#x}): allocation {number} is {kind:?}")
            }
            Some((_, _, _, number)) => {
                self.counters.double_frees += 1;
                format!("{what}({base:#x}): allocation {number} was freed before")
            }
            None => {
                self.counters.bad_frees += 1;
                format!("{what}({base:#x}): not the start of an allocation")
            }
        };
        self.report(message);
        Err(Failure::INVALID_VALUE)
    }

    /// Orders the host after everything that the clock covers.
    pub fn host_learns(&mut self, clock: &Clock) {
        self.host.join(clock);
        self.settle_pools();
    }
}
