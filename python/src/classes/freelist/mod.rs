//! Freelists: short lists of freed objects for reuse, as CPython has for tuples and floats, for the classes whose objects
//! calls make and free all the time.
//!
//! `private` relies on the GIL and on the layout of objects. `portable` replaces it in builds with `--cfg dlfield_portable`,
//! which free-threaded builds set by themselves: it makes and frees objects as PyO3 does. The choice is made only here.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;
use pyo3::{PyClass, PyClassInitializer};

use dlfield::native::saved_error::{SavedError, report_unraisable};

#[cfg(dlfield_portable)]
#[path = "portable.rs"]
mod twin;
#[cfg(not(dlfield_portable))]
#[path = "private.rs"]
mod twin;

pub(crate) use self::twin::{Freelist, create, install};

/// A class with a freelist. It is final and has no `__dict__`, so that an object consists of its Rust value and, if it has
/// any, a list of weak references.
pub(crate) trait HasFreelist: PyClass + Sync + Into<PyClassInitializer<Self>> {
    /// Whether the class has `__traverse__`. Without it the garbage collector has no use for the objects.
    #[cfg_attr(dlfield_portable, allow(dead_code, reason = "PyO3 makes the objects known"))]
    const HAS_TRAVERSE: bool = true;

    /// How many freed objects the list keeps.
    #[cfg_attr(dlfield_portable, allow(dead_code, reason = "the twin keeps nothing"))]
    const KEPT: usize = 32;

    /// Returns the class's freelist.
    #[cfg_attr(dlfield_portable, allow(dead_code, reason = "the twin keeps nothing"))]
    fn freelist() -> &'static Freelist;

    /// Returns a value that holds nothing.
    fn blank() -> Self;

    /// Releases everything that the value holds, which makes it as good as blank. The thread is attached.
    fn release(&mut self, py: Python<'_>);
}

/// Releases everything that a value holds, as its object is freed.
#[inline]
fn release<T: HasFreelist>(py: Python<'_>, value: &mut T) {
    // An object may be freed while an exception is set, which code that `release` runs must not see.
    let saved = PyErr::occurred(py).then(|| SavedError::take(py));
    // The value may hold anything, and a panic must not unwind into C.
    let _ = catch_unwind(AssertUnwindSafe(|| value.release(py)));
    // A deleter in C may return with one set, which would surface in code that has nothing to do with it.
    report_unraisable(py);
    drop(saved);
}

/// The body of `Drop` of these classes, for values that are dropped before or after they were in an object.
pub(crate) fn drop_value<T: HasFreelist>(value: &mut T) {
    Python::try_attach(|py| release(py, value));
}
