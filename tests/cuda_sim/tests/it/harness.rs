//! Exclusive sessions with the double, and the driver's functions with results instead of out-arguments.

#![allow(dead_code)]

use fakecuda::api::{capture, context, control, copy, device, event, init, memory, set, stream};
use fakecuda::entry::{In, Out};
use serde_json::Value;
use std::ffi::CString;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub type Code = i32;
pub type Answer<T = ()> = Result<T, Code>;

pub const INVALID_VALUE: Code = 1;
pub const OUT_OF_MEMORY: Code = 2;
pub const INVALID_CONTEXT: Code = 201;
pub const INVALID_HANDLE: Code = 400;
pub const NOT_FOUND: Code = 500;
pub const NOT_READY: Code = 600;
pub const ILLEGAL_ADDRESS: Code = 700;
pub const NOT_PERMITTED: Code = 800;
pub const NOT_SUPPORTED: Code = 801;

pub const NULL: u64 = 0;
pub const PER_THREAD: u64 = 2;
pub const NON_BLOCKING: u32 = 1;

pub fn check(code: Code) -> Answer {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// Calls a function of the driver that writes one result.
pub fn result<T: Default>(call: impl FnOnce(Out<T>) -> Code) -> Answer<T> {
    let mut value = T::default();
    check(call(Out::new(&mut value)))?;
    Ok(value)
}

/// Calls a function of the driver.
macro_rules! cu {
    ($call:expr) => {{
        // SAFETY: the arguments are variables of the test, or addresses that the double checks.
        $crate::harness::check(unsafe { $call })
    }};
}
/// Calls a function of the driver and returns what it writes.
macro_rules! get {
    (|$out:ident| $call:expr) => {{
        // SAFETY: the arguments are variables of the test, or addresses that the double checks.
        $crate::harness::result(|$out| unsafe { $call })
    }};
}
pub(crate) use {cu, get};

/// A session with exclusive use of the double, with both devices' contexts retained and the first one current. Its end destroys
/// them, with all memory, streams and events in them.
pub struct Session {
    pub contexts: [u64; 2],
    _turn: MutexGuard<'static, ()>,
}

/// The variable without which the double has no devices.
pub const SWITCH: &str = "DLFIELD_FAKE_CUDA";
/// The variable with the number of devices.
pub const DEVICES: &str = "DLFIELD_FAKE_CUDA_DEVICES";

static TURN: Mutex<()> = Mutex::new(());

pub fn session() -> Session {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: no other test thread runs now.
    unsafe {
        std::env::set_var(SWITCH, "1");
        std::env::set_var(DEVICES, "2");
    };
    cu!(control::fakecuda_reset()).unwrap();
    cu!(control::fakecuda_set_pools(true)).unwrap();
    cu!(control::fakecuda_set_staging(false)).unwrap();
    cu!(control::fakecuda_set_reused_streams(false)).unwrap();
    cu!(control::fakecuda_set_crashes(true)).unwrap();
    cu!(init::cuInit(0)).unwrap();
    let contexts = [0, 1].map(|index| get!(|out| device::cuDevicePrimaryCtxRetain(out, index)).unwrap());
    cu!(context::cuCtxSetCurrent(contexts[0])).unwrap();
    Session { contexts, _turn: turn }
}

impl Session {
    pub fn make_current(&self, device: usize) {
        cu!(context::cuCtxSetCurrent(self.contexts[device])).unwrap();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for index in 0..2 {
            let _ = cu!(device::cuDevicePrimaryCtxRelease_v2(index));
        }
        let _ = cu!(context::cuCtxSetCurrent(0));
    }
}

/// Runs a test again in a new process, with these environment variables.
pub fn rerun(test: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env_remove(SWITCH).env_remove(DEVICES);
    command.envs(variables.iter().copied()).output().unwrap()
}

/// Makes calls with handles of destroyed streams and events return errors.
pub fn count_dead_handles() {
    cu!(control::fakecuda_set_crashes(false)).unwrap();
}

pub fn report() -> Value {
    let mut room = vec![0u8; 1 << 20];
    // SAFETY: the buffer has this many bytes.
    let length = unsafe { control::fakecuda_report(Out::new(room.as_mut_ptr().cast()), room.len()) };
    serde_json::from_slice(&room[..length]).unwrap()
}

pub fn count(name: &str) -> u64 {
    report()[name].as_u64().unwrap_or_else(|| panic!("no counter {name}"))
}

pub fn messages() -> String {
    report()["messages"].to_string()
}

pub fn fail(name: &str, code: Code) {
    let name = CString::new(name).unwrap();
    cu!(control::fakecuda_fail(In::new(name.as_ptr()), code)).unwrap();
}

pub fn allocate(bytes: usize) -> u64 {
    get!(|out| memory::cuMemAlloc_v2(out, bytes)).unwrap()
}

pub fn pinned(bytes: usize) -> u64 {
    get!(|out| memory::cuMemHostAlloc(out, bytes, 0)).unwrap()
}

pub fn free(address: u64) -> Answer {
    cu!(memory::cuMemFree_v2(address))
}

pub fn make_stream() -> u64 {
    get!(|out| stream::cuStreamCreate(out, NON_BLOCKING)).unwrap()
}

pub fn make_event() -> u64 {
    get!(|out| event::cuEventCreate(out, 0)).unwrap()
}

pub fn synchronize(handle: u64) -> Answer {
    cu!(stream::cuStreamSynchronize(handle))
}

pub fn record(event: u64, stream: u64) {
    cu!(event::cuEventRecord(event, stream)).unwrap();
}

pub fn wait(stream: u64, event: u64) -> Answer {
    cu!(stream::cuStreamWaitEvent(stream, event, 0))
}

/// Queues a fill.
pub fn fill(address: u64, value: u8, bytes: usize, stream: u64) -> Answer {
    cu!(set::cuMemsetD8Async(address, value, bytes, stream))
}

/// Queues a copy.
pub fn move_bytes(to: u64, from: u64, bytes: usize, stream: u64) -> Answer {
    cu!(copy::cuMemcpyAsync(to, from, bytes, stream))
}

/// Returns the present contents of memory, without waiting for work.
pub fn peek(address: u64, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    cu!(control::fakecuda_peek(address, out.as_mut_ptr(), bytes)).unwrap();
    out
}

pub fn poke(address: u64, bytes: &[u8]) {
    cu!(control::fakecuda_poke(address, bytes.as_ptr(), bytes.len())).unwrap();
}

pub const GLOBAL: i32 = 0;
pub const THREAD_LOCAL: i32 = 1;
pub const RELAXED: i32 = 2;
pub const ACTIVE: i32 = 1;
pub const INVALIDATED: i32 = 2;
pub const UNSUPPORTED: Code = 900;
pub const ALREADY_INVALIDATED: Code = 901;
pub const IMPLICIT: Code = 906;

pub fn begin(stream: u64, mode: i32) {
    cu!(capture::cuStreamBeginCapture_v2(stream, mode)).unwrap();
}

pub fn end(stream: u64) -> Answer<u64> {
    get!(|out| capture::cuStreamEndCapture(stream, out))
}

pub fn is_capturing(stream: u64) -> i32 {
    get!(|out| capture::cuStreamIsCapturing(stream, out)).unwrap()
}
