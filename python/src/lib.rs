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
#[pymodule]
// The freelists rely on the GIL; by default PyO3 would declare that the module does not need it.
#[pyo3(name = "_native", gil_used = true)]
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
