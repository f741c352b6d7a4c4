//! The Python module `dlfield._native`: registration only.

mod classes;
mod export;
mod functions;
mod methods;
mod signature;
mod ufunc;

use dlfield::native::{errors, is_main_interpreter, numpy_api};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The compiled part of `dlfield`.
// Without a GIL, the freelists of `classes::freelist` stay empty. The other statics of both crates are constants, thread-local, or
// locks, atomics and cells that are written once; the ledger of borrows (`from_py/borrows.rs`) has a lock then. No lock is held
// while Python code may run.
#[pymodule(gil_used = false)]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    if !is_main_interpreter(module.py()) {
        return Err(PyImportError::new_err(
            "dlfield: does not work in a sub-interpreter, as NumPy does not; import it in the main interpreter, or start a \
             process: multiprocessing, concurrent.futures.ProcessPoolExecutor",
        ));
    }
    // Now, where errors and signals reach who imports the module: later look-ups at NumPy's types have no way for them.
    numpy_api::require(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    classes::register(module)?;
    export::register(module)?;
    methods::register(module)?;
    ufunc::install(module.py())?;
    functions::register(module)?;
    signature::register(module)
}
