//! The export of functions: every call is counted, can be made to fail, and never unwinds into C.

use crate::codes::{Failure, Outcome};
use crate::driver;
use std::cell::Cell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A pointer for a result.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    pub fn new(pointer: *mut T) -> Out<T> {
        Out(pointer)
    }

    pub fn put(self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Failure::INVALID_VALUE);
        }
        // SAFETY: the caller passes null or a place for the result.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes a result that the caller may omit.
    pub fn put_if_wanted(self, value: T) {
        let _ = self.put(value);
    }

    pub fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// Returns the value that is there already.
    pub fn get(self) -> Outcome<T>
    where
        T: Copy,
    {
        In::new(self.0.cast_const()).get()
    }
}

/// A pointer to arguments.
#[repr(transparent)]
pub struct In<T>(*const T);

// Pointers to all types are copied, which a derived implementation would not do.
macro_rules! copied {
    ($($pointer:ident)*) => {$(
        impl<T> Clone for $pointer<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $pointer<T> {}
    )*};
}

copied! { Out In }

impl<T> In<T> {
    pub fn new(pointer: *const T) -> In<T> {
        In(pointer)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn cast<U>(self) -> In<U> {
        In(self.0.cast())
    }
}

impl<T: Copy> In<T> {
    pub fn get(self) -> Outcome<T> {
        self.at(0)
    }

    pub fn at(self, index: usize) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Failure::INVALID_VALUE);
        }
        // SAFETY: the caller passes null or as many arguments as the function reads.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }
}

impl In<std::ffi::c_char> {
    pub fn text(self) -> Outcome<String> {
        if self.0.is_null() {
            return Err(Failure::INVALID_VALUE);
        }
        // SAFETY: the caller passes null or zero-terminated text.
        let text = unsafe { std::ffi::CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }
}

impl Out<std::ffi::c_char> {
    /// Writes zero-terminated text into a buffer of `room` bytes, truncated to fit.
    pub fn put_text(self, room: usize, text: &str) -> Outcome {
        if self.0.is_null() || room == 0 {
            return Err(Failure::INVALID_VALUE);
        }
        let bytes = &text.as_bytes()[..text.len().min(room - 1)];
        // SAFETY: the caller passes a buffer of this many bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.cast(), bytes.len());
            self.0.add(bytes.len()).write(0);
        }
        Ok(())
    }
}

thread_local! {
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
    /// The exported function that this thread runs.
    static RUNNING: Cell<&'static str> = const { Cell::new("") };
}

/// Marks this thread as running a program's function in a stream, which may not call the driver.
pub fn enter_host_function() {
    IN_HOST_FUNCTION.with(|inside| inside.set(true));
}

/// Functions that work before `cuInit`.
const EARLY: &[&str] = &["cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuGetProcAddress"];

fn admit(name: &'static str) -> Outcome {
    let mut driver = driver::lock()?;
    driver.note_call(name);
    if let Some(failure) = driver.take_failure(name) {
        return Err(failure);
    }
    if EARLY.contains(&crate::report::plain_name(name)) {
        return Ok(());
    }
    if IN_HOST_FUNCTION.with(Cell::get) {
        driver.counters.calls_in_host_functions += 1;
        driver.report(format!("{name} was called by a host function"));
        return Err(Failure::NOT_PERMITTED);
    }
    if driver.initialized { Ok(()) } else { Err(Failure::NOT_INITIALIZED) }
}

/// Runs the body of an exported function.
pub fn call(name: &'static str, body: impl FnOnce() -> Outcome) -> i32 {
    RUNNING.set(name);
    guard(|| admit(name).and_then(|()| body()))
}

/// Ends the process where a driver would crash, and says which function did.
pub fn crash(reason: &str) -> ! {
    // Not `eprintln`, whose text the test harness keeps.
    let _ = writeln!(std::io::stderr(), "fakecuda: {} crashes: {reason}", RUNNING.get());
    std::process::abort()
}

/// Returns the code of an outcome, or of a panic.
pub fn guard(body: impl FnOnce() -> Outcome) -> i32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failure.0,
        Err(_) => {
            if let Ok(mut driver) = driver::lock() {
                driver.counters.panics += 1;
            }
            Failure::UNKNOWN.0
        }
    }
}

/// Exports functions of the driver. With `driver:` in front, they hold its lock, under this name.
#[macro_export]
macro_rules! export {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
            $crate::entry::call(stringify!($name), || $body)
        }
    )*};
    ($driver:ident: $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $crate::export! {$(
            fn $name($($argument: $type),*) {
                let mut locked = $crate::driver::lock()?;
                let $driver = &mut *locked;
                $body
            }
        )*}
    };
}

/// Exports functions that take a stream. Their variants with `_ptsz` take stream 0 as the thread's own.
#[macro_export]
macro_rules! export_on {
    ($stream:ident: $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $crate::export! { $(fn $name($($argument: $type),*) $body)* }
        $($crate::export_variant! {
            "_ptsz" fn $name($($argument: $type),*) {
                let $stream = if $stream == $crate::stream::NULL { $crate::stream::PER_THREAD } else { $stream };
                $body
            }
        })*
    };
    ($driver:ident, $stream:ident: $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $crate::export_on! { $stream: $(
            fn $name($($argument: $type),*) {
                let mut locked = $crate::driver::lock()?;
                let $driver = &mut *locked;
                $body
            }
        )*}
    };
}

/// Exports functions that use the default stream. Their variants with `_ptds` use the thread's own.
#[macro_export]
macro_rules! export_default {
    ($stream:ident: $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $crate::export! {
            fn $name($($argument: $type),*) {
                let $stream = $crate::stream::NULL;
                $body
            }
        }
        $crate::export_variant! {
            "_ptds" fn $name($($argument: $type),*) {
                let $stream = $crate::stream::PER_THREAD;
                $body
            }
        }
    )*};
}

/// Exports a function under a name with this suffix; Rust cannot call it.
#[macro_export]
macro_rules! export_variant {
    ($suffix:literal fn $name:ident($($argument:ident: $type:ty),*) $body:block) => {
        const _: () = {
            #[unsafe(export_name = concat!(stringify!($name), $suffix))]
            pub unsafe extern "C" fn variant($($argument: $type),*) -> i32 {
                $crate::entry::call(concat!(stringify!($name), $suffix), || $body)
            }
        };
    };
}
