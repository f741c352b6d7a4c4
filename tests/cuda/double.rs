//! The frame of every test: one runs at a time, and none may leave behind misuse that the driver double counts.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlfield::{DType, Device, DeviceErrorKind, Error, Spec, Tensor, cuda};

use crate::driver;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Counters of misuse.
const MISUSE: &str = "races double_frees bad_frees use_after_free out_of_bounds misaligned bad_handles no_context \
                      foreign_context no_peer_access host_memory_gone panics";

/// Counters of waits by the host.
pub const WAITS: [&str; 3] = ["stream_syncs", "event_syncs", "context_syncs"];

/// The use of CUDA by one test, whose end checks that nothing was left behind.
pub struct OnCuda {
    provoked: &'static [&'static str],
    double: Option<Double>,
    leaks: Option<u64>,
    context: usize,
    /// The test uses `cudarc`, which leaves its context current.
    pub uses_cudarc: bool,
    _turn: MutexGuard<'static, ()>,
}

/// Returns `None` on a machine without CUDA, whose errors it has checked.
pub fn on_cuda() -> Option<OnCuda> {
    tolerating(&[])
}

/// Returns `None` on a machine with fewer than two GPUs too: the test is about two.
pub fn on_two_gpus() -> Option<OnCuda> {
    let cuda = on_cuda()?;
    if cuda::device_count() < 2 {
        println!("skipped: needs a second GPU");
        return None;
    }
    Some(cuda)
}

/// As [`tolerating`], for a test that hardware cannot pass.
pub fn on_double(provoked: &'static [&'static str]) -> Option<(OnCuda, Double)> {
    let cuda = tolerating(provoked)?;
    let double = Double::find();
    if double.is_none() {
        println!("skipped: needs the driver double");
    }
    Some((cuda, double?))
}

/// As [`on_cuda`], for a test that provokes misuse that these counters count.
pub fn tolerating(provoked: &'static [&'static str]) -> Option<OnCuda> {
    let _turn = turn();
    if !cuda::is_available() {
        without_cuda();
        return None;
    }
    let double = Double::find().inspect(|double| {
        double.reset();
        double.reuse_streams(false);
    });
    let leaks = double.as_ref().map(|double| double.count("leaks"));
    Some(OnCuda { provoked, double, leaks, context: driver::current(), uses_cudarc: false, _turn })
}

impl Drop for OnCuda {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if self.uses_cudarc {
            // SAFETY: no context is current afterwards, as before.
            driver::ok(unsafe { cudarc::driver::sys::cuCtxSetCurrent(std::ptr::null_mut()) });
        }
        // Owners whose release was deferred during graph capture are released by the next allocation.
        drop(Tensor::empty(&Spec::new(&[1], DType::F64).with_device(driver::GPU)).unwrap());
        driver::finish_everything();
        assert_eq!(driver::current(), self.context, "the current context is another one");
        let Some(double) = &self.double else { return };
        let misused: Vec<_> =
            MISUSE.split(' ').filter(|name| !self.provoked.contains(name) && double.count(name) != 0).collect();
        assert!(misused.is_empty(), "{misused:?}: {}", double.report());
        assert_eq!(Some(double.count("leaks")), self.leaks, "memory was left behind: {}", double.report());
    }
}

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn without_cuda() {
    assert_eq!(cuda::device_count(), 0);
    assert!(!cuda::unavailable_reason().unwrap().is_empty());
    for device in driver::PLACES {
        let refused = Tensor::zeros(&Spec::new(&[3], DType::F64).with_device(device)).unwrap_err();
        assert!(refused.to_string().starts_with(&format!("device: {device} cannot be used")));
    }
    let field = Tensor::zeros(&Spec::new(&[3], DType::F64)).unwrap();
    assert!(
        matches!(field.to_device(Device::cuda(0), None), Err(Error::Device(error)) if error.kind() == DeviceErrorKind::Unavailable)
    );
}

/// Calls a function of the double, which has this type by its README.
macro_rules! call {
    ($double:ident.$name:ident: ($($type:ty),*) -> $result:ty, $($value:expr),*) => {{
        let function = $double.function(stringify!($name));
        // SAFETY: the README of the double gives the type; the arguments live until the call returns.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn($($type),*) -> $result>(function)($($value),*) }
    }};
}

/// The control functions of the driver double.
pub struct Double(*mut c_void);

impl Double {
    /// Returns `None` on hardware.
    pub fn find() -> Option<Double> {
        // SAFETY: the driver is loaded already, under this name.
        let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), 2) };
        let double = Double(library);
        (!library.is_null() && !double.function("fakecuda_report").is_null()).then_some(double)
    }

    fn function(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: a library that was opened.
        unsafe { dlsym(self.0, name.as_ptr()) }
    }

    pub fn reset(&self) {
        call!(self.fakecuda_reset: () -> c_int,);
    }

    /// Makes the allocation after the next `after` ones fail.
    pub fn fail_allocation(&self, after: i64) {
        call!(self.fakecuda_fail_allocations: (i64) -> c_int, after);
    }

    pub fn fail(&self, function: &str, code: c_int) {
        let name = CString::new(function).unwrap();
        call!(self.fakecuda_fail: (*const c_char, c_int) -> c_int, name.as_ptr(), code);
    }

    /// Sets whether the handle of a destroyed stream becomes that of the next one.
    pub fn reuse_streams(&self, reuse: bool) {
        call!(self.fakecuda_set_reused_streams: (bool) -> c_int, reuse);
    }

    pub fn host_access(&self, address: usize, bytes: usize, write: bool) {
        call!(self.fakecuda_host_access: (u64, usize, bool) -> c_int, address as u64, bytes, write);
    }

    pub fn report(&self) -> String {
        let mut text = vec![0u8; 1 << 12];
        loop {
            let length =
                call!(self.fakecuda_report: (*mut c_char, usize) -> usize, text.as_mut_ptr().cast(), text.len());
            if length < text.len() {
                text.truncate(length);
                return String::from_utf8_lossy(&text).into_owned();
            }
            text.resize(length + 1, 0);
        }
    }

    /// Returns numbers of the report.
    pub fn counts<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        let report = self.report();
        names.map(|name| {
            let (_, rest) = report.split_once(&format!("\"{name}\": ")).unwrap_or_else(|| panic!("{name}: {report}"));
            rest.split(|symbol: char| !symbol.is_ascii_digit()).next().unwrap().parse().unwrap()
        })
    }

    pub fn count(&self, name: &str) -> u64 {
        self.counts([name])[0]
    }
}
