//! The methods and attributes of `Tensor` and `Descriptor`.

mod attributes;
mod descriptor;
pub(crate) mod index;
mod pickle;
mod protocols;
mod special;
mod storage;
mod views;

use pyo3::prelude::*;

/// Adds the function that rebuilds pickled tensors.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    pickle::register(module)
}
