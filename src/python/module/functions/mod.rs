//! The functions of the module.

mod as_numpy;
mod call;
mod creation;
mod cuda;
mod data_argument;
mod docstring;
mod exchange;
mod fill_value;
mod given_memory;
pub(crate) mod keywords;
mod memory;
mod memory_report;
mod metadata;
mod preflight;
mod presets;
mod shared_memory;
mod sources;
mod specs;
mod threads;

use pyo3::prelude::*;

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    creation::register(module)?;
    exchange::register(module)?;
    as_numpy::register(module)?;
    metadata::register(module)?;
    memory::register(module)?;
    sources::register(module)?;
    presets::register(module)?;
    preflight::register(module)?;
    cuda::register(module)?;
    memory_report::register(module)?;
    shared_memory::register(module)?;
    threads::register(module)
}
