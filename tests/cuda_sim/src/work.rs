//! The effect of operations when they run, and the checks when they are queued.

use crate::clocks::{Moment, Touch};
use crate::codes::{Failure, Outcome};
use crate::copy::Copy;
use crate::driver::{Driver, Handle};
use crate::entry;
use crate::kernel::Launch;
use crate::memory::{Life, Memory};
use std::ffi::c_void;

pub type HostFunction = unsafe extern "C" fn(*mut c_void);

#[derive(Clone)]
pub enum Work {
    Nothing,
    Wait(Handle, u64),
    Copy(Copy),
    Set(Set),
    Kernel(Box<Launch>),
    /// A function of the program, with its argument.
    Host(HostFunction, usize),
    /// Sets the time of an event, unless that was recorded again since.
    Record(Handle, u64),
    /// Starts the life of a graph's allocation.
    Birth(u64),
    Free(u64),
}

/// Rows that are filled with one element.
#[derive(Clone)]
pub struct Set {
    pub destination: u64,
    pub pitch: u64,
    pub element: Vec<u8>,
    pub width: u64,
    pub height: u64,
}

impl Set {
    pub fn rows(destination: u64, pitch: usize, element: &[u8], width: usize, height: usize) -> Set {
        let (pitch, width, height) = (pitch as u64, width as u64, height as u64);
        Set { destination, pitch, element: element.to_vec(), width, height }
    }

    fn run(&self, memory: &Memory) -> bool {
        let row = self.element.repeat(self.width as usize);
        (0..self.height).all(|index| memory.write(self.destination + index * self.pitch, &row))
    }
}

/// A function of the program that is due to run.
pub struct HostCall {
    pub stream: Handle,
    pub function: HostFunction,
    pub argument: usize,
}

impl HostCall {
    /// Runs it on a thread of its own, as CUDA does, without the driver's lock.
    pub fn run(&self) {
        let (function, argument) = (self.function, self.argument);
        let call = move || {
            entry::enter_host_function();
            // SAFETY: the program that queued the function promised that it can be called with this argument.
            unsafe { function(argument as *mut c_void) };
        };
        // If no thread can be started the call is lost; the process goes on.
        if let Ok(thread) = std::thread::Builder::new().name("fakecuda".to_owned()).spawn(call) {
            let _ = thread.join();
        }
    }
}

impl Driver {
    pub fn execute(&mut self, stream: Handle, work: Work) {
        let there = match work {
            Work::Nothing | Work::Wait(..) | Work::Host(..) => true,
            Work::Copy(copy) => copy.run(&self.memory),
            Work::Set(set) => set.run(&self.memory),
            Work::Kernel(launch) => launch.run(&self.memory),
            Work::Record(event, number) => {
                self.set_time(event, stream, number);
                true
            }
            Work::Birth(base) => {
                self.memory.refresh(base);
                true
            }
            Work::Free(base) => {
                self.release(base);
                true
            }
        };
        if !there {
            self.counters.host_memory_gone += 1;
            self.report("a queued operation ran when the host's memory for it was gone".to_owned());
        }
    }

    /// Checks and records all accesses of an operation.
    pub fn touch_all(&mut self, moment: &Moment, operation: &crate::stream::Operation) -> Outcome {
        let mut outcome = Ok(());
        for touch in &operation.touches {
            outcome = outcome.and(self.touch(moment, touch, &operation.what));
        }
        outcome
    }

    /// Checks that memory exists and that nothing races with the access.
    pub fn touch(&mut self, moment: &Moment, touch: &Touch, what: &str) -> Outcome {
        let Some((low, high)) = touch.area.span() else { return Ok(()) };
        let on_device = self.memory.device_of(low).is_some();
        let mut messages = vec![];
        let mut outcome = Ok(());
        match self.memory.find_mut(low) {
            None if on_device => {
                self.counters.out_of_bounds += 1;
                messages.push(format!("{what}: {low:#x} is in no allocation"));
                outcome = Err(Failure::INVALID_VALUE);
            }
            None => {}
            Some(found) => {
                let number = found.number;
                if found.life != Life::Live {
                    self.counters.use_after_free += 1;
                    messages.push(format!("{what}: allocation {number} at {low:#x} is {:?}", found.life));
                    outcome = Err(Failure::INVALID_VALUE);
                }
                let end = found.base + found.size;
                if high > end {
                    self.counters.out_of_bounds += 1;
                    messages.push(format!("{what}: runs {} bytes past allocation {number}", high - end));
                    outcome = Err(Failure::INVALID_VALUE);
                }
                let races = found.history.add(touch, moment, what, &self.host);
                self.counters.races += races.len() as u64;
                messages.extend(races.into_iter().map(|race| format!("race in allocation {number}: {race}")));
            }
        }
        for message in messages {
            self.report(message);
        }
        outcome
    }
}
