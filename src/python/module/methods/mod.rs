//! The methods and attributes of `Tensor` and `Descriptor`.

mod attributes;
mod constructors;
mod descriptor;
mod dunder;
mod hints;
pub(crate) mod index;
pub(crate) mod key;
pub(crate) mod numbers;
mod pickle;
mod protocols;
mod readonly_attributes;
mod reductions;
mod shapes;
mod storage;
mod views;

use pyo3::prelude::*;

/// Adds the function that rebuilds pickled tensors, and the hints for NumPy's methods that tensors do not have.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    hints::install(module.py())?;
    pickle::register(module)
}
