//! The driver's state behind one lock, and the only code that runs queued work.

use crate::capture::Capture;
use crate::clocks::Clock;
use crate::codes::{Failure, Outcome};
use crate::context::Device;
use crate::event::Event;
use crate::graph::{Executable, Graph};
use crate::ipc::{Exported, Opened};
use crate::kernel::{Function, Module};
use crate::memory::Memory;
use crate::pool::Pool;
use crate::report::Counters;
use crate::stream::{Point, Step, Stream};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// A program's reference to an object of the driver; 0 means none.
pub type Handle = u64;

/// The most devices, as each takes addresses.
const DEVICES: i32 = 8;
const VERSION: i32 = 13020;

#[derive(Default)]
pub struct Driver {
    pub initialized: bool,
    pub version: i32,
    pub pools_supported: bool,
    /// Copies are done with pageable memory when the call returns, as with most drivers.
    pub staging: bool,
    /// A call with the handle of a destroyed stream or event, or with garbage for one, ends the process.
    pub crashes: bool,
    /// How many allocations succeed before one fails.
    pub allocations_left: Option<u64>,
    /// Functions whose next call fails.
    pub failures: BTreeMap<String, Failure>,
    pub memory: Memory,
    pub devices: Vec<Device>,
    pub pools: BTreeMap<Handle, Pool>,
    pub streams: BTreeMap<Handle, Stream>,
    /// The streams behind programs' handles.
    pub stream_handles: BTreeMap<Handle, Handle>,
    /// The handle of a destroyed stream becomes that of the next one, as with a driver whose handles are addresses.
    pub reuses_streams: bool,
    /// Handles of destroyed streams.
    pub free_streams: Vec<Handle>,
    /// Destroyed streams whose work is done, with its number of operations, while the host does not know that it is.
    pub gone_streams: Vec<(Handle, u64)>,
    pub events: BTreeMap<Handle, Event>,
    pub modules: BTreeMap<Handle, Module>,
    pub functions: BTreeMap<Handle, Function>,
    pub captures: BTreeMap<u64, Capture>,
    pub graphs: BTreeMap<Handle, Graph>,
    pub executables: BTreeMap<Handle, Executable>,
    /// Memory that other processes may open, by its address.
    pub exported: BTreeMap<u64, Exported>,
    /// Memory of other processes, by its address here.
    pub opened: BTreeMap<u64, Opened>,
    /// The operations that the host knows to be complete.
    pub host: Clock,
    pub host_accesses: u64,
    /// Number of operations that have run: the time of this driver.
    pub now: u64,
    pub counters: Counters,
    pub messages: Vec<String>,
    /// The names of the latest calls.
    pub latest: VecDeque<&'static str>,
    next: Handle,
}

static DRIVER: OnceLock<Option<Mutex<Driver>>> = OnceLock::new();
static PROGRESS: Condvar = Condvar::new();

impl Driver {
    fn new() -> Option<Driver> {
        let devices = number("DLFIELD_FAKE_CUDA_DEVICES").unwrap_or(1).clamp(1, DEVICES) as usize;
        let mut driver = Driver {
            version: number("DLFIELD_FAKE_CUDA_VERSION").unwrap_or(VERSION),
            pools_supported: number("DLFIELD_FAKE_CUDA_POOLS") != Some(0),
            staging: number("DLFIELD_FAKE_CUDA_STAGING").unwrap_or(0) != 0,
            crashes: number("DLFIELD_FAKE_CUDA_CRASHES") != Some(0),
            memory: Memory::new(devices)?,
            reuses_streams: number("DLFIELD_FAKE_CUDA_REUSED_STREAMS").unwrap_or(0) != 0,
            next: 0x5000_0000_0000,
            ..Driver::default()
        };
        for index in 0..devices {
            let pool = driver.handle();
            driver.pools.insert(pool, Pool::new(index));
            driver.devices.push(Device::new(index, pool));
        }
        Some(driver)
    }

    pub fn handle(&mut self) -> Handle {
        self.next += 0x40;
        self.next
    }
}

fn number(variable: &str) -> Option<i32> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Returns the locked driver, or an error if the system does not reserve its addresses.
pub fn lock() -> Outcome<MutexGuard<'static, Driver>> {
    let driver = DRIVER.get_or_init(|| Driver::new().map(Mutex::new));
    let driver = driver.as_ref().ok_or(Failure::OUT_OF_MEMORY)?;
    Ok(driver.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs queued work until these points are reached, in this order; then orders the host after them.
pub fn wait(points: &[Point]) -> Outcome {
    let mut driver = lock()?;
    for point in points {
        loop {
            match driver.step(point) {
                Step::Reached => break,
                Step::Ran => {}
                Step::Elsewhere => driver = PROGRESS.wait(driver).unwrap_or_else(PoisonError::into_inner),
                Step::HostFunction(call) => {
                    drop(driver);
                    call.run();
                    driver = lock()?;
                    driver.finish(call.stream);
                    PROGRESS.notify_all();
                }
            }
        }
        driver.host_learns(&point.clock);
    }
    driver.forget_gone_streams();
    Ok(())
}

/// Runs one operation towards a point, for a program that polls; returns whether the point was already reached.
pub fn poll(point: &Point) -> Outcome<bool> {
    let mut driver = lock()?;
    match driver.step(point) {
        Step::Reached => {
            driver.host_learns(&point.clock);
            return Ok(true);
        }
        Step::Ran | Step::Elsewhere => {}
        Step::HostFunction(call) => {
            drop(driver);
            call.run();
            lock()?.finish(call.stream);
            PROGRESS.notify_all();
        }
    }
    Ok(false)
}
