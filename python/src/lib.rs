//! The Python module `dlfield._native`: registration only.

use pyo3::prelude::*;

/// The compiled part of `dlfield`.
// Without a GIL, the freelists of `classes::freelist` stay empty. The other statics are constants, thread-local, or locks, atomics
// and cells that are written once; the ledger of borrows (`from_py/borrows.rs`) has a lock then. No lock is held while Python code
// may run.
#[pymodule(gil_used = false)]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    dlfield::python::module::register(module)
}
