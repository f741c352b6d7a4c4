//! The module `dlfield._native`: its classes, their methods, the functions, labelled arithmetic, and the exports of tensors.
//!
//! Only the crate in `python/` enables the feature `module`. An extension that has this crate built in has none of this.

pub(crate) mod classes;
mod export;
mod functions;
mod methods;
mod signature;
mod ufunc;
mod values;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

use crate::python::convert::errors;
use crate::python::ffi::attach::is_main_interpreter;
use crate::python::ffi::numpy_api;

/// Adds the classes, functions and exceptions to the module, when Python imports it.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    if !is_main_interpreter(py) {
        return Err(PyImportError::new_err(
            "dlfield: does not work in a sub-interpreter, as NumPy does not; import it in the main interpreter, or start a \
             process: multiprocessing, concurrent.futures.ProcessPoolExecutor",
        ));
    }
    // Now, where errors and signals reach who imports the module: later look-ups at NumPy's types have no way for them.
    numpy_api::require(py)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    classes::register(module)?;
    export::register(module)?;
    methods::register(module)?;
    ufunc::install(py)?;
    functions::register(module)?;
    signature::register(module)
}
