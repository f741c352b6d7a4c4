//! The Python module `dlfield._native`: registration only.

mod classes;
mod export;
mod functions;
mod methods;
mod signature;
mod ufunc;

use dlfield::native::errors;
use pyo3::prelude::*;

/// The compiled part of `dlfield`.
// The freelists of `classes::freelist::private` rely on the GIL.
#[cfg_attr(not(dlfield_portable), pymodule(gil_used = true))]
// The other statics of both crates are constants, thread-local, or locks, atomics and cells that are written once; the ledger of
// borrows (`from_py/borrows.rs`) has a lock in free-threaded builds. No lock is held while Python code may run.
#[cfg_attr(dlfield_portable, pymodule(gil_used = false))]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    classes::register(module)?;
    export::register(module)?;
    methods::register(module)?;
    ufunc::install(module.py())?;
    functions::register(module)?;
    signature::register(module)
}
