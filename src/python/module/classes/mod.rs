//! The classes: their Rust structs, and how their objects are made and freed.
//!
//! Imports look for `Tensor` and `Descriptor` in them, so these two know nothing of imports.

pub(crate) mod attribute_values;
pub(crate) mod buffer_parts;
pub(crate) mod descriptor;
pub(crate) mod device;
pub(crate) mod freelist;
mod panic;
pub(crate) mod preset;
pub(crate) mod tensor;

use pyo3::prelude::*;

use self::descriptor::PyDescriptor;
use self::tensor::PyTensor;

/// Adds the classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<device::PyDevice>()?;
    module.add_class::<preset::PyPreset>()?;
    module.add_class::<PyTensor>()?;
    module.add_class::<PyDescriptor>()?;
    freelist::install::<PyTensor>(py)?;
    freelist::install::<PyDescriptor>(py)?;
    panic::register(py)
}
