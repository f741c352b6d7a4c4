//! Tells the package of copies and allocations, for `dlfield.trace_copies` and `dlfield.memory.trace_lines`.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

use crate::python::package;
use crate::tensor::Tensor;

static COPIES: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicBool = AtomicBool::new(false);

/// Says whether the package's `record_copy` is called for each copy from now on.
pub fn trace_copies(on: bool) {
    COPIES.store(on, Ordering::Relaxed);
}

/// Says whether the package's `record_allocation` is called for each new field from now on.
pub fn trace_allocations(on: bool) {
    ALLOCATIONS.store(on, Ordering::Relaxed);
}

/// Tells the package of a copy of this many bytes, if it asks for them.
#[inline]
pub fn copied(py: Python<'_>, bytes: i64, reason: impl FnOnce() -> String) {
    if COPIES.load(Ordering::Relaxed) {
        call(py, "record_copy", (bytes, reason()));
    }
}

/// Tells the package of a copy that a library has made for a call of ours, if it asks for them.
#[inline]
pub fn copied_by_library(array: &Bound<'_, PyAny>, reason: &str) {
    if COPIES.load(Ordering::Relaxed) {
        let bytes = array.getattr("nbytes").and_then(|bytes| bytes.extract::<i64>());
        copied(array.py(), bytes.unwrap_or(0), || reason.to_owned());
    }
}

/// Tells the package the address of a new field's block, if it asks for them.
#[inline]
pub fn allocated(py: Python<'_>, field: &Tensor) {
    if ALLOCATIONS.load(Ordering::Relaxed) {
        call(py, "record_allocation", (field.block().map_or(0, |block| block.descriptor().ptr().addr()),));
    }
}

#[cold]
fn call<'py>(py: Python<'py>, function: &str, arguments: impl PyCallArgs<'py>) {
    let recorded = package::functions(py).and_then(|functions| functions.call_method1(function, arguments));
    if let Err(error) = recorded {
        error.write_unraisable(py, None);
    }
}
